"""Worker processes that outlive the engine they were started for, so that the next test has them.

A worker's first card costs a second of imports, and most tests have an engine of their own. What is
tried of workers themselves (`tests/workers`, whatever runs as a program) has real ones.
"""

from collections.abc import Sequence
from typing import Any

from toolkit.workers.process import WorkerProcess

_spare_workers: list[WorkerProcess] = []


class ReusedWorker:
    """A worker as a pool holds it; one that is idle when it is ended goes back.

    Args:
        memory_bytes: what it may allocate.
    """

    def __init__(self, memory_bytes: int) -> None:
        alike = [one for one in _spare_workers if one.is_alive and one.memory_bytes == memory_bytes]
        self._worker = alike[-1] if alike else WorkerProcess(memory_bytes)
        if alike:
            _spare_workers.remove(self._worker)
        self._is_busy = self._is_back = False

    @property
    def pid(self) -> int | None:
        """The process's id."""
        return self._worker.pid

    @property
    def is_alive(self) -> bool:
        """Tell whether it can be asked."""
        return not self._is_back and self._worker.is_alive

    def read_core_time_s(self) -> float:
        """Read the time that it has used of cores."""
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
        """Have a function called."""
        self._is_busy = True
        answer = self._worker.call_function(module, name, args, timeout_s, is_short=is_short)
        self._is_busy = False
        return answer

    def interrupt(self) -> None:
        """Interrupt the function under way."""
        self._worker.interrupt()

    def kill(self) -> None:
        """Give it back; end it, if it is at work."""
        if self._is_back:
            return
        if self._is_busy or self._worker.pid is None:
            self._worker.kill()
        else:
            self._is_back = True
            _spare_workers.append(self._worker)

    def join(self) -> None:
        """Wait until it is gone, unless it was given back."""
        if not self._is_back:
            self._worker.join()


def end_spare_workers() -> None:
    """End those that nobody has."""
    while _spare_workers:
        worker = _spare_workers.pop()
        worker.kill()
        worker.join()
