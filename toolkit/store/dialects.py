"""The two databases' dialects of SQL: statements that SQLAlchemy spells for each."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Literal, TypeAlias, cast

from sqlalchemy import ClauseElement, Dialect
from sqlalchemy.dialects import sqlite

from toolkit.contract.errors import ErrorCode, ServiceError

DatabaseKind: TypeAlias = Literal["sqlite", "postgresql"]


@cache
def get_dialect(kind: DatabaseKind) -> Dialect:
    """Return SQLAlchemy's dialect of a database."""
    if kind == "sqlite":
        return sqlite.dialect(paramstyle="named")
    from sqlalchemy.dialects.postgresql import psycopg  # only if the store uses PostgreSQL

    return cast("Callable[..., Dialect]", psycopg.dialect)(paramstyle="pyformat")


def compile_statement(kind: DatabaseKind, statement: ClauseElement) -> str:
    """Compile a statement to a database's dialect, with named parameters."""
    text = str(statement.compile(dialect=get_dialect(kind)))
    # Columns have their order of texts; of a value in BETWEEN, PostgreSQL takes none.
    return text.replace('::VARCHAR COLLATE "C"', "::VARCHAR")


@contextmanager
def needs_postgres() -> Iterator[None]:
    """Explain a failed import of a package that the extra installs.

    Raises:
        ServiceError: `UNAVAILABLE` if the package is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "PostgreSQL needs the extra `postgres`: pip install 'capability-toolkit[postgres]'.",
        ) from error
