"""Several servers on one port: `toolkit serve --workers N` starts them, and starts them again."""

import asyncio
import logging
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

# Beyond what a server takes for its own end.
STOP_S = 30.0
# A worker that lived for less is started again later and later, up to the longest pause.
SHORT_LIFE_S, FIRST_PAUSE_S, MAX_PAUSE_S = 5.0, 0.5, 30.0


class WorkerGroup:
    """Worker processes, each a server of its own on the same port and store.

    The first one is ready before the others start: it creates and migrates what they share. One
    that dies is started again. Each ends when its standard input does, so that none outlives this
    process, however that ends.

    Args:
        commands: the command line of each worker; it prints a line once it answers requests.
        on_ready: called once all of them do.
    """

    def __init__(self, commands: Sequence[Sequence[str]], on_ready: Callable[[], None]) -> None:
        self._commands = commands
        self._on_ready = on_ready
        self._running: dict[int, Process] = {}
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Run all workers until SIGTERM or SIGINT.

        Returns:
            the exit code: that of a worker that could not begin to serve, else 0.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        keepers: list[asyncio.Task[None]] = []
        try:
            numbers = range(len(self._commands))
            codes = [await self._start(0)]
            if codes == [None]:
                codes += await asyncio.gather(*map(self._start, numbers[1:]))
            failed = next((code for code in codes if code is not None), None)
            if failed is not None:  # it has said itself why it cannot serve
                return failed
            self._on_ready()
            keepers = [asyncio.create_task(self._keep(i)) for i in numbers]
            await self._stopping.wait()
            return 0
        finally:
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*map(self._stop, list(self._running.values())))

    async def _start(self, number: int) -> int | None:
        """Start a worker, and wait until it answers requests; its exit code, if it ended before."""
        process = await asyncio.create_subprocess_exec(
            *self._commands[number], stdin=PIPE, stdout=PIPE
        )
        self._running[number] = process
        assert process.stdout is not None  # noqa: S101 - as it is piped
        reading = asyncio.ensure_future(process.stdout.readline())
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait([reading, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if self._stopping.is_set():
            reading.cancel()
            return 0
        return None if reading.result() else await process.wait()

    async def _keep(self, number: int) -> None:
        """Start a worker again whenever it has died."""
        pause_s = FIRST_PAUSE_S
        while True:
            began = time.monotonic()
            code = await self._running[number].wait()
            log.warning("worker %d ended with %d, and is started again", number + 1, code)
            if time.monotonic() - began > SHORT_LIFE_S:
                pause_s = FIRST_PAUSE_S
            else:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, MAX_PAUSE_S)
            await self._start(number)

    async def _stop(self, process: Process) -> None:
        """Have a worker drain, and wait for its end."""
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
        arguments: those of this process; of an option that stands there twice the last counts.
        count: how many workers.
        port: the port that all of them listen on.
        metrics_port: that of the first one's metrics, each other one's is the next; 0 picks any.
    """
    commands = []
    for i in range(count):
        own = ["--workers", "1", "--port", str(port), "--is-worker"]
        if metrics_port is not None:
            own += ["--metrics-port", str(metrics_port + i if metrics_port else 0)]
        commands.append([sys.executable, "-m", "toolkit", *arguments, *own])
    return commands
