"""The location of a data directory: whether it exists, its version, and whether it is a copy.

A copy is told from its original by the file system: a new file has a new inode. The database's
header (`PRAGMA user_version`) keeps a number computed from the inodes of the database and of a file
beside it, and from that file's time, so no copy of the bytes has the same number again. Moving or
renaming the directory changes none of them, nor do changed owners and permissions.
"""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import cast

from sqlalchemy import Connection

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.private_files import open_private
from toolkit.store.schema import HEAD_REVISION, check_version, read_schema_version
from toolkit.store.sqlite.connections import make_unavailable_error, open_read_only

MARKER_FILE = "place"
MARKER_TEXT = """\
A data directory is told from its copies by this file, among others: work that was left lying in a
copy is not taken up until somebody says so (`toolkit serve --take-up`). Leave it here.
"""
UNMARKED_NUMBER = 0  # as SQLite makes it, and as earlier versions left it
COPY_NUMBER = 1  # known to be a copy, though of an original without a number


def find_database(data_dir: Path, *, newest: bool = False) -> Path:
    """Find the database of a data directory, and refuse one that this version cannot read.

    A damaged database is found, too: the code that reads it reports the damage.

    Args:
        data_dir: where everything is kept.
        newest: refuse one of an earlier version, too, which may lack tables.

    Raises:
        ServiceError: `UNAVAILABLE` when it is no data directory, or of another version.
    """
    database = data_dir / "state.db"
    try:
        there = database.is_file()
    except PermissionError:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            f"{data_dir} may not be read: run this as the user whose it is.",
        ) from None
    if not there:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            f"There is no data directory at {data_dir}: name the one there is (--data-dir); a new"
            " one is made by `toolkit serve`.",
        )
    try:
        with closing(open_read_only(database, briefly=True)) as connection:
            version = read_schema_version(connection)
    except sqlite3.OperationalError as error:
        raise make_unavailable_error(error) from error
    except sqlite3.DatabaseError:
        return database
    if version is not None:
        check_version(version)
    if newest and (version is None or version.revision < HEAD_REVISION):
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            f"The data directory {data_dir} is of an earlier version: open it first, such as with"
            " `toolkit serve`, which brings it up to date.",
        )
    return database


def is_copy(data_dir: Path, connection: sqlite3.Connection) -> bool:
    """Tell whether a data directory is a copy of another one, or of an earlier state of itself."""
    kept = _read_stored_number(connection)
    if kept == UNMARKED_NUMBER:
        # A directory that an earlier version opened has a folder of owners; its backups have none.
        return not (data_dir / "owners").exists() and _has_accounts(connection)
    return kept != _compute_number(data_dir)


def claim_location(connection: Connection, data_dir: Path, *, take_up: bool) -> bool:
    """Mark a new directory as an original, and a copy as one where that is asked for.

    Args:
        connection: to the database, in no transaction.
        data_dir: where everything is kept.
        take_up: go on with the open work of a copy, which is no copy from then on.

    Returns:
        whether it is still a copy.
    """
    driver = cast("sqlite3.Connection", connection.connection.dbapi_connection)
    if _read_stored_number(driver) == _compute_number(data_dir):
        return False
    connection.exec_driver_sql("BEGIN IMMEDIATE")  # another process may be marking it just now
    copy = is_copy(data_dir, driver) and not take_up
    kept = _read_stored_number(driver)
    if not copy:
        marker = data_dir / MARKER_FILE
        if not marker.exists():
            with open(marker, "w", encoding="utf-8", opener=open_private) as file:
                file.write(MARKER_TEXT)
        kept = _compute_number(data_dir)
    elif kept == UNMARKED_NUMBER:
        kept = COPY_NUMBER
    connection.exec_driver_sql(f"PRAGMA user_version = {kept}")
    connection.exec_driver_sql("COMMIT")
    return copy


def _read_stored_number(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _compute_number(data_dir: Path) -> int:
    """Compute a number from the location of a directory's files; `COPY_NUMBER` if some are missing.

    The time is in whole seconds: not all file systems keep finer ones.
    """
    try:
        marker, database = (data_dir / MARKER_FILE).stat(), (data_dir / "state.db").stat()
    except OSError:
        return COPY_NUMBER
    facts = f"{marker.st_ino} {int(marker.st_mtime)} {database.st_ino}"
    number = int.from_bytes(hashlib.sha256(facts.encode()).digest()[:4], "big") >> 1
    return max(number, COPY_NUMBER + 1)


def _has_accounts(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM accounts LIMIT 1").fetchone() is not None
