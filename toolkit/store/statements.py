"""The texts of what the writer runs, compiled once each."""

from collections.abc import Mapping
from functools import cache

from sqlalchemy import bindparam

from toolkit.store.batch import Values
from toolkit.store.reader import compiled
from toolkit.store.tables import metadata

EVENT = ("resource_id", "n", "type", "at", "data", "job_id", "job_n")


@cache
def insert(table: str, columns: tuple[str, ...]) -> str:
    """The text of an INSERT, compiled once."""
    statement = metadata.tables[table].insert().values({c: bindparam(c) for c in columns})
    return compiled(statement)


def by_columns(rows: Mapping[str, Mapping[str, object]]) -> dict[tuple[str, ...], list[Values]]:
    """What one statement each can update: the rows of which the same columns change."""
    found: dict[tuple[str, ...], list[Values]] = {}
    for row_id, changed in rows.items():
        found.setdefault(tuple(changed), []).append({**changed, "id_": row_id})
    return found


@cache
def update(table: str, columns: tuple[str, ...]) -> str:
    """The text of an UPDATE by id, compiled once."""
    of = metadata.tables[table]
    statement = of.update().where(of.c.id == bindparam("id_"))
    statement = statement.values({c: bindparam(c) for c in columns})
    return compiled(statement)


@cache
def put(table: str, columns: tuple[str, ...]) -> str:
    """The text of an INSERT that replaces, compiled once."""
    into = metadata.tables[table].insert().prefix_with("OR REPLACE")
    return compiled(into.values({c: bindparam(c) for c in columns}))


@cache
def delete(table: str) -> str:
    """The text of a DELETE by id."""
    return f"DELETE FROM {metadata.tables[table].name} WHERE id = ?"  # noqa: S608 - our names
