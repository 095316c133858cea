"""Connections of an operator's commands to a database of PostgreSQL that is there already."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.postgres.connections import Session, open_connection, translate_opening_errors
from toolkit.store.postgres.schema import migrate_postgres_schema, read_postgres_version
from toolkit.store.schema import HEAD_REVISION, SchemaVersion, check_not_later, check_version

NAME: Final = "toolkit-command"  # what the server's lists of sessions show


@contextmanager
def open_postgres(url: str, *, is_read_only: bool = False) -> Iterator[Session]:
    """Open a connection in autocommit mode, whatever the database has.

    Args:
        url: its address.
        is_read_only: have the server refuse every write.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used.
    """
    with (
        translate_opening_errors(),
        closing(open_connection(url, NAME, is_read_only=is_read_only)) as connection,
    ):
        yield connection


def migrate_database(url: str) -> SchemaVersion:
    """Run the missing migrations, or make the tables of a database that has none.

    Returns:
        the version of the tables from then on.

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
        url: its address.
        newest: refuse all that are not the newest: of an earlier version, some may lack, and of a
            later one, some may be unknown.
        is_read_only: have the server refuse every write; those of a later version are read, too.

    Raises:
        ServiceError: `UNAVAILABLE` when it has none, or those of another version.
    """
    with open_postgres(url, is_read_only=is_read_only) as connection:
        version = read_postgres_version(connection)
        if version is None:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "The database has no tables of the toolkit: `toolkit serve --database` makes them.",
            )
        check_version(version)
        if newest and not is_read_only:
            check_not_later(version)
        if newest and version.revision < HEAD_REVISION:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "The database is of an earlier version: open it first, such as with `toolkit serve"
                " --database`, which brings it up to date.",
            )
        yield connection
