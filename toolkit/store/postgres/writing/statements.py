"""The writer's SQL for PostgreSQL; a statement takes any number of rows, one array per column."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, cast

from toolkit.store.tables import metadata
from toolkit.store.writing.statements import quote_names

# Seconds, by the clock that all engines share; a transaction's start time would not advance.
CLOCK_SQL: Final = "extract(epoch FROM clock_timestamp())::float8"
# The column's values are given in seconds from the time of the write.
_FROM_NOW: Final = ("roots", "lease_until")
_ID: Final = "id_"


# The types of an array's elements.
_ELEMENT_TYPES: Final[dict[type, str]] = {
    bool: "boolean",
    int: "bigint",
    float: "float8",
    bytes: "bytea",
    str: "text",
}


@cache
def _get_types(table: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    relation = metadata.tables[table]
    return tuple(_ELEMENT_TYPES[relation.c[name].type.python_type] for name in columns)


def _convert(kind: str, values: Iterable[object]) -> list[object]:
    """Convert a column's values to one type, as an array has."""
    if kind == "boolean":
        return [None if value is None else bool(value) for value in values]
    if kind == "float8":
        return [None if value is None else float(cast("float", value)) for value in values]
    if kind == "text":
        return [value.decode() if isinstance(value, bytes) else value for value in values]
    return list(values)


def transpose(
    table: str, columns: tuple[str, ...], rows: Sequence[Sequence[object]], *types: str
) -> list[list[object]]:
    """Make an array of each column of some rows; `types` are the types of further columns."""
    kinds = (*_get_types(table, columns), *types)
    return [_convert(kind, data) for kind, data in zip(kinds, zip(*rows, strict=True), strict=True)]


def _build_rows(table: str, columns: tuple[str, ...], *extra: tuple[str, str]) -> str:
    """Build the rows of a statement, `v`, of a table's columns and `extra`: names and types."""
    kinds = (*_get_types(table, columns), *(kind for _, kind in extra))
    arrays = ", ".join(f"%s::{kind}[]" for kind in kinds)
    return f"unnest({arrays}) AS v ({quote_names((*columns, *(name for name, _ in extra)))})"


@cache
def build_insert(table: str, columns: tuple[str, ...], on_conflict: str = "") -> str:
    """Build an INSERT of rows."""
    values = ", ".join(
        f'{CLOCK_SQL} + v."{name}"' if (table, name) == _FROM_NOW else f'v."{name}"'
        for name in columns
    )
    rows = _build_rows(table, columns)
    return (
        f'INSERT INTO "{table}" ({quote_names(columns)}) SELECT {values} FROM {rows}{on_conflict}'  # noqa: S608
    )


@cache
def build_update(table: str, columns: tuple[str, ...]) -> str:
    """Build an UPDATE of rows: each has the columns' values, then its id."""
    assignments = ", ".join(f'"{name}" = v."{name}"' for name in columns)
    rows = _build_rows(table, columns, (_ID, "text"))
    return f'UPDATE "{table}" AS t SET {assignments} FROM {rows} WHERE t.id = v."{_ID}"'  # noqa: S608


@cache
def build_lock(table: str, columns: str = "id") -> str:
    """Build the locking of rows by ids, in the order in which all engines lock them."""
    return f'SELECT {columns} FROM "{table}" WHERE id = ANY(%s) ORDER BY id FOR UPDATE'  # noqa: S608


@cache
def build_last_numbers(key: str, column: str) -> str:
    """Build the search for the last numbers of resources or jobs, 0 for one without events."""
    last = f"SELECT max({column}) FROM events WHERE {key} = v.id"  # noqa: S608 - our names
    return f"SELECT v.id, coalesce(({last}), 0) FROM unnest(%s::text[]) AS v (id)"  # noqa: S608
