"""Several servers on one port: `toolkit serve --workers N` starts and restarts them."""

import asyncio
import logging
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from typing import Any

log = logging.getLogger(__name__)

# In addition to the time that a server takes for its own shutdown.
STOP_S = 30.0
# Backoff: a worker that lived for less than SHORT_LIFE_S is started again after a pause, which
# doubles each time up to MAX_PAUSE_S.
SHORT_LIFE_S, FIRST_PAUSE_S, MAX_PAUSE_S = 5.0, 0.5, 30.0


class WorkerGroup:
    """Worker processes, each a server of its own on the same port and store.

    The first worker is ready before the others start: it creates and migrates the shared store. A
    worker that dies is restarted, even if it dies during its start. A worker that refuses to
    start, by its own exit code, ends the group, because its reason holds for every worker. Each
    worker ends when its standard input does, so that none outlives this process.

    Args:
        commands: the command line of each worker, which prints a line once it answers requests.
        on_ready: the function to call once all workers answer requests.
    """

    def __init__(self, commands: Sequence[Sequence[str]], on_ready: Callable[[], None]) -> None:
        self._commands = commands
        self._on_ready = on_ready
        self._running: dict[int, Process] = {}
        self._ready = [asyncio.Event() for _ in commands]
        self._stopping = asyncio.Event()
        self._exit_code = 0

    async def run(self) -> int:
        """Run all workers until SIGTERM or SIGINT.

        Returns:
            the exit code of a worker that refused to start, else 0.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        tasks = asyncio.gather(self._report_ready(), *map(self._keep, range(len(self._ready))))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            ends: list[asyncio.Future[Any]] = [tasks, stopping]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if tasks.done():  # only an error ends it before the group stops
                tasks.result()
            return self._exit_code
        finally:
            tasks.cancel()
            stopping.cancel()
            await asyncio.gather(*map(self._stop, list(self._running.values())))

    async def _report_ready(self) -> None:
        for ready in self._ready:
            await ready.wait()
        self._on_ready()

    async def _keep(self, number: int) -> None:
        """Start a worker and restart it whenever it dies; stop the group if it refuses to start."""
        if number:
            await self._ready[0].wait()
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                code = await self._run_worker(number)
            except OSError as error:  # such as too many processes
                log.warning("worker %d could not be started: %s", number + 1, error.strerror)
            else:
                if self._stopping.is_set():
                    return
                if code > 0 and not self._ready[number].is_set():
                    self._exit_code = code  # the worker has logged the reason
                    self._stopping.set()
                    return
                log.warning("worker %d exited with code %d; restarting it", number + 1, code)
            if time.monotonic() - began > SHORT_LIFE_S:
                pause_s = FIRST_PAUSE_S
            else:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, MAX_PAUSE_S)

    async def _run_worker(self, number: int) -> int:
        """Run a worker once, and return its exit code: negative if a signal ended it."""
        process = await asyncio.create_subprocess_exec(
            *self._commands[number], stdin=PIPE, stdout=PIPE
        )
        self._running[number] = process
        assert process.stdout is not None  # noqa: S101 - as it is piped
        if (await process.stdout.readline()).endswith(b"\n"):
            self._ready[number].set()
        return await process.wait()

    async def _stop(self, process: Process) -> None:
        """Ask a worker to stop, and wait for its end; kill it after `STOP_S` seconds."""
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_S)
        except TimeoutError:
            process.kill()
            await process.wait()


def build_commands(
    arguments: Sequence[str], count: int, port: int, metrics_port: int | None
) -> list[list[str]]:
    """Build the command line of each worker.

    Args:
        arguments: arguments of this process; of a repeated option the last counts.
        count: number of workers.
        port: port on which all of them listen.
        metrics_port: first worker's port of metrics; each other worker gets the next. 0 picks any.
    """
    commands = []
    for i in range(count):
        options = ["--workers", "1", "--port", str(port), "--is-worker"]
        if metrics_port is not None:
            options += ["--metrics-port", str(metrics_port + i if metrics_port else 0)]
        commands.append([sys.executable, "-m", "toolkit", *arguments, *options])
    return commands
