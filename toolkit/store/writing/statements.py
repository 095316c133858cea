"""The SQL statements that the writer runs, each compiled once."""

from collections.abc import Collection
from functools import cache
from typing import Final

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


@cache
def build_patch(table: str, members: tuple[str, ...]) -> str:
    """Build SQLite's UPDATE by id of some members of the `doc`."""
    pairs = ", ".join(f"'$.{name}', :{name}" for name in members)
    return f"UPDATE {table} SET doc = json_set(doc, {pairs}) WHERE id = :id_"  # noqa: S608
