"""Room for the results of calls in flight, on the disks of rows and of artifacts."""

import asyncio
from dataclasses import dataclass
from typing import Final

from toolkit.store.blobs import BlobStore
from toolkit.store.changes import make_retryable_error
from toolkit.store.writing.outages import WriteOutages
from toolkit.store.writing.writer import WORK_WAIT_S, ChangeWriter

# A transaction of a result changes some thirty pages of tables and indexes, each of which is in the
# write-ahead log as a whole.
ROWS_BYTES: Final = 128 * 1024
# Steps in which the ballast grows, so that few calls have to wait for it; and the most that is held
# of a disk: with more calls in flight than that covers, they share it.
STEP_BYTES: Final = 256 * 1024
MAX_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ResultSize:
    """The space that the result of a call may take.

    Attributes:
        rows: bytes in the database.
        artifacts: bytes where artifacts are.
    """

    rows: int
    artifacts: int


class ResultRoom:
    """The disk space that is reserved for the results of all calls in flight.

    Args:
        outages: outages of writes; nothing is reserved while an outage lasts.
    """

    def __init__(self, outages: WriteOutages, writer: ChangeWriter, blobs: BlobStore) -> None:
        self._outages = outages
        self._writer = writer
        self._blobs = blobs
        self._rows_bytes = self._artifact_bytes = 0

    async def hold(self, size: ResultSize) -> "RoomHold":
        """Reserve disk space for one result; wait while there is none, or while writes fail.

        Raises:
            ServiceError: `UNAVAILABLE` if there was none for as long as results wait.
        """
        room = RoomHold(self, size)
        self.add(size, 1)
        try:
            await self.ensure()
        except BaseException:
            room.release()
            raise
        return room

    async def ensure(self) -> None:
        """Wait until the last write succeeded and all reservations are covered by disk space.

        Raises:
            ServiceError: `UNAVAILABLE` if that took too long.
        """
        if not self._outages.is_under_way and self._is_covered():
            return
        try:
            async with asyncio.timeout(WORK_WAIT_S):
                await self._wait_for_room()
        except TimeoutError:
            raise make_retryable_error(
                "The store accepts no writes, so no call begins: free disk space, then retry."
            ) from None

    async def _wait_for_room(self) -> None:
        while True:
            await self._outages.wait_until_over()
            if self._is_covered():
                return
            if self._writer.ballast_bytes < self._writer.wanted_ballast_bytes:
                await self._writer.grow_ballast()
            else:
                await self._blobs.grow_ballast(_round_up(self._artifact_bytes), WORK_WAIT_S)

    def _is_covered(self) -> bool:
        """Check whether the ballast on both disks covers all reservations."""
        return (
            self._writer.ballast_bytes >= self._writer.wanted_ballast_bytes
            and self._blobs.ballast_bytes >= _round_up(self._artifact_bytes)
        )

    def add(self, size: ResultSize, sign: int) -> None:
        """Add a size to the space that calls in flight need, or subtract it if `sign` is -1."""
        self._rows_bytes += sign * size.rows
        self._artifact_bytes += sign * size.artifacts
        self._writer.wanted_ballast_bytes = _round_up(self._rows_bytes)


def _round_up(size_bytes: int) -> int:
    """Round a size up to whole steps, but at most to the maximum reservation."""
    return min(MAX_BYTES, -(-size_bytes // STEP_BYTES) * STEP_BYTES)


class RoomHold:
    """Disk space that is reserved for one result, until it is stored or will never come."""

    def __init__(self, room: ResultRoom, size: ResultSize) -> None:
        self._room = room
        self._size: ResultSize | None = size

    def release(self) -> None:
        """Release the space; a second call does nothing."""
        if self._size is not None:
            self._room.add(self._size, -1)
            self._size = None
