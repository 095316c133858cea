"""The location of a data directory: whether it exists, its version, and whether it is a copy.

The file system distinguishes a copy from its original, because a new file has a new inode. The
database's header (`PRAGMA user_version`) keeps a number that no copy of the bytes has again. It is
computed from the inodes of the database and of a marker file next to it, and from that file's time.
Moving or renaming the directory changes none of them, nor do changed owners and permissions.
"""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final, cast

from sqlalchemy import Connection

from toolkit.contract.errors import ServiceError
from toolkit.store.changes import make_unusable_error
from toolkit.store.private_files import open_private
from toolkit.store.schema import HEAD_REVISION, check_version, read_schema_version
from toolkit.store.sqlite.connections import make_unavailable_error, open_read_only

MARKER_FILE = "place"
MARKER_TEXT = """\
This file helps to distinguish a data directory from its copies. Unfinished work in a copy is not
resumed until the copy is opened with `toolkit serve --take-up`. Leave this file here.
"""
UNMARKED_NUMBER = 0  # as SQLite makes it
COPY_NUMBER = 1  # a known copy, regardless of its files
# In the database's header (`PRAGMA application_id`), so that every copy of it has it, too.
SANDBOX_WORLD: Final = 0x746B7362
LIVE_WORLD: Final = 0x746B6C76


def find_database(data_dir: Path, *, newest: bool = False) -> Path:
    """Find the database of a data directory, and refuse one that this version cannot read.

    A damaged database is found, too: the code that reads it reports the damage.

    Args:
        newest: refuse one of an earlier version, too, which may lack tables.

    Raises:
        ServiceError: `UNAVAILABLE` when it is no data directory, or of another version.
    """
    database = data_dir / "state.db"
    try:
        exists = database.is_file()
    except PermissionError:
        raise make_unusable_error(
            f"{data_dir} cannot be read: run this as the user who owns it."
        ) from None
    if not exists:
        raise make_unusable_error(
            f"There is no data directory at {data_dir}: set the path of an existing directory"
            " (--data-dir), or create a new directory with `toolkit serve`."
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
        raise make_unusable_error(
            f"The data directory {data_dir} is of an earlier version: open it first, for example"
            " with `toolkit serve`, which migrates it."
        )
    return database


def is_copy(data_dir: Path, connection: sqlite3.Connection) -> bool:
    """Check whether a data directory is a copy: of another, or of its own earlier state."""
    return _read_stored_number(connection) not in (UNMARKED_NUMBER, _compute_number(data_dir))


def claim_location(connection: Connection, data_dir: Path, *, take_up: bool) -> bool:
    """Mark a new directory as an original, and also a copy if `take_up` is true.

    Args:
        connection: connection to the database, in no transaction.
        take_up: whether to resume the open work of a copy, which then is a copy no longer.

    Returns:
        Whether it is still a copy.
    """
    driver = cast("sqlite3.Connection", connection.connection.dbapi_connection)
    if _read_stored_number(driver) == _compute_number(data_dir):
        return False
    connection.exec_driver_sql("BEGIN IMMEDIATE")  # another process may be marking it just now
    copy = is_copy(data_dir, driver) and not take_up
    if not copy:
        marker = data_dir / MARKER_FILE
        if not marker.exists():
            with open(marker, "w", encoding="utf-8", opener=open_private) as file:
                file.write(MARKER_TEXT)
        connection.exec_driver_sql(f"PRAGMA user_version = {_compute_number(data_dir)}")
    connection.exec_driver_sql("COMMIT")
    return copy


def _read_stored_number(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _compute_number(data_dir: Path) -> int:
    """Compute a number from the location of a directory's files; `COPY_NUMBER` if any is missing.

    The time is in whole seconds, because not all file systems have finer times.
    """
    try:
        marker, database = (data_dir / MARKER_FILE).stat(), (data_dir / "state.db").stat()
    except OSError:
        return COPY_NUMBER
    facts = f"{marker.st_ino} {int(marker.st_mtime)} {database.st_ino}"
    number = int.from_bytes(hashlib.sha256(facts.encode()).digest()[:4], "big") >> 1
    return max(number, COPY_NUMBER + 1)


def claim_world(connection: Connection, data_dir: Path, *, sandbox: bool) -> None:
    """Mark a directory as the sandbox's or the real world's, if it is not marked yet.

    Raises:
        ServiceError: `UNAVAILABLE` when it belongs to the other world.
    """
    world = SANDBOX_WORLD if sandbox else LIVE_WORLD
    kind = _read_world(connection)
    if kind is None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # another process may be marking it just now
        kind = _read_world(connection) or world
        connection.exec_driver_sql(f"PRAGMA application_id = {kind}")
        connection.exec_driver_sql("COMMIT")
    if kind != world:
        option = "data_dir, --data-dir"
        raise make_world_error(f"The data directory {data_dir}", option, sandbox=sandbox)


def make_world_error(name: str, option: str, *, sandbox: bool) -> ServiceError:
    """Make the error for a data directory or database of the other world.

    Args:
        option: settings that select another directory or database.
    """
    message = (
        f"{name} holds real work, which must not be mixed with simulated work: set another"
        f" ({option}) for the sandbox."
        if sandbox
        else f"{name} belongs to the sandbox: open it with sandbox=True (--sandbox), or set another"
        f" ({option}) for real work."
    )
    return make_unusable_error(message)


def _read_world(connection: Connection) -> int | None:
    kind = int(connection.exec_driver_sql("PRAGMA application_id").scalar_one())
    return kind if kind in (SANDBOX_WORLD, LIVE_WORLD) else None
