"""A database that a store has open, of either kind."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Connection, Engine, TextClause

from toolkit.store.blob_places.place import BlobPlace
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

    async def listen(
        self, wake: Callable[[Iterable[str] | None], None], note_work: Callable[[], None]
    ) -> None:
        """Begin to listen for the commits of others.

        Args:
            wake: is called on the loop with the ids of what has new events, or none for all.
            note_work: is called on the loop when others have let go of work.
        """
        ...

    def build_work_notice(self, root_id: str) -> TextClause | None:
        """Build the statement that tells others of a work item; none where they look themselves."""
        ...

    def note_commit(self) -> None:
        """Do what is due after a commit, on the loop."""
        ...

    async def claim_artifacts(self, place: BlobPlace) -> str | None:
        """Have the database and the place of its artifacts know each other.

        Returns:
            what is to be told where this engine's folder is its own, and others have theirs.

        Raises:
            ServiceError: `UNAVAILABLE` when it is not that of the database.
        """
        ...

    async def close(self) -> None:
        """Close everything, once nothing is written any more."""
        ...


@dataclass(frozen=True, slots=True)
class ViewedDatabase:
    """A database that was opened to be looked at, and no more.

    Attributes:
        reads: where committed rows are read.
        clock: what leases end by.
        owner: what knows which owners of leases have gone.
        is_copy: whether it is a copy of another one.
        get_version: tells a number that changes when others commit, where there is one.
        poll_interval_s: how often who waits for an event looks for it, in seconds.
        close: closes everything.
    """

    reads: ReadConnection
    clock: SharedClock
    owner: LeaseOwner
    is_copy: bool
    get_version: Callable[[], int] | None
    poll_interval_s: float
    close: Callable[[], Awaitable[None]]


@contextmanager
def connect_briefly(engine: Engine) -> Iterator[Connection]:
    """Connect for one transaction; the connection is closed if the engine was closed meanwhile.

    SQLAlchemy gives it back to the pool that it came from, which nobody would close again.
    """
    pool = engine.pool
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        if engine.pool is not pool:
            pool.dispose()
