"""Worker processes without imports: they are forked with their server, and wait for their turn.

A worker's first card costs a second of imports, and a server that is killed draws no other. From
its start on, a worker is the program itself.
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
    """A child that becomes a worker once it is told to; as a `Popen` for who started it."""

    def __init__(self) -> None:
        pipes = [os.pipe() for _ in range(4)]
        (calls, stdin), (stdout, answers), (start, started), (lifeline, held) = pipes
        self.pid = os.fork()
        if self.pid == 0:
            _become_worker(calls, answers, start, lifeline)
        for descriptor in (calls, answers, start, lifeline):
            os.close(descriptor)
        self.stdin, self.stdout = FileIO(stdin, "w"), FileIO(stdout)
        self.lifeline, self._started = FileIO(held, "w"), FileIO(started, "w")
        self.returncode: int | None = None
        self._lock = Lock()

    def start(
        self, arguments: Sequence[str], path: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        """Have it begin."""
        with self._started as line:
            line.write(json.dumps([arguments, path, environment]).encode())

    def poll(self, options: int = os.WNOHANG) -> int | None:
        """Return its exit code; None while it runs."""
        with self._lock:
            if self.returncode is None:
                ended, status = os.waitpid(self.pid, options)
                self.returncode = os.waitstatus_to_exitcode(status) if ended else None
            return self.returncode

    def wait(self) -> int | None:
        """Wait for its exit code."""
        return self.poll(0)

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)


def _become_worker(calls: int, answers: int, start: int, lifeline: int) -> None:
    """Be a worker as soon as the server says so, or end with it; never returns."""
    os.setsid()
    os.dup2(calls, 0)
    os.dup2(answers, 1)
    # The ends of others' pipes are among them, which have to close with the server.
    kept = {0, 1, 2, start, lifeline}
    for descriptor in {int(name) for name in os.listdir("/proc/self/fd")} - kept:
        with suppress(OSError):
            os.close(descriptor)
    told = FileIO(start).readall()
    if told:
        arguments, path, environment = json.loads(told)
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
