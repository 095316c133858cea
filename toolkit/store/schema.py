"""The schema of a data directory: creates and migrates it, and rejects newer versions.

A new directory gets the newest tables at once; migrations are for tables of earlier releases.
Until 0.1.0 is tagged there is one schema and no migration; later changes need one each. A digest
of the columns tells apart tables that different unreleased versions made.

Two neighbouring versions work on the same tables during an upgrade. So a migration only adds
tables and columns that an earlier version ignores. It removes only tables and columns that the
previous version uses no more. Tables store the oldest revision whose engines may use them.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import cast

from sqlalchemy import Connection, Dialect, text
from sqlalchemy.schema import CreateTable

from toolkit.store.changes import make_unusable_error
from toolkit.store.configuration_version import CONFIGURATION_TRIGGERS, FIRST_VERSION_SQL
from toolkit.store.cost_index import build_cost_index
from toolkit.store.dialects import get_dialect
from toolkit.store.stored_bytes import TRIGGERS
from toolkit.store.tables import build_index, metadata
from toolkit.store.text_index import list_sqlite_schema

FIRST_REVISION = "0100"  # of 0.1.0; smaller numbers are of versions that were never released
HEAD_REVISION = "0100"
# The earliest revision whose engines can use the tables of `HEAD_REVISION`.
OLDEST_REVISION = "0100"
MIGRATIONS_DIR = Path(__file__).parent / "migrations"
# Instead of a revision, while a data directory is moved into a database.
MOVING = "moving "
# A digest of the columns of the newest tables.
TABLES_SHAPE = hashlib.sha256(
    " ".join(sorted(str(column) for table in metadata.sorted_tables for column in table.c)).encode()
).hexdigest()[:16]
# As alembic creates it, which reads it at the next migration; but for the last two columns.
VERSION_TABLE_SQL = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, oldest VARCHAR(32), "
    "shape VARCHAR(16), CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)
SET_VERSION_SQL = (
    "INSERT INTO alembic_version (version_num, oldest, shape)"  # noqa: S608 - our values
    f" VALUES ('{HEAD_REVISION}', '{OLDEST_REVISION}', '{TABLES_SHAPE}')"
)
# Earlier unreleased versions lack the last columns.
READ_VERSION_SQL = "SELECT * FROM alembic_version"
# The index of tags has a row for each tag of each piece of work, kept by triggers.
_ADD_TAGS_SQL = (
    "INSERT OR IGNORE INTO tags (account_id, tag, resource_id)"
    " SELECT NEW.account_id, each.value, NEW.id FROM json_each(NEW.tags) AS each;"
)
_REMOVE_TAGS_SQL = (
    "DELETE FROM tags WHERE account_id = OLD.account_id AND resource_id = OLD.id"
    " AND tag IN (SELECT each.value FROM json_each(OLD.tags) AS each);"
)
TAG_TRIGGERS: tuple[str, ...] = (
    f"CREATE TRIGGER index_tags_insert AFTER INSERT ON annotations BEGIN {_ADD_TAGS_SQL} END",
    "CREATE TRIGGER index_tags_update AFTER UPDATE OF tags ON annotations"
    f" BEGIN {_REMOVE_TAGS_SQL} {_ADD_TAGS_SQL} END",
    f"CREATE TRIGGER index_tags_delete AFTER DELETE ON annotations BEGIN {_REMOVE_TAGS_SQL} END",
)


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The version of a database's tables.

    Attributes:
        revision: newest migration that was run.
        oldest: earliest revision whose engines may use the tables; None if it is not stored.
        shape: `TABLES_SHAPE` of the version that made or migrated the tables; None if not stored.
    """

    revision: str
    oldest: str | None = None
    shape: str | None = None


def migrate_schema(
    connection: Connection, *, is_in_use: Callable[[], bool] = lambda: False
) -> SchemaVersion:
    """Create the tables of SQLite, or run the missing migrations.

    Args:
        connection: connection to the database, in no transaction.

    Raises:
        ServiceError: `UNAVAILABLE` in the cases of `bring_up_to_date`.
    """
    driver = cast("sqlite3.Connection", connection.connection.dbapi_connection)
    return bring_up_to_date(
        partial(read_schema_version, driver),
        partial(_lock_database, connection),
        partial(_create_tables, connection),
        partial(run_migrations, connection),
        is_in_use,
    )


def bring_up_to_date(
    read: Callable[[], SchemaVersion | None],
    lock: Callable[[], AbstractContextManager[None]],
    create_tables: Callable[[], None],
    run_missing: Callable[[], None],
    is_in_use: Callable[[], bool],
) -> SchemaVersion:
    """Create the tables of a database, or run the missing migrations, which alone import alembic.

    Raises:
        ServiceError: `UNAVAILABLE` if this version may not use tables of a later version, or
            the tables are of a version that was never released. Also if running engines could
            not continue with the tables of this version.
    """
    current = read()
    if current is not None and is_up_to_date(current):
        return current
    with lock():
        # Another process may have been first, while this process waited for the lock.
        current = read()
        if current is None:
            create_tables()
        elif not is_up_to_date(current):
            _check_not_in_use(current, is_in_use)
            run_missing()
    return read() or SchemaVersion(HEAD_REVISION)


@contextmanager
def _lock_database(connection: Connection) -> Iterator[None]:
    """Hold an exclusive transaction: committed at the end, or rolled back after an error."""
    connection.exec_driver_sql("BEGIN EXCLUSIVE")
    try:
        yield
    except BaseException:
        if connection.in_transaction():
            connection.exec_driver_sql("ROLLBACK")
        raise
    if connection.in_transaction():
        connection.exec_driver_sql("COMMIT")


def is_up_to_date(version: SchemaVersion) -> bool:
    """Check whether tables need no migration, as they are of the newest or a later version.

    Raises:
        ServiceError: `UNAVAILABLE` if this version may not use them.
    """
    check_version(version)
    return version.revision >= HEAD_REVISION


def check_version(version: SchemaVersion) -> None:
    """Reject tables that this version cannot use.

    Raises:
        ServiceError: `UNAVAILABLE` if a later version of the toolkit made them without support
            for this version, or a version that was never released made them.
    """
    if version.revision.startswith(MOVING):
        raise make_unusable_error(
            "A data directory is being moved into this database: wait until the move has ended."
        )
    differs = version.revision == HEAD_REVISION and version.shape != TABLES_SHAPE
    if differs or version.revision < FIRST_REVISION:
        raise make_unusable_error(
            "An unreleased version of the toolkit made these tables, which this version cannot"
            " use: set TOOLKIT_DATA_DIR to a new directory, or TOOLKIT_DATABASE to a new database."
        )
    if min(version.revision, version.oldest or version.revision) > HEAD_REVISION:
        raise make_unusable_error(
            "A later version of the toolkit made these tables, and this version cannot use them:"
            " use the later version."
        )


def check_not_later(version: SchemaVersion | None) -> None:
    """Reject tables of a later version for work that must know all tables.

    Raises:
        ServiceError: `UNAVAILABLE` if the tables are of a later version.
    """
    if version is not None and version.revision > HEAD_REVISION:
        raise make_unusable_error(
            "A later version of the toolkit has changed these tables: do this with that version."
        )


def _check_not_in_use(version: SchemaVersion, is_in_use: Callable[[], bool]) -> None:
    """Refuse to migrate tables under engines that could not continue with the newest tables."""
    if version.revision < OLDEST_REVISION and is_in_use():
        raise make_unusable_error(
            "Running engines are of a version that cannot use the tables of this version: stop"
            " them, or upgrade them to an intermediate version first."
        )


def read_schema_version(connection: sqlite3.Connection) -> SchemaVersion | None:
    """Return the version of a database's tables, or None if it has no tables yet."""
    table = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"
    ).fetchone()
    row = None if table is None else connection.execute(READ_VERSION_SQL).fetchone()
    return None if row is None else SchemaVersion(*row)


def _create_tables(connection: Connection) -> None:
    """Create the newest tables in an empty database."""
    for statement in build_newest_schema():
        connection.exec_driver_sql(statement)


@cache
def build_newest_schema() -> tuple[str, ...]:
    """Build the statements that create the newest tables."""
    triggers = (*TRIGGERS, *CONFIGURATION_TRIGGERS, *TAG_TRIGGERS)
    tables = (*build_tables(get_dialect("sqlite")), build_cost_index("sqlite"))
    versions = VERSION_TABLE_SQL, SET_VERSION_SQL
    return *versions, *tables, FIRST_VERSION_SQL, *triggers, *list_sqlite_schema()


def build_tables(dialect: Dialect) -> Iterator[str]:
    """Build the statements that create the newest tables and their indexes, without triggers."""
    for table in metadata.sorted_tables:
        yield str(CreateTable(table).compile(dialect=dialect))
        for index in table.indexes:
            yield build_index(index, dialect)


def run_migrations(connection: Connection) -> None:
    """Run the missing migrations."""
    command = import_module("alembic.command")
    config = import_module("alembic.config").Config()
    config.set_main_option("script_location", str(MIGRATIONS_DIR))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD_REVISION)


def set_oldest(connection: Connection) -> None:
    """Store the shape of the tables, and the oldest revision whose engines may use the tables.

    It belongs in the transaction that migrates them.
    """
    statement = text("UPDATE alembic_version SET oldest = :oldest, shape = :shape")
    connection.execute(statement, {"oldest": OLDEST_REVISION, "shape": TABLES_SHAPE})
