"""The upkeep of a database of PostgreSQL."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Self

from psycopg import errors

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.maintenance.upkeep_database import UpkeepDatabase
from toolkit.store.postgres.artifact_place import PlaceFit, check_fit
from toolkit.store.postgres.mark import is_marked_as_copy
from toolkit.store.postgres.opening import open_existing

# Whoever waits for longer lets go, and tries again.
LOCK_TIMEOUT_MS: Final = 1_000


class PostgresUpkeep(UpkeepDatabase):
    """A database that engines may have open meanwhile."""

    kind = "postgresql"
    one_of = "= ANY(:{name})"
    roots_per_transaction = 100
    late_tables = frozenset({"cache", "artifacts"})
    contended = (errors.LockNotAvailable, errors.DeadlockDetected)

    @classmethod
    @contextmanager
    def open(cls, url: str) -> Iterator[Self]:
        """Open a database of the newest revision.

        Raises:
            ServiceError: `UNAVAILABLE` when it cannot be used.
        """
        with open_existing(url, newest=True) as connection:
            connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}".encode())
            yield cls(connection)

    def begin(self) -> AbstractContextManager[object]:
        """Begin a transaction."""
        transaction: AbstractContextManager[object] = self._connection.transaction()
        return transaction

    def check_place(self, place: BlobPlace) -> None:
        """Refuse a place that is not known to be that of the database's artifacts.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """
        fit = check_fit(self._connection, place)
        if fit is PlaceFit.UNKNOWN:
            raise ServiceError(
                ErrorCode.UNAVAILABLE, f"The artifacts in {place.name} cannot be reached now."
            )
        if fit is PlaceFit.OPEN:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "No engine of this version has opened the database yet, which tells where its"
                " artifacts are: start one (`toolkit serve --database`), and prune then.",
            )

    def shares_bytes(self, place: BlobPlace) -> bool:  # noqa: ARG002 - folders are shared, too
        """Tell whether it is a copy of another one."""
        return is_marked_as_copy(self._connection)
