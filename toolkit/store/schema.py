"""The schema of a data directory: creates and migrates it, and refuses a newer one.

A new directory gets the newest tables at once; migrations are for what earlier versions left, and
a test holds the two ways to the same schema.
"""

import sqlite3
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import cast

from sqlalchemy import Connection, Dialect, text
from sqlalchemy.schema import CreateIndex, CreateTable

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.configuration_version import CONFIGURATION_TRIGGERS, FIRST_VERSION_SQL
from toolkit.store.dialects import get_dialect
from toolkit.store.stored_bytes import TRIGGERS
from toolkit.store.tables import metadata
from toolkit.store.tag_index import TAG_TRIGGERS

HEAD_REVISION = "0014"
MIGRATIONS_DIR = Path(__file__).parent / "migrations"
# Instead of a revision, while a data directory is moved into a database.
MOVING = "moving "
# As alembic creates it, which reads it at the next migration.
VERSION_TABLE_SQL = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)


def migrate_schema(connection: Connection, to: str = HEAD_REVISION) -> None:
    """Create the tables, or run the missing migrations; only these import alembic.

    Args:
        connection: to the database, in no transaction.
        to: the revision to reach.

    Raises:
        ServiceError: `UNAVAILABLE` when a later version of the toolkit made the directory.
    """
    current = _read_version(connection)
    if current == to:
        return
    check_revision(current)
    connection.exec_driver_sql("BEGIN EXCLUSIVE")
    # Another process may have been first, while this one waited for the lock.
    if _read_version(connection) != to:
        if to == HEAD_REVISION and _is_empty(connection):
            _create_tables(connection)
        else:
            run_migrations(connection, to)
    if connection.in_transaction():
        connection.exec_driver_sql("COMMIT")


def check_revision(revision: str | None) -> None:
    """Refuse a database that this version does not know how to read.

    Args:
        revision: of its tables; none where it has none yet.

    Raises:
        ServiceError: `UNAVAILABLE` when a later version of the toolkit made it.
    """
    if revision is not None and revision.startswith(MOVING):
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "A data directory is being moved into this database: let `toolkit migrate` end first.",
        )
    if revision is not None and revision not in _list_known_revisions():
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "A later version of the toolkit made this data directory; use that version.",
        )


@cache
def _list_known_revisions() -> frozenset[str]:
    return frozenset(path.name[:4] for path in (MIGRATIONS_DIR / "versions").glob("[0-9]*.py"))


def read_revision(connection: sqlite3.Connection) -> str | None:
    """Return the revision of a database's tables, or None where it has none yet."""
    made = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"
    ).fetchone()
    if made is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


def _create_tables(connection: Connection) -> None:
    """Create the newest tables in an empty database."""
    for statement in _build_newest_schema():
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (HEAD_REVISION,))


@cache
def _build_newest_schema() -> tuple[str, ...]:
    """Build the statements that create the newest tables."""
    triggers = (*TRIGGERS, *CONFIGURATION_TRIGGERS, *TAG_TRIGGERS)
    return VERSION_TABLE_SQL, *build_tables(get_dialect("sqlite")), FIRST_VERSION_SQL, *triggers


def build_tables(dialect: Dialect) -> Iterator[str]:
    """Build the statements that create the newest tables and their indexes, without triggers."""
    for table in metadata.sorted_tables:
        yield str(CreateTable(table).compile(dialect=dialect))
        for index in table.indexes:
            yield str(CreateIndex(index).compile(dialect=dialect))


def run_migrations(connection: Connection, to: str) -> None:
    """Run the missing migrations, up to a revision."""
    command = import_module("alembic.command")
    config = import_module("alembic.config").Config()
    config.set_main_option("script_location", str(MIGRATIONS_DIR))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def _is_empty(connection: Connection) -> bool:
    return connection.execute(text("SELECT 1 FROM sqlite_master")).first() is None


def _read_version(connection: Connection) -> str | None:
    return read_revision(cast("sqlite3.Connection", connection.connection.dbapi_connection))
