"""The schema of a PostgreSQL database: creates and migrates it, and rejects newer versions.

As with SQLite, a new database gets the newest tables at once; migrations are for tables of earlier
releases.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Final

from sqlalchemy import StaticPool, create_engine

from toolkit.store.changes import make_unusable_error
from toolkit.store.configuration_version import FIRST_VERSION_SQL
from toolkit.store.cost_index import POSTGRES_COST_FUNCTIONS, build_cost_index
from toolkit.store.dialects import get_dialect
from toolkit.store.postgres.connections import (
    IS_ENGINE_SQL,
    Session,
    hold_lock,
    open_connection,
    translate_opening_errors,
    translate_postgres_errors,
)
from toolkit.store.postgres.triggers import build_triggers
from toolkit.store.schema import (
    HEAD_REVISION,
    READ_VERSION_SQL,
    SET_VERSION_SQL,
    VERSION_TABLE_SQL,
    SchemaVersion,
    bring_up_to_date,
    build_tables,
    check_not_later,
    check_version,
    run_migrations,
)
from toolkit.store.text_index import POSTGRES_SCHEMA
from toolkit.store.writing.write_connection import DatabaseLocked

# Of all who open the same database at once, one makes the tables.
_LOCK: Final = "schema"
_ENGINES_SQL: Final = f"SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE {IS_ENGINE_SQL})"  # noqa: S608 - our condition
# A session that waits for a table blocks all later sessions, so it gives way, and retries.
LOCK_TIMEOUT_MS: Final = 1_000
TRIES: Final = 10
NAME: Final = "toolkit-command"  # shown in the server's lists of sessions


def migrate_postgres_schema(connection: Session) -> SchemaVersion:
    """Create the tables, or run the missing migrations.

    Args:
        connection: connection to the database, in no transaction, and in autocommit mode.

    Raises:
        DatabaseLocked: engines blocked a migration; it may be retried.
        psycopg.Error: the tables cannot be created or migrated.
        ServiceError: `UNAVAILABLE` if this version may not use tables of a later version, or
            running engines could not continue with the tables of this version.
    """
    return bring_up_to_date(
        partial(read_postgres_version, connection),
        partial(hold_lock, connection, _LOCK),
        partial(_create_tables, connection),
        partial(_run_missing, connection),
        partial(_has_engines, connection),
    )


def _has_engines(connection: Session) -> bool:
    (has_engines,) = connection.execute(_ENGINES_SQL.encode()).fetchone() or (False,)
    return bool(has_engines)


def _create_tables(connection: Session) -> None:
    with connection.transaction():
        for statement in build_newest_schema():
            connection.execute(statement.encode())


def _run_missing(connection: Session) -> None:
    """Run all missing migrations or none, while engines continue to work."""
    connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}".encode())
    for retries in reversed(range(TRIES)):
        try:
            with translate_postgres_errors(connection):
                _try_missing(connection)
        except DatabaseLocked:
            if not retries:
                raise
        else:
            break
    connection.execute("RESET lock_timeout")


def _try_missing(connection: Session) -> None:
    connection.autocommit = False
    try:
        engine = create_engine(
            "postgresql+psycopg://", creator=lambda: connection, poolclass=StaticPool
        )
        with engine.connect() as opened:
            run_migrations(opened)
    finally:
        if not connection.closed:
            connection.rollback()
            connection.autocommit = True


def read_postgres_version(connection: Session) -> SchemaVersion | None:
    """Return the version of a database's tables, or None if it has no tables yet."""
    table = connection.execute("SELECT to_regclass('alembic_version')").fetchone()
    if table is None or table[0] is None:
        return None
    row = connection.execute(READ_VERSION_SQL).fetchone()
    return None if row is None else SchemaVersion(*row)


def build_newest_schema() -> Iterator[str]:
    """Build the statements that create the newest tables and all that depends on them."""
    yield VERSION_TABLE_SQL
    yield SET_VERSION_SQL
    yield from build_tables(get_dialect("postgresql"))
    yield FIRST_VERSION_SQL
    yield from POSTGRES_COST_FUNCTIONS
    yield build_cost_index("postgresql")
    yield from POSTGRES_SCHEMA
    yield from build_triggers()


@contextmanager
def open_postgres(url: str, *, is_read_only: bool = False) -> Iterator[Session]:
    """Open a connection in autocommit mode, without checking the tables.

    Raises:
        ServiceError: `UNAVAILABLE` if the database cannot be used.
    """
    with (
        translate_opening_errors(),
        closing(open_connection(url, NAME, is_read_only=is_read_only)) as connection,
    ):
        yield connection


def migrate_database(url: str) -> SchemaVersion:
    """Run the missing migrations, or make the tables of a database that has none.

    Raises:
        ServiceError: `UNAVAILABLE` when that cannot be done now, or not by this version.
    """
    with open_postgres(url) as connection:
        return migrate_postgres_schema(connection)


@contextmanager
def open_existing(
    url: str, *, newest: bool = False, is_read_only: bool = False
) -> Iterator[Session]:
    """Open a connection to a database that has the tables of the toolkit.

    Args:
        newest: whether to reject tables of other versions: earlier versions may lack tables, and
            later versions may have unknown tables.
        is_read_only: whether the server refuses every write; later versions are accepted, too.

    Raises:
        ServiceError: `UNAVAILABLE` if it has no tables, or tables of another version.
    """
    with open_postgres(url, is_read_only=is_read_only) as connection:
        version = read_postgres_version(connection)
        if version is None:
            raise make_unusable_error(
                "The database has no tables of the toolkit: `toolkit serve --database` creates"
                " them."
            )
        check_version(version)
        if newest and not is_read_only:
            check_not_later(version)
        if newest and version.revision < HEAD_REVISION:
            raise make_unusable_error(
                "The database is of an earlier version: open it first, for example with `toolkit"
                " serve --database`, which migrates it."
            )
        yield connection
