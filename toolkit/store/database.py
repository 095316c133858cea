"""A database that a store has open, of either kind."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, TextClause

from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.data_dir.owners import LeaseOwner
from toolkit.store.leases.clock import SharedClock
from toolkit.store.read_connection import ReadConnection
from toolkit.store.writing.write_connection import WriteConnection


class OpenDatabase(ABC):
    """A database that was opened: the ways in which a store reads, writes and hears of it.

    By default nobody else is told of anything, as SQLite has no way to.

    Attributes:
        reads: where committed rows are read.
        writes: where the writer's transactions are made.
        clock: what leases end by.
        owner: this opening of it.
        is_copy: whether it is a copy of another one.
        poll_interval_s: how often who waits for an event looks for it, in seconds.
        get_version: tells a number that changes when others commit; None where they tell.
    """

    reads: ReadConnection
    writes: WriteConnection
    clock: SharedClock
    owner: LeaseOwner
    is_copy: bool
    poll_interval_s: float
    get_version: Callable[[], int] | None = None

    @abstractmethod
    def begin(self) -> AbstractContextManager[Connection]:
        """Begin a transaction on a connection of its own; on any thread."""

    async def listen(  # noqa: B027 - nobody tells by default
        self, wake: Callable[[Iterable[str] | None], None], note_work: Callable[[], None]
    ) -> None:
        """Begin to listen for the commits of others.

        Args:
            wake: is called on the loop with the ids of what has new events, or none for all.
            note_work: is called on the loop when others have let go of work.
        """

    def build_work_notice(self, root_id: str) -> TextClause | None:  # noqa: ARG002
        """Build the statement that tells others of a work item; None where they look themselves."""
        return None

    def note_commit(self) -> None:  # noqa: B027
        """Do what is due after a commit, on the loop."""

    async def claim_artifacts(self, place: BlobPlace) -> str | None:  # noqa: ARG002
        """Have the database and the place of its artifacts know each other.

        Returns:
            what is to be told where this engine's folder is its own, and others have theirs.

        Raises:
            ServiceError: `UNAVAILABLE` when it is not that of the database.
        """
        return None

    @abstractmethod
    async def close(self) -> None:
        """Close everything, once nothing is written any more."""


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
