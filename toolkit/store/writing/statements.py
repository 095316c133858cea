"""The SQL statements that the writer runs, each compiled once."""

from collections.abc import Collection
from functools import cache
from typing import Final

from sqlalchemy import bindparam, select

from toolkit.store.dialects import DatabaseKind, compile_statement
from toolkit.store.tables import metadata

INSERT_SPENDING_SQL: Final = (
    "INSERT INTO spending (id, key_id, nano) VALUES (:id, :key_id, 0) ON CONFLICT (id) DO NOTHING"
)
ADD_SPENDING_SQL: Final = (
    "UPDATE spending SET nano = nano + :nano WHERE id = :id"
    " AND (CAST(:most AS bigint) IS NULL OR nano + :nano <= CAST(:most AS bigint))"
)


def quote_names(names: Collection[str]) -> str:
    """Quote the names of columns, and join them."""
    return ", ".join(f'"{name}"' for name in names)


@cache
def build_conflict(
    table: str, *, replaced: tuple[str, ...] = (), added: tuple[str, ...] = ()
) -> str:
    """Build the end of an INSERT that changes rows which exist already.

    Args:
        replaced: columns that get the new values.
        added: columns to which the new values are added.
    """
    changes = [f'"{name}" = excluded."{name}"' for name in replaced if name != "id"]
    changes += [f'"{name}" = "{table}"."{name}" + excluded."{name}"' for name in added]
    return f" ON CONFLICT (id) DO UPDATE SET {', '.join(changes)}"


@cache
def build_document_lock(kind: DatabaseKind, table: str) -> str:
    """Build the query of a row's `doc` by its id, which locks the row if the database can."""
    columns = metadata.tables[table].c
    query = select(columns.doc).where(columns.id == bindparam("id"))
    return compile_statement(kind, query.with_for_update())


def _build_values(width: int, rows: int) -> str:
    row = f"({', '.join('?' * width)})"
    return ", ".join([row] * rows)


@cache
def build_insert(table: str, columns: tuple[str, ...], on_conflict: str, rows: int) -> str:
    """Build SQLite's INSERT of so many rows, their values in the order of the columns."""
    values = _build_values(len(columns), rows)
    return f'INSERT INTO "{table}" ({quote_names(columns)}) VALUES {values}{on_conflict}'  # noqa: S608


@cache
def build_update(table: str, columns: tuple[str, ...], rows: int) -> str:
    """Build SQLite's UPDATE of so many rows: each has the columns' values, then its id."""
    if rows == 1:
        assignments = ", ".join(f'"{name}" = ?' for name in columns)
        return f'UPDATE "{table}" SET {assignments} WHERE id = ?'  # noqa: S608 - our names
    assignments = ", ".join(f'"{name}" = v.column{n}' for n, name in enumerate(columns, 1))
    values, key = _build_values(len(columns) + 1, rows), f"v.column{len(columns) + 1}"
    return f'UPDATE "{table}" SET {assignments} FROM (VALUES {values}) AS v WHERE id = {key}'  # noqa: S608
