"""The kernels that a worker keeps warm for a batch, from one of its notebooks to the next."""

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from toolkit.batch.kernel.sources import KernelSource

IDLE_S = 30.0  # seconds without use after which a worker's ready kernels are ended


class SourceKeeper:
    """Keeps the prepared kernels of batches on this worker between their notebooks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sources: dict[str, KernelSource] = {}
        self._users: dict[str, int] = {}

    @contextmanager
    def use(self, batch_id: str, *, fork: bool) -> Iterator[KernelSource]:
        """Yield the kernel source of a batch; first close unused sources of other batches."""
        with self._lock:
            for old in [key for key in self._sources if key != batch_id and not self._users[key]]:
                self._discard(old)
            if batch_id not in self._sources:
                self._sources[batch_id] = KernelSource(fork=fork, spares=1)
                self._users[batch_id] = 0
            self._users[batch_id] += 1
            source = self._sources[batch_id]
        try:
            yield source
        finally:
            with self._lock:
                if self._sources.get(batch_id) is source:
                    self._users[batch_id] -= 1
                    timer = threading.Timer(IDLE_S, self._close_idle, (batch_id, source))
                    timer.daemon = True
                    timer.start()

    def close(self, batch_id: str) -> None:
        """Kill all kernels of a batch."""
        with self._lock:
            self._discard(batch_id)

    def close_all(self) -> None:
        """Kill the kernels of all batches in this process, and forget their sources."""
        with self._lock:
            for batch_id in list(self._sources):
                self._discard(batch_id)

    def _close_idle(self, batch_id: str, source: KernelSource) -> None:
        with self._lock:
            if self._sources.get(batch_id) is source and not self._users[batch_id]:
                self._discard(batch_id)

    def _discard(self, batch_id: str) -> None:
        source = self._sources.pop(batch_id, None)
        self._users.pop(batch_id, None)
        if source is not None:
            source.close()


@cache
def get_source_keeper() -> SourceKeeper:
    """Return the single keeper of this process."""
    keeper = SourceKeeper()
    atexit.register(keeper.close_all)
    return keeper
