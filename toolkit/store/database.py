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
    """An open database: how a store reads, writes and is notified of it.

    By default no other engine is notified of anything, because SQLite has no notifications.

    Attributes:
        get_version: returns a number that changes with others' commits; None if they send notices.
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

    async def listen(  # noqa: B027 - no notices by default
        self, wake: Callable[[Iterable[str] | None], None], note_work: Callable[[], None]
    ) -> None:
        """Begin to listen for the commits of others.

        Args:
            wake: called on the loop with the ids that have new events, or with None for all.
            note_work: called on the loop when others have released work.
        """

    def build_work_notice(self, root_id: str) -> TextClause | None:  # noqa: ARG002
        """Build the statement that notifies others of a work item; return None if they poll."""
        return None

    def note_commit(self) -> None:  # noqa: B027
        """Do what is due after a commit, on the loop."""

    async def claim_artifacts(self, place: BlobPlace) -> str | None:  # noqa: ARG002
        """Record the database and its artifacts' place in each other.

        Returns:
            A warning if this engine's folder is its own and other engines have theirs, or None.

        Raises:
            ServiceError: `UNAVAILABLE` if the place is not the database's.
        """
        return None

    @abstractmethod
    async def close(self) -> None:
        """Close everything, once nothing is written any more."""


@dataclass(frozen=True, slots=True)
class ViewedDatabase:
    """A database that was opened only for viewing.

    Attributes:
        owner: object that knows which owners of leases have ended.
        get_version: returns a number that changes with others' commits, or None.
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
