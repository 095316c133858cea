"""Connections of an operator's commands to a database of PostgreSQL that is there already."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

from psycopg import Connection

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.postgres.connections import (
    RETRY_AFTER_S,
    open_connection,
    translate_postgres_errors,
)
from toolkit.store.postgres.schema import read_postgres_revision
from toolkit.store.schema import HEAD_REVISION, check_revision
from toolkit.store.writing.write_connection import DatabaseLocked

NAME: Final = "toolkit command"  # what the server's lists of sessions show


@contextmanager
def open_postgres(url: str) -> Iterator["Connection[Any]"]:
    """Open a connection in autocommit mode, whatever the database has.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used.
    """
    try:
        with translate_postgres_errors(), closing(open_connection(url, NAME)) as connection:
            yield connection
    except DatabaseLocked as error:
        raise ServiceError(
            ErrorCode.UNAVAILABLE, error.message, retry_after=RETRY_AFTER_S
        ) from error


@contextmanager
def open_existing(url: str, *, newest: bool = False) -> Iterator["Connection[Any]"]:
    """Open a connection to a database that has the tables of the toolkit.

    Args:
        url: its address.
        newest: refuse tables of an earlier version, too, of which some may lack.

    Raises:
        ServiceError: `UNAVAILABLE` when it has none, or those of another version.
    """
    with open_postgres(url) as connection:
        revision = read_postgres_revision(connection)
        if revision is None:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "The database has no tables of the toolkit: `toolkit serve --database` makes them.",
            )
        check_revision(revision)
        if newest and revision != HEAD_REVISION:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "The database is of an earlier version: open it first, such as with `toolkit serve"
                " --database`, which brings it up to date.",
            )
        yield connection
