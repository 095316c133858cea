"""The two databases' dialects of SQL: as SQLAlchemy spells it, and JSON as we write it by hand."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final, Literal, TypeAlias, cast

from sqlalchemy import ClauseElement, Dialect
from sqlalchemy.dialects import sqlite

from toolkit.store.changes import make_unusable_error

DatabaseKind: TypeAlias = Literal["sqlite", "postgresql"]
HAS_TEXT: Final = "has_text"  # the name of the function that SQLite is given


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
    """Convert a failed import of a package of the extra `postgres` to an error that explains it.

    Raises:
        ServiceError: `UNAVAILABLE` if the package is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise make_unusable_error(
            "PostgreSQL needs the extra `postgres`: pip install 'capability-toolkit[postgres]'."
        ) from error


def list_given_ids(kind: DatabaseKind) -> str:
    """Build the SQL source `wanted`, with a row for each id in the JSON list `:ids`."""
    if kind == "sqlite":
        return "json_each(:ids) AS wanted"
    return "json_array_elements_text(CAST(:ids AS json)) AS wanted (value)"


class JsonSql:
    """Builders of expressions over JSON, all of which are made of our own names.

    SQLite's are its functions, and PostgreSQL's are operators, after a function of our triggers.
    """

    def __init__(self, kind: DatabaseKind) -> None:
        self._is_sqlite = kind == "sqlite"

    def read(self, doc: str) -> str:
        """Build the argument of the other methods from a column that holds JSON."""
        return doc if self._is_sqlite else f"read_json({doc})"

    def get_text(self, value: str, *path: str) -> str:
        """Build an expression for a member that is a text, or a member's member."""
        if self._is_sqlite:
            return f"json_extract({value}, '$.{'.'.join(path)}')"
        return f"({value} #>> '{{{','.join(path)}}}')"

    def get_number(self, value: str, name: str) -> str:
        """Build an expression for a member that is a number."""
        text = self.get_text(value, name)
        return text if self._is_sqlite else f"CAST({text} AS double precision)"

    def list_items(self, value: str, name: str, alias: str, step: str = "[*]") -> str:
        """Build a source of the items of a member that is a list; each is `alias.value`."""
        if self._is_sqlite:
            return f"json_each({value}, '$.{name}') AS {alias}"
        return f"jsonb_path_query({value}, '$.{name}{step}') AS {alias} (value)"

    def list_values(self, value: str, name: str, alias: str) -> str:
        """Build a source of the values of a member that is an object; each is `alias.value`."""
        return self.list_items(value, name, alias, ".*")

    def get_item(self, alias: str) -> str:
        """Build an expression for the text of a JSON array's item, or of an object's member."""
        return f"{alias}.value" if self._is_sqlite else self.get_text(f"{alias}.value")

    def match_text(self, doc: str, record: str) -> str:
        """Build the condition that a record's input may have the text `:text`, in lower case."""
        if self._is_sqlite:
            return f"{HAS_TEXT}({doc}, '{record}', :text)"
        # In an all-ASCII document, a failed search is final; otherwise the reader checks again.
        condition = f'position(CAST(:text AS text) IN lower({doc} COLLATE "C")) > 0'
        return f"({condition} OR octet_length({doc}) <> length({doc}))"
