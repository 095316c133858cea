"""The two databases' dialects of SQL: statements that SQLAlchemy spells for each."""

from collections.abc import Callable
from functools import cache
from typing import Literal, TypeAlias, cast

from sqlalchemy import ClauseElement, Dialect
from sqlalchemy.dialects import sqlite

DatabaseKind: TypeAlias = Literal["sqlite", "postgresql"]


@cache
def get_dialect(kind: DatabaseKind) -> Dialect:
    """Return SQLAlchemy's dialect of a database."""
    if kind == "sqlite":
        return sqlite.dialect(paramstyle="named")
    from sqlalchemy.dialects.postgresql import psycopg  # only where it is the store's

    return cast("Callable[..., Dialect]", psycopg.dialect)(paramstyle="pyformat")


def compile_statement(kind: DatabaseKind, statement: ClauseElement) -> str:
    """Compile a statement to a database's dialect, with named parameters."""
    text = str(statement.compile(dialect=get_dialect(kind)))
    # Columns have their order of texts; of a value in BETWEEN, PostgreSQL takes none.
    return text.replace('::VARCHAR COLLATE "C"', "::VARCHAR")
