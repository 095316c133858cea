"""A database that a store has open, of either kind."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from sqlalchemy import Connection

from toolkit.store.data_dir.owners import LeaseOwner
from toolkit.store.leases.clock import SharedClock
from toolkit.store.read_connection import ReadConnection
from toolkit.store.writing.write_connection import WriteConnection


class OpenDatabase(Protocol):
    """A database that was opened: the ways in which a store reads, writes and hears of it.

    Attributes:
        reads: where committed rows are read.
        writes: where the writer's transactions are made.
        clock: what leases end by.
        owner: this opening of it.
        is_copy: whether it is a copy of another one.
        poll_interval_s: how often who waits for an event looks for it, in seconds.
    """

    reads: ReadConnection
    writes: WriteConnection
    clock: SharedClock
    owner: LeaseOwner
    is_copy: bool
    poll_interval_s: float

    @property
    def get_version(self) -> Callable[[], int] | None:
        """Return what tells a number that changes when others commit; none where they tell."""
        ...

    def begin(self) -> AbstractContextManager[Connection]:
        """Begin a transaction on a connection of its own; on any thread."""
        ...

    async def listen(self, wake: Callable[[Iterable[str] | None], None]) -> None:
        """Begin to listen for the commits of others.

        Args:
            wake: is called on the loop with the ids of what has new events, or none for all.
        """
        ...

    def note_commit(self) -> None:
        """Do what is due after a commit, on the loop."""
        ...

    async def close(self) -> None:
        """Close everything, once nothing is written any more."""
        ...
