"""Outages of writes: nothing new is begun while the last write failed."""

import asyncio
from collections.abc import Callable

ROWS, ARTIFACTS = "rows", "artifacts"


class WriteOutages:
    """Which writes, of rows or of artifacts' bytes, failed last, for a temporary reason.

    A result of a paid call waits in memory during an outage, such as a full disk. A new call would
    only add to the waiting results, so the code that begins calls waits for the end of the outage
    first.

    Attributes:
        on_failure: called each time that a write of rows fails.
    """

    def __init__(self) -> None:
        self.on_failure: Callable[[], object] = lambda: None
        self._places: set[str] = set()
        self._over = asyncio.Event()
        self._over.set()

    def note_failure(self, place: str) -> None:
        """Note that the last write of rows, or of artifacts, failed and is tried again."""
        self._places.add(place)
        if place == ROWS:
            self.on_failure()
        self._over.clear()

    def note_success(self, place: str) -> None:
        """Note that the last write of rows, or of artifacts, succeeded, or that none waits now."""
        self._places.discard(place)
        if not self._places:
            self._over.set()

    @property
    def is_under_way(self) -> bool:
        """Whether the last write of rows, or of artifacts, failed."""
        return bool(self._places)

    async def wait_until_over(self) -> None:
        """Wait until the last write of rows and the last write of artifacts have succeeded."""
        while self._places:
            await self._over.wait()
