"""The SQL statements that the writer runs, each compiled once."""

from collections.abc import Mapping
from functools import cache

from sqlalchemy import bindparam
from sqlalchemy.dialects.sqlite import insert as upsert

from toolkit.store.dialects import compile_statement
from toolkit.store.tables import metadata


@cache
def build_insert(table: str, columns: tuple[str, ...], rows: int = 1) -> str:
    """Build an INSERT of so many rows, their values in the order of the columns."""
    of = metadata.tables[table]
    names = ", ".join(f'"{of.c[name].name}"' for name in columns)
    row = f"({', '.join('?' * len(columns))})"
    return f'INSERT INTO "{of.name}" ({names}) VALUES {", ".join([row] * rows)}'  # noqa: S608 - our names


def group_by_columns(
    rows: Mapping[str, Mapping[str, object]],
) -> dict[tuple[str, ...], list[list[object]]]:
    """Group rows by the columns that change, so that one statement updates each group."""
    found: dict[tuple[str, ...], list[list[object]]] = {}
    for row_id, changed in rows.items():
        found.setdefault(tuple(changed), []).append([*changed.values(), row_id])
    return found


@cache
def build_update(table: str, columns: tuple[str, ...], rows: int = 1) -> str:
    """Build an UPDATE of so many rows: each has the columns' values, then its id."""
    of = metadata.tables[table]
    if rows == 1:
        named = ", ".join(f'"{of.c[name].name}" = ?' for name in columns)
        return f'UPDATE "{of.name}" SET {named} WHERE id = ?'  # noqa: S608 - our names
    named = ", ".join(f'"{of.c[name].name}" = v.column{n}' for n, name in enumerate(columns, 1))
    row = f"({', '.join('?' * (len(columns) + 1))})"
    values, key = ", ".join([row] * rows), f"v.column{len(columns) + 1}"
    return f'UPDATE "{of.name}" SET {named} FROM (VALUES {values}) AS v WHERE id = {key}'  # noqa: S608 - our names


@cache
def build_patch(table: str, members: tuple[str, ...]) -> str:
    """Build an UPDATE by id of some members of the `doc`."""
    named = ", ".join(f"'$.{name}', :{name}" for name in members)
    return f"UPDATE {metadata.tables[table].name} SET doc = json_set(doc, {named}) WHERE id = :id_"  # noqa: S608 - our names


@cache
def build_replace(table: str, columns: tuple[str, ...]) -> str:
    """Build an INSERT that replaces."""
    into = metadata.tables[table].insert().prefix_with("OR REPLACE")
    return compile_statement("sqlite", into.values({c: bindparam(c) for c in columns}))


@cache
def build_increment(table: str, columns: tuple[str, ...], sums: tuple[str, ...]) -> str:
    """Build an INSERT that adds to the sums of a row that exists already."""
    of = metadata.tables[table]
    statement = upsert(of).values({name: bindparam(name) for name in (*columns, *sums)})
    more = {name: of.c[name] + statement.excluded[name] for name in sums}
    return compile_statement(
        "sqlite", statement.on_conflict_do_update(index_elements=["id"], set_=more)
    )


@cache
def build_delete(table: str) -> str:
    """Build a DELETE by id."""
    return f"DELETE FROM {metadata.tables[table].name} WHERE id = ?"  # noqa: S608 - our names
