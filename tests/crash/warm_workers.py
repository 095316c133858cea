"""Worker processes without imports: they are forked with their server, and wait for their start.

The imports of a worker's first card take a second, and a server that is killed draws a single card.
After its start, a worker runs the program itself.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from threading import Lock
from typing import Any
from unittest.mock import patch

from toolkit.workers import process, program


class WarmWorker:
    """A child that becomes a worker at its start, with the interface of `Popen`."""

    def __init__(self) -> None:
        pipes = [os.pipe() for _ in range(4)]
        (calls, stdin), (stdout, answers), (start, started), (lifeline, lifeline_end) = pipes
        self.pid = os.fork()
        if self.pid == 0:
            _become_worker(calls, answers, start, lifeline)
        for descriptor in (calls, answers, start, lifeline):
            os.close(descriptor)
        self.stdin, self.stdout = FileIO(stdin, "w"), FileIO(stdout)
        self.lifeline, self._started = FileIO(lifeline_end, "w"), FileIO(started, "w")
        self.returncode: int | None = None
        self._lock = Lock()

    def start(
        self, arguments: Sequence[str], path: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        """Start the worker."""
        with self._started as line:
            line.write(json.dumps([arguments, path, environment]).encode())

    def poll(self, options: int = os.WNOHANG) -> int | None:
        """Return the exit code, or None while the worker runs."""
        with self._lock:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, options)
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
            return self.returncode

    def wait(self) -> int | None:
        """Wait for the exit code."""
        return self.poll(0)

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)


def _become_worker(calls: int, answers: int, start: int, lifeline: int) -> None:
    """Run as a worker after the server's start message, or end with the server."""
    os.setsid()
    os.dup2(calls, 0)
    os.dup2(answers, 1)
    # Copies of other workers' pipes would stay open after the server's end.
    descriptors = {0, 1, 2, start, lifeline}
    for descriptor in {int(name) for name in os.listdir("/proc/self/fd")} - descriptors:
        with suppress(OSError):
            os.close(descriptor)
    message = FileIO(start).readall()
    if message:
        arguments, path, environment = json.loads(message)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [program.__file__, *arguments, str(lifeline), *path]
        program.main()
    os._exit(0)


def fork_workers(count: int) -> None:
    """Fork the first workers that this process will start."""
    spare = [WarmWorker() for _ in range(count)]
    start_cold = process.start_program

    def start_program(
        program: Path, arguments: Sequence[str], path: Sequence[str], environment: Mapping[str, str]
    ) -> process.ChildProgram:
        if not spare:
            return start_cold(program, arguments, path, environment)
        worker: Any = spare.pop()
        worker.start(arguments, path, environment)
        return process.ChildProgram(worker, worker.lifeline)

    patch.object(process, "start_program", start_program).start()
