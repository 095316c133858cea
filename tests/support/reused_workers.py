"""Worker processes that outlive the engine that started them, so that the next test can use them.

A worker's first card costs a second of imports, and most tests have their own engine. Tests of
workers themselves (`tests/workers`, and everything that runs as a program) use real workers.
"""

from collections.abc import Sequence
from typing import Any

from toolkit.workers.process import WorkerProcess

_spare_workers: list[WorkerProcess] = []


class ReusedWorker:
    """A worker as a pool holds it; a worker that is idle when it is killed is kept for reuse.

    Args:
        memory_bytes: memory that it may allocate.
    """

    def __init__(self, memory_bytes: int) -> None:
        alike = [
            spare
            for spare in _spare_workers
            if spare.is_alive and spare.memory_bytes == memory_bytes
        ]
        self._worker = alike[-1] if alike else WorkerProcess(memory_bytes)
        if alike:
            _spare_workers.remove(self._worker)
        self._is_busy = self._is_back = False

    @property
    def pid(self) -> int | None:
        """Return the id of the process."""
        return self._worker.pid

    @property
    def is_alive(self) -> bool:
        """Return whether it accepts calls."""
        return not self._is_back and self._worker.is_alive

    def read_core_time_s(self) -> float:
        """Read its CPU time in seconds."""
        return self._worker.read_core_time_s()

    def call_function(
        self,
        module: str,
        name: str,
        args: Sequence[object],
        timeout_s: float,
        *,
        is_short: bool = False,
    ) -> Any:
        """Call a function in the worker."""
        self._is_busy = True
        answer = self._worker.call_function(module, name, args, timeout_s, is_short=is_short)
        self._is_busy = False
        return answer

    def interrupt(self) -> None:
        """Interrupt the running function."""
        self._worker.interrupt()

    def kill(self) -> None:
        """Return it to the spare workers, or end it if it is busy."""
        if self._is_back:
            return
        if self._is_busy or self._worker.pid is None:
            self._worker.kill()
        else:
            self._is_back = True
            _spare_workers.append(self._worker)

    def join(self) -> None:
        """Wait until it has ended, unless it was returned."""
        if not self._is_back:
            self._worker.join()


def end_spare_workers() -> None:
    """End the spare workers."""
    while _spare_workers:
        worker = _spare_workers.pop()
        worker.kill()
        worker.join()
