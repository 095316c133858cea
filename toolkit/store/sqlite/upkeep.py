"""The upkeep of a data directory's database."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.data_dir.location import find_database, is_copy
from toolkit.store.maintenance.upkeep_database import UpkeepDatabase
from toolkit.store.sqlite.connections import BUSY_TIMEOUT_MS, translate_errors


class SqliteUpkeep(UpkeepDatabase):
    """The database of a data directory that others may use meanwhile; made by `open`.

    Args:
        connection: to it.
        data_dir: where it is.
    """

    kind = "sqlite"
    one_of = "IN (SELECT value FROM json_each(:{name}))"
    roots_per_transaction = 500
    late_tables = frozenset()
    contended = ()

    def __init__(self, connection: sqlite3.Connection, data_dir: Path) -> None:
        super().__init__(connection)
        self._data_dir = data_dir

    @classmethod
    @contextmanager
    def open(cls, data_dir: Path) -> Iterator[Self]:
        """Open a data directory's database of the newest revision.

        Raises:
            ServiceError: `UNAVAILABLE` when there is none, or it cannot be used.
        """
        path = find_database(data_dir, newest=True)
        uri = f"file:{path}?mode=rw"
        with (
            translate_errors(),
            closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection,
        ):
            connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
            connection.execute("PRAGMA wal_autocheckpoint=0")
            yield cls(connection, data_dir)

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Begin a transaction, which has the database's only turn to write at once."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def check_place(self, place: BlobPlace) -> None:
        """Refuse a place that belongs to a database: a directory's records name none of its bytes.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """
        if place.read_mark():
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                f"The artifacts in {place.name} belong to a database: name it (--database,"
                " TOOLKIT_DATABASE), or another place.",
            )

    def shares_bytes(self, place: BlobPlace) -> bool:
        """Tell whether it is a copy, and its folder is not a copy, too."""
        return place.is_remote and is_copy(self._data_dir, self._connection)

    def _adapt(self, given: dict[str, Any]) -> dict[str, Any]:
        return {
            name: json.dumps(value) if isinstance(value, list) else value
            for name, value in given.items()
        }
