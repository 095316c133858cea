"""The schema of a database of PostgreSQL: creates and migrates it, and refuses a newer one.

A new database gets the newest tables at once, and migrations are for what earlier versions left,
as in a data directory. Those up to 0013 were before PostgreSQL, and know SQLite alone.
"""

from collections.abc import Iterator
from typing import Any, Final

from psycopg import Connection
from sqlalchemy import StaticPool, create_engine

from toolkit.store.configuration_version import FIRST_VERSION_SQL
from toolkit.store.dialects import get_dialect
from toolkit.store.postgres.triggers import build_triggers
from toolkit.store.schema import (
    HEAD_REVISION,
    VERSION_TABLE_SQL,
    build_tables,
    check_revision,
    run_migrations,
)

# Of all who open the same database at once, one makes the tables.
_LOCK_SQL: Final = "SELECT pg_advisory_lock(hashtextextended('toolkit schema', 0))"
_UNLOCK_SQL: Final = "SELECT pg_advisory_unlock(hashtextextended('toolkit schema', 0))"
_VERSION_TABLE: Final = "SELECT to_regclass('alembic_version')"


def migrate_postgres_schema(connection: "Connection[Any]") -> None:
    """Create the tables, or run the missing migrations.

    Args:
        connection: to the database, in no transaction, and in autocommit mode.

    Raises:
        psycopg.Error: it cannot be done.
        ServiceError: `UNAVAILABLE` when a later version of the toolkit made the tables.
    """
    current = read_postgres_revision(connection)
    if current == HEAD_REVISION:
        return
    check_revision(current)
    connection.execute(_LOCK_SQL)
    try:
        current = read_postgres_revision(connection)  # another engine may have been first
        check_revision(current)
        if current is None:
            _create_tables(connection)
        elif current != HEAD_REVISION:
            _run_missing(connection)
    finally:
        if not connection.closed:
            connection.execute(_UNLOCK_SQL)


def _create_tables(connection: "Connection[Any]") -> None:
    with connection.transaction():
        for statement in build_newest_schema():
            connection.execute(statement.encode())
        connection.execute("INSERT INTO alembic_version VALUES (%s)", (HEAD_REVISION,))


def _run_missing(connection: "Connection[Any]") -> None:
    """Run the missing migrations, all or none of them."""
    connection.autocommit = False
    try:
        engine = create_engine(
            "postgresql+psycopg://", creator=lambda: connection, poolclass=StaticPool
        )
        with engine.connect() as opened:
            run_migrations(opened, HEAD_REVISION)
    finally:
        if not connection.closed:
            connection.rollback()
            connection.autocommit = True


def read_postgres_revision(connection: "Connection[Any]") -> str | None:
    """Return the revision of a database's tables, or None where it has none yet."""
    made = connection.execute(_VERSION_TABLE).fetchone()
    if made is None or made[0] is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


def build_newest_schema() -> Iterator[str]:
    """Build the statements that create the newest tables, and what belongs to them."""
    yield VERSION_TABLE_SQL
    yield from build_tables(get_dialect("postgresql"))
    yield FIRST_VERSION_SQL
    yield from build_triggers()
