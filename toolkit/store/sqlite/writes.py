"""SQLite as the writer sees it: the SQL of a transaction, run in the loop or in a thread."""

import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from functools import partial

from toolkit.store.changes import AddSpending, Lease, LeaseLost, OverLimit
from toolkit.store.crashpoints import find_crash_point
from toolkit.store.sqlite.connections import (
    find_primary_code,
    make_unavailable_error,
    translate_write_errors,
)
from toolkit.store.sqlite.write_turns import WriteTurns
from toolkit.store.text_index import (
    HAS_INDEX_SQL,
    TEXT_TABLES,
    build_sqlite_insert,
    fold_inputs,
    list_sqlite_schema,
    number_texts,
)
from toolkit.store.writing import statements
from toolkit.store.writing.ballast import BallastFile
from toolkit.store.writing.event_numbers import EVENT_COLUMNS, EventNumbers
from toolkit.store.writing.submissions import MergedChanges
from toolkit.store.writing.write_connection import DatabaseLocked, DatabaseUnwritable

ROWS_PER_STATEMENT = 32  # by one statement, as SQLite takes 999 values in some of its builds


class SqliteWriteConnection:
    """The writer's connection to a database of SQLite.

    Args:
        connection: to the database; nobody else uses it.
        owner: the id of this opening of the store.
        turns: shared with the small changes that this process makes beside the writer.
        ballast: space on the disk of the database.
    """

    is_remote = False

    def __init__(
        self, connection: sqlite3.Connection, owner: str, turns: WriteTurns, ballast: BallastFile
    ) -> None:
        self._ballast = ballast
        self._turns = turns
        self._connection = connection
        self._owner = owner
        self._wait_ms: int | None = None
        self._numbers = EventNumbers(self._find_last_number)
        self._crash = find_crash_point("commit")
        has_index = connection.execute(HAS_INDEX_SQL).fetchone() is not None
        self._text_tables = TEXT_TABLES.keys() if has_index and list_sqlite_schema() else ()

    def write(self, leases: Collection[Lease], batch: MergedChanges, wait_ms: int) -> float:
        """Write a batch in one transaction, and return the seconds that its commit took."""
        try:
            with translate_write_errors():
                return self._run_transaction(leases, batch, wait_ms)
        except Exception:
            self._numbers.forget()
            raise

    def _run_transaction(
        self, leases: Collection[Lease], batch: MergedChanges, wait_ms: int
    ) -> float:
        run = self._connection.execute
        if wait_ms != self._wait_ms:
            run(f"PRAGMA busy_timeout={wait_ms}")
            self._wait_ms = wait_ms
        if not self._turns.give_way(wait_ms / 1000) and not wait_ms:
            raise DatabaseLocked
        try:
            run("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if find_primary_code(error) == sqlite3.SQLITE_BUSY:
                raise DatabaseLocked from error
            raise
        self._numbers.begin()
        try:
            self._check_leases(leases)
            self._apply_changes(batch)
            if self._crash is not None:
                self._crash("before")
            started = time.perf_counter()
            run("COMMIT")
            took_s = time.perf_counter() - started
            if self._crash is not None:
                self._crash("after")
        except BaseException:
            self._connection.rollback()
            raise
        self._numbers.trim()
        return took_s

    def _apply_changes(self, batch: MergedChanges) -> None:
        """Run a batch's changes in the open transaction."""
        many = self._connection.executemany
        for table, rows in batch.inserts.items():
            if table in self._text_tables:
                self._index_texts(table, rows)
            self._insert_rows(table, list(rows.values()))
            self._numbers.add_new(rows)
        for table, rows in batch.updates.items():
            for columns, values in statements.group_by_columns(rows).items():
                self._execute_in_chunks(partial(statements.build_update, table, columns), values)
        for each in batch.patches:
            statement = statements.build_patch(each.table, tuple(each.values))
            self._connection.execute(statement, {**each.values, "id_": each.id})
        for table, rows in batch.replacements.items():
            put = list(rows.values())
            many(statements.build_replace(table, tuple(put[0])), put)
        for table, row_ids in batch.deletes.items():
            many(statements.build_delete(table), [(row_id,) for row_id in row_ids])
        for spend in batch.spendings:
            self._add_spending(spend)
        for count, sums in batch.increments.values():
            statement = statements.build_increment(count.table, tuple(count.values), tuple(sums))
            self._connection.execute(statement, {**count.values, **sums})
        if batch.events:
            self._insert_values("events", EVENT_COLUMNS, self._numbers.make_rows(batch.events))

    def _index_texts(self, table: str, rows: Mapping[str, MutableMapping[str, object]]) -> None:
        """Insert the texts of new rows, and give the rows their numbers."""
        texts = number_texts(self._connection, fold_inputs(table, rows))
        self._execute_in_chunks(build_sqlite_insert, texts)
        numbers = {row_id: number for number, row_id, _ in texts}
        for row_id, row in rows.items():
            row["text_number"] = numbers.get(row_id)

    def _insert_rows(self, table: str, rows: Sequence[Mapping[str, object]]) -> None:
        columns = tuple(rows[0])
        self._insert_values(table, columns, [[row[name] for name in columns] for row in rows])

    def _insert_values(
        self, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[object]]
    ) -> None:
        self._execute_in_chunks(partial(statements.build_insert, table, columns), rows)

    def _execute_in_chunks(
        self, text: Callable[[int], str], rows: Sequence[Sequence[object]]
    ) -> None:
        """Run a statement for many rows, several of them at once.

        A thread lets go of the interpreter for each statement, and waits for it after each: beside
        a busy loop, a thousand of them took a tenth of a second.

        Args:
            text: the statement's, for a number of rows.
            rows: the values of each.
        """
        whole = len(rows) - len(rows) % ROWS_PER_STATEMENT
        for start in range(0, whole, ROWS_PER_STATEMENT):
            several = rows[start : start + ROWS_PER_STATEMENT]
            self._connection.execute(text(ROWS_PER_STATEMENT), [v for row in several for v in row])
        self._connection.executemany(text(1), rows[whole:])

    def _check_leases(self, leases: Collection[Lease]) -> None:
        """Refuse to write for a lease that was lost without its holder knowing (promise P8)."""
        for lease in leases:
            row = self._connection.execute(
                "SELECT owner, fence FROM roots WHERE id = ?", (lease.root_id,)
            ).fetchone()
            if row is not None and (row[0] != self._owner or row[1] != lease.fence):
                raise LeaseLost(lease.root_id)

    def _add_spending(self, spend: AddSpending) -> None:
        """Add to the money spent in the database itself, which all processes share."""
        run = self._connection.execute
        insert = "INSERT OR IGNORE INTO spending (id, key_id, nano) VALUES (?, ?, 0)"
        run(insert, (spend.id, spend.key_id))
        counted = run(
            "UPDATE spending SET nano = nano + :nano"
            " WHERE id = :id AND (:most IS NULL OR nano + :nano <= :most)",
            {"nano": spend.nano_usd, "id": spend.id, "most": spend.limit},
        )
        if not counted.rowcount:
            raise OverLimit(spend.id)

    def _find_last_number(self, key: str, column: str, value: str) -> int:
        row = self._connection.execute(
            f"SELECT max({column}) FROM events WHERE {key} = ?",  # noqa: S608 - our names
            (value,),
        ).fetchone()
        return (row[0] if row else None) or 0

    @property
    def ballast_bytes(self) -> int:
        """Return how many bytes of ballast are held."""
        return self._ballast.size_bytes

    def grow_ballast(self, size_bytes: int) -> None:
        """Hold at least so many bytes of ballast."""
        try:
            self._ballast.grow(size_bytes)
        except OSError as error:
            raise DatabaseUnwritable(make_unavailable_error(error).message) from error

    def drop_ballast(self) -> bool:
        """Give the ballast back to the file system; return whether there was any."""
        return self._ballast.drop()

    def forget_numbers(self) -> None:
        """Forget the remembered numbers of events: another process may have added some."""
        self._numbers.forget()
