"""The upkeep of a data directory's database, and the repairs of the directory."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import disk_usage
from typing import Any, Final, Self

from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.changes import make_unusable_error
from toolkit.store.data_dir.location import find_database, is_copy
from toolkit.store.data_dir.owners import find_active_owners
from toolkit.store.maintenance.upkeep_database import DataDirIssue, PlaceState, UpkeepDatabase
from toolkit.store.private_files import create_private_file, is_writable
from toolkit.store.schema import check_not_later, read_schema_version
from toolkit.store.sqlite.connections import BUSY_TIMEOUT_MS, open_read_only, translate_errors

LOW_DISK_BYTES: Final = 256 * 1024 * 1024
# In these versions two connections that checkpoint at once can corrupt a database: the toolkit has
# one do it, under a lock.
WAL_BUG_VERSIONS: Final = ((3, 7, 0), (3, 51, 2))


class SqliteUpkeep(UpkeepDatabase):
    """The database of a data directory that others may use meanwhile; made by `open` or `view`."""

    kind = "sqlite"
    word = "data directory"
    one_of = "{column} IN (SELECT value FROM json_each(:{name}))"
    rows_per_transaction = 3_000
    contended = ()
    shares_folders = False

    def __init__(self, connection: sqlite3.Connection, data_dir: Path) -> None:
        super().__init__(connection)
        self._data_dir = data_dir

    @classmethod
    @contextmanager
    def open(cls, data_dir: Path) -> Iterator[Self]:
        """Open a data directory's database of the newest revision.

        Raises:
            ServiceError: `UNAVAILABLE` when there is none, or it cannot be used, such as by a later
                version's tables.
        """
        path = find_database(data_dir, newest=True)
        uri = f"file:{path}?mode=rw"
        with (
            translate_errors(),
            closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection,
        ):
            connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
            connection.execute("PRAGMA wal_autocheckpoint=0")
            check_not_later(read_schema_version(connection))
            yield cls(connection, data_dir)

    @classmethod
    @contextmanager
    def view(cls, data_dir: Path) -> Iterator[Self]:
        """Open a data directory's database for reading, in any state.

        Raises:
            ServiceError: `UNAVAILABLE` if there is none, or it cannot be read.
        """
        database = find_database(data_dir)
        with translate_errors(), closing(open_read_only(database)) as connection:
            yield cls(connection, data_dir)

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Begin a transaction that locks the database for writing at once."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def is_copy(self) -> bool:
        """Check whether it is a copy of another data directory."""
        return is_copy(self._data_dir, self.connection)

    def has_engines(self) -> bool:
        """Check whether engines have it open."""
        return bool(find_active_owners(self._data_dir))

    def count_left(self) -> int:
        """Count the unfinished work items that processes left when they ended."""
        alive = find_active_owners(self._data_dir)
        owners = self.fetch("SELECT owner FROM roots WHERE open = 1")
        return sum(owner not in alive for (owner,) in owners)

    def check_place(self, place: BlobPlace) -> None:
        """Reject artifact storage that is marked as a PostgreSQL database's.

        The records of a data directory name none of the bytes there.
        """
        if place.read_mark():
            raise make_unusable_error(
                f"The artifacts in {place.name} belong to a database: set its address (--database,"
                " TOOLKIT_DATABASE), or choose another place."
            )

    def examine_place(self, place: BlobPlace) -> PlaceState:
        """Check whether a folder or object storage is that of the directory's artifacts.

        If the folder is missing, the bytes are elsewhere, by a setting that this process lacks.
        """
        is_known = place.is_remote or (self._data_dir / "artifacts").exists()
        is_known = is_known or any(True for _ in place.list_entries())
        return PlaceState(is_known, is_own=is_known)

    def check_surroundings(self) -> Iterator[DataDirIssue]:
        """Check the disk, the version of SQLite, and the files of processes that have ended."""
        free = disk_usage(self._data_dir).free
        if not is_writable(self._data_dir):
            yield DataDirIssue(
                "This process cannot write to it: open it read-only (--read-only).", serious=False
            )
        elif free < LOW_DISK_BYTES:
            yield DataDirIssue(
                f"Only {free // 1024**2} MB are free on its disk: new work may be refused."
            )
        if WAL_BUG_VERSIONS[0] <= sqlite3.sqlite_version_info <= WAL_BUG_VERSIONS[1]:
            yield DataDirIssue(
                f"SQLite {sqlite3.sqlite_version} can corrupt a database that two connections"
                " checkpoint at once: open it with no program other than the toolkit.",
                serious=False,
            )
        locked = {path.stem for path in (self._data_dir / "owners").glob("*.lock")}
        if dead_owners := locked - find_active_owners(self._data_dir):
            yield DataDirIssue(
                f"{len(dead_owners)} ended processes left lock files.", "delete them", serious=False
            )

    def find_damage(self) -> list[str]:
        """Return the errors that SQLite finds in its file."""
        try:
            rows = self.connection.execute("PRAGMA integrity_check(20)").fetchall()
        except sqlite3.DatabaseError as error:
            return [str(error)]
        return [str(row[0]) for row in rows if row[0] != "ok"]

    def copy_records(self, folder: Path) -> list[str]:
        """Copy all records as of one moment, so that the folder is a data directory itself."""
        copy = folder / "state.db"
        create_private_file(copy)
        self.connection.execute("VACUUM INTO ?", (str(copy),))  # an empty file may be there
        with closing(sqlite3.connect(copy)) as target:
            return SqliteUpkeep(target, folder).list_digests()

    def _adapt(self, parameters: dict[str, Any]) -> dict[str, Any]:
        return {
            name: json.dumps(value) if isinstance(value, list) else value
            for name, value in parameters.items()
        }
