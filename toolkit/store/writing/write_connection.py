"""The connection that the writer has to a database: one transaction at a time, all or nothing."""

from collections.abc import Callable, Collection
from typing import Protocol

from toolkit.store.changes import Lease
from toolkit.store.writing.submissions import MergedChanges


class DatabaseLocked(Exception):  # noqa: N818 - names what happened
    """Another connection is writing; nothing was written, and the same may be tried again.

    Attributes:
        message: told to those who have waited for too long.
    """

    message = "The store is locked by another process: ask again in a moment."


class DatabaseUnreachable(DatabaseLocked):
    """There is no connection; nothing was written, and the same may be tried again."""

    message = "The database cannot be reached: ask again in a moment."


class DatabaseUnwritable(DatabaseLocked):
    """The database takes no writes now, such as on a full disk; nothing was written.

    A smaller transaction may still fit, and the same transaction may be tried again.

    Args:
        message: the reason and the next step.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CommitInDoubt(Exception):  # noqa: N818 - names what happened
    """The connection was lost in a commit, which was made or was not.

    Args:
        find_outcome: tells whether it was made; it raises `DatabaseLocked` while nobody knows, and
            `ServiceError` if nobody ever will.
    """

    def __init__(self, find_outcome: Callable[[], bool]) -> None:
        super().__init__()
        self.find_outcome = find_outcome


class WriteConnection(Protocol):
    """A database as the writer sees it; used on one thread at a time.

    Attributes:
        is_remote: whether each transaction waits for a network, so that none is made in the loop.
        ballast_bytes: the size of the ballast on the database's disk (`ballast.py`).
    """

    is_remote: bool

    @property
    def ballast_bytes(self) -> int:
        """Return how many bytes of ballast are held; may be called on any thread."""
        ...

    def grow_ballast(self, size_bytes: int) -> None:
        """Hold at least so many bytes of ballast.

        Raises:
            DatabaseLocked: there is no room for them now, or no connection.
            ServiceError: `UNAVAILABLE` for everything else.
        """
        ...

    def drop_ballast(self) -> bool:
        """Give the ballast back to the file system; return whether there was any."""
        ...

    def write(self, leases: Collection[Lease], batch: MergedChanges, wait_ms: int) -> float:
        """Write a batch in one transaction, and return the seconds that its commit took.

        Args:
            leases: those that it is written under.
            batch: what to write.
            wait_ms: the longest to wait for another connection's transaction, where a connection
                that waits gains nothing by it.

        Raises:
            CommitInDoubt: it may have been written.
            Conflict: a value that must be unique is taken.
            DatabaseLocked: it may be tried again; `DatabaseUnwritable` if less may fit.
            LeaseLost: another process holds one of the leases.
            OverLimit: more would be spent than a limit allows.
            ServiceError: `UNAVAILABLE` for everything else.
        """
        ...

    def forget_numbers(self) -> None:
        """Forget the remembered numbers of events: another process may have added some."""
        ...
