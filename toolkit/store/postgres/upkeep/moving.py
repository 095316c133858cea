"""The move of a data directory's rows into a database of PostgreSQL.

Rows are copied in the order of their keys, some hundred in a transaction, so that an interrupted
move goes on behind the last row that is there. Until all are there and have been compared, the
database is marked by a revision that no engine opens.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from psycopg import Connection
from sqlalchemy import Boolean, Table

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.postgres.mark import claim_mark
from toolkit.store.postgres.schema import migrate_postgres_schema, read_postgres_revision
from toolkit.store.postgres.writing.statements import build_insert, transpose
from toolkit.store.postgres.writing.writes import insert_rows
from toolkit.store.schema import HEAD_REVISION, MOVING
from toolkit.store.stored_bytes import COUNTED_SQL, build_totals_query, compare_sums
from toolkit.store.table_roles import get_roles
from toolkit.store.tables import metadata
from toolkit.store.text_index import TEXT_TABLES

ROWS_PER_TRANSACTION: Final = 500
# The account of an event is found by these.
_BEFORE_OTHERS: Final = ("roots", "workflows")
# Leases are counted by another clock, and whoever had one has gone.
_RELEASED: Final[dict[str, object]] = {"owner": None, "lease_until": 0.0}


def list_moved_tables() -> list[Table]:
    """List the tables whose rows are copied, in their order."""
    copied = {name for name, table in metadata.tables.items() if not get_roles(table).is_derived}
    others = sorted(copied - {*_BEFORE_OTHERS})
    return [metadata.tables[name] for name in (*_BEFORE_OTHERS, *others)]


class RowMove:
    """A move of rows from a file of SQLite into a database of PostgreSQL.

    Args:
        source: of the newest revision; nobody writes to it.
        target: in autocommit mode: empty, or what a move from the same source left.
        name: of the source, so that no other is taken for it; at most 24 characters.
    """

    def __init__(self, source: sqlite3.Connection, target: "Connection[Any]", name: str) -> None:
        self._source = source
        self._target = target
        self._revision = f"{MOVING}{name}"

    @property
    def is_begun(self) -> bool:
        """Tell whether the database is what an interrupted move from the same source left."""
        return read_postgres_revision(self._target) == self._revision

    def check_free(self) -> None:
        """Check that the database is empty, or that of this move; nothing is written.

        Raises:
            ServiceError: `UNAVAILABLE` when the database is in use for something else.
        """
        if not self.is_begun and read_postgres_revision(self._target) is not None:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "The database has tables of the toolkit already: name an empty one, or the one that"
                " a move of the same data directory was interrupted in.",
            )

    def begin(self) -> None:
        """Make the tables, or see that they are those of this move.

        Raises:
            ServiceError: `UNAVAILABLE` when the database is in use for something else.
        """
        self.check_free()
        if self.is_begun:
            return
        with self._target.transaction():
            migrate_postgres_schema(self._target)
            self._target.execute("UPDATE alembic_version SET version_num = %s", (self._revision,))

    def copy_rows(self) -> Counter[str]:
        """Copy the rows that are not there yet; return how many, by table."""
        copied: Counter[str] = Counter()
        for table in list_moved_tables():
            for rows in self._iter_missing(table):
                with self._target.transaction():
                    self._insert(table, rows)
                copied[table.name] += len(rows)
        return copied

    def _insert(self, table: Table, rows: list[Sequence[object]]) -> None:
        names = tuple(_list_columns(table))
        if table.name in TEXT_TABLES:
            named = [dict(zip(names, row, strict=True)) for row in rows]
            insert_rows(self._target, table.name, {str(row["id"]): row for row in named})
            return
        statement = build_insert(table.name, names)
        self._target.execute(statement.encode(), transpose(table.name, names, rows))

    def _iter_missing(self, table: Table) -> Iterator[list[Sequence[object]]]:
        """Yield the rows behind the last one that is there, some at a time."""
        names = _list_columns(table)
        keys = [column.name for column in table.primary_key.columns]
        order = ", ".join(f"{key} DESC" for key in keys)
        newest = f"SELECT {', '.join(keys)} FROM {table.name} ORDER BY {order} LIMIT 1"  # noqa: S608
        last = self._target.execute(newest.encode()).fetchone()
        while True:
            behind = ""
            if last is not None:
                behind = f"WHERE ({', '.join(keys)}) > ({', '.join('?' * len(keys))})"
            rows = self._source.execute(
                f"SELECT {', '.join(names)} FROM {table.name} {behind}"  # noqa: S608 - our names
                f" ORDER BY {', '.join(keys)} LIMIT {ROWS_PER_TRANSACTION}",
                () if last is None else tuple(last),
            ).fetchall()
            if not rows:
                return
            last = tuple(rows[-1][names.index(key)] for key in keys)
            yield [_release(names, row) for row in rows] if table.name == "roots" else rows

    def verify(self) -> int:
        """Compare all rows, and the sums of bytes; return how many rows there are.

        Raises:
            ServiceError: `UNAVAILABLE` when something differs, which is then to be moved anew.
        """
        compared = 0
        for table in list_moved_tables():
            names = ", ".join(_list_columns(table))
            keys = ", ".join(column.name for column in table.primary_key.columns)
            query = f"SELECT {names} FROM {table.name} ORDER BY {keys}"  # noqa: S608 - our names
            count, digest = _digest_rows(table, self._source.execute(query))
            with self._target.transaction(), self._target.cursor("moved") as rows:
                rows.execute(query.encode())
                there = _digest_rows(table, rows)
            if there != (count, digest):
                raise _make_difference(f"the rows of {table.name}")
            compared += count
        counted = self._target.execute(COUNTED_SQL).fetchall()
        totals = self._target.execute(build_totals_query("postgresql").encode()).fetchall()
        if compare_sums(counted, totals):
            raise _make_difference("the sums of bytes")
        return compared

    def end(self, *, sandbox: bool | None) -> None:
        """Have engines open the database from now on.

        Args:
            sandbox: the world that the rows are of; none where they do not tell.
        """
        with self._target.transaction():
            claim_mark(self._target, sandbox=sandbox, take_up=False)
            self._target.execute("UPDATE alembic_version SET version_num = %s", (HEAD_REVISION,))


def _list_columns(table: Table) -> list[str]:
    """List the columns that are copied; each database has its own index of texts."""
    return [column.name for column in table.columns if column.name != "text_number"]


def _release(names: Sequence[str], row: Sequence[object]) -> list[object]:
    return [_RELEASED.get(name, value) for name, value in zip(names, row, strict=True)]


def _digest_rows(table: Table, rows: Any) -> tuple[int, str]:
    """Count rows, and compute a digest of their values, but for those of leases."""
    names = _list_columns(table)
    truths = {column.name for column in table.columns if isinstance(column.type, Boolean)}
    left_out = _RELEASED if table.name == "roots" else {}
    count, digest = 0, hashlib.sha256()
    for row in rows:
        values = [
            bool(value) if name in truths else value
            for name, value in zip(names, row, strict=True)
            if name not in left_out
        ]
        digest.update(repr(values).encode())
        count += 1
    return count, digest.hexdigest()


def _make_difference(what: str) -> ServiceError:
    return ServiceError(
        ErrorCode.UNAVAILABLE,
        f"After the move, {what} are not those of the data directory: empty the database, and move"
        " it again.",
    )
