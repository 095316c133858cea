"""The texts of what the writer runs, compiled once each."""

from collections.abc import Mapping
from functools import cache

from sqlalchemy import bindparam
from sqlalchemy.dialects.sqlite import insert as upsert

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
def patch(table: str, members: tuple[str, ...]) -> str:
    """The text of an UPDATE by id of some members of the `doc`."""
    named = ", ".join(f"'$.{name}', :{name}" for name in members)
    return f"UPDATE {metadata.tables[table].name} SET doc = json_set(doc, {named}) WHERE id = :id_"  # noqa: S608 - our names


@cache
def put(table: str, columns: tuple[str, ...]) -> str:
    """The text of an INSERT that replaces, compiled once."""
    into = metadata.tables[table].insert().prefix_with("OR REPLACE")
    return compiled(into.values({c: bindparam(c) for c in columns}))


@cache
def count(table: str, columns: tuple[str, ...], sums: tuple[str, ...]) -> str:
    """The text of an INSERT that adds to the sums of a row that is there already."""
    of = metadata.tables[table]
    statement = upsert(of).values({name: bindparam(name) for name in (*columns, *sums)})
    more = {name: of.c[name] + statement.excluded[name] for name in sums}
    return compiled(statement.on_conflict_do_update(index_elements=["id"], set_=more))


@cache
def delete(table: str) -> str:
    """The text of a DELETE by id."""
    return f"DELETE FROM {metadata.tables[table].name} WHERE id = ?"  # noqa: S608 - our names
