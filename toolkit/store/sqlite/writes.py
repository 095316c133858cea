"""SQLite as the writer sees it: the SQL of a transaction, run in the loop or in a thread."""

import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from functools import partial

from sqlalchemy import Connection, Engine

from toolkit.store.changes import Lease, LeaseLost
from toolkit.store.database import connect_briefly
from toolkit.store.sqlite.connections import (
    find_primary_code,
    make_unavailable_error,
    translate_write_errors,
)
from toolkit.store.text_index import (
    HAS_INDEX_SQL,
    SQLITE_COLUMNS,
    TEXT_TABLES,
    fold_inputs,
    list_sqlite_schema,
    number_texts,
)
from toolkit.store.writing import statements
from toolkit.store.writing.ballast import BallastFile
from toolkit.store.writing.direct_writer import WriteTurns
from toolkit.store.writing.submissions import MergedChanges
from toolkit.store.writing.write_connection import (
    DatabaseLocked,
    DatabaseUnwritable,
    Rows,
    WriteConnection,
)

CHANGE_TIMEOUT_MS = 2_000
ROWS_PER_STATEMENT = 32  # by one statement, as SQLite takes 999 values in some of its builds


@contextmanager
def begin_sqlite_transaction(engine: Engine, turns: WriteTurns) -> Iterator[Connection]:
    """Begin a transaction on a separate connection; it is rolled back unless the block commits it.

    It waits for a lock at most `CHANGE_TIMEOUT_MS`; the caller will try again.
    """
    with translate_write_errors(), connect_briefly(engine) as connection, turns.ask():
        connection.exec_driver_sql(f"PRAGMA busy_timeout={CHANGE_TIMEOUT_MS}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection


class SqliteWriteConnection(WriteConnection):
    """The writer's connection to a database of SQLite."""

    kind = "sqlite"
    is_remote = False

    def __init__(
        self, connection: sqlite3.Connection, owner: str, turns: WriteTurns, ballast: BallastFile
    ) -> None:
        super().__init__(owner)
        self._ballast = ballast
        self._turns = turns
        self._connection = connection
        self._wait_ms: int | None = None
        if connection.execute(HAS_INDEX_SQL).fetchone() is not None and list_sqlite_schema():
            self._text_tables = TEXT_TABLES

    def _write(self, leases: Collection[Lease], batch: MergedChanges, wait_ms: int) -> float:
        with translate_write_errors():
            self._begin(wait_ms)
            self.numbers.begin(batch.inserts.values())
            try:
                self._check_leases(leases)
                self._apply_changes(batch, self.numbers.make_rows(batch.events))
                self._check_limits()
                started = time.perf_counter()
                self._connection.execute("COMMIT")
                took_s = time.perf_counter() - started
            except BaseException:
                self._connection.rollback()
                raise
            self.numbers.trim()
            return took_s

    def _begin(self, wait_ms: int) -> None:
        if wait_ms != self._wait_ms:
            self._connection.execute(f"PRAGMA busy_timeout={wait_ms}")
            self._wait_ms = wait_ms
        if not self._turns.give_way(wait_ms / 1000) and not wait_ms:
            raise DatabaseLocked
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if find_primary_code(error) == sqlite3.SQLITE_BUSY:
                raise DatabaseLocked from error
            raise

    def _index_texts(self, table: str, rows: Mapping[str, MutableMapping[str, object]]) -> None:
        texts = number_texts(self._connection, fold_inputs(table, rows))
        self._insert("input_texts", SQLITE_COLUMNS, texts)
        numbers = {row_id: number for number, row_id, _ in texts}
        for row_id, row in rows.items():
            row["text_number"] = numbers.get(row_id)

    def _insert(
        self, table: str, columns: tuple[str, ...], rows: Rows, on_conflict: str = ""
    ) -> None:
        build = partial(statements.build_insert, table, columns, on_conflict)
        self._execute_in_chunks(build, rows)

    def _update(self, table: str, columns: tuple[str, ...], rows: Rows) -> None:
        self._execute_in_chunks(partial(statements.build_update, table, columns), rows)

    def _delete(self, table: str, row_ids: Sequence[str]) -> None:
        deletion = f"DELETE FROM {table} WHERE id = ?"  # noqa: S608 - our names
        self._connection.executemany(deletion, [(row_id,) for row_id in row_ids])

    def _execute_in_chunks(
        self, text: Callable[[int], str], rows: Sequence[Sequence[object]]
    ) -> None:
        """Run a statement for many rows, several of them at once.

        A thread releases the interpreter for each statement, and waits for it after each. With a
        busy loop, a thousand statements took a tenth of a second.

        Args:
            text: builds the text of the statement for a number of rows.
        """
        end = len(rows) - len(rows) % ROWS_PER_STATEMENT
        for start in range(0, end, ROWS_PER_STATEMENT):
            batch = rows[start : start + ROWS_PER_STATEMENT]
            self._connection.execute(text(ROWS_PER_STATEMENT), [v for row in batch for v in row])
        self._connection.executemany(text(1), rows[end:])

    def _check_leases(self, leases: Collection[Lease]) -> None:
        """Raise `LeaseLost` if another process has taken one of the leases (promise P8)."""
        for lease in leases:
            row = self._connection.execute(
                "SELECT owner, fence FROM roots WHERE id = ?", (lease.root_id,)
            ).fetchone()
            if row is not None and (row[0] != self._owner or row[1] != lease.fence):
                raise LeaseLost(lease.root_id)

    def _execute(self, sql: str, parameters: Mapping[str, object]) -> sqlite3.Cursor:
        return self._connection.execute(sql, parameters)

    def _find_last_number(self, key: str, column: str, value: str) -> int:
        row = self._connection.execute(
            f"SELECT max({column}) FROM events WHERE {key} = ?",  # noqa: S608 - our names
            (value,),
        ).fetchone()
        return (row[0] if row else None) or 0

    @property
    def ballast_bytes(self) -> int:
        """The disk space that is reserved for results, in bytes."""
        return self._ballast.size_bytes

    def grow_ballast(self, size_bytes: int) -> None:
        """Reserve at least `size_bytes` of disk space for results."""
        try:
            self._ballast.grow(size_bytes)
        except OSError as error:
            raise DatabaseUnwritable(make_unavailable_error(error).message) from error

    def drop_ballast(self) -> bool:
        """Release the disk space that is reserved for results; return whether there was any."""
        return self._ballast.drop()
