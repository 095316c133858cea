"""PostgreSQL as the writer sees it: a transaction in three round trips, made in a thread."""

import time
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, cast

import psycopg
from psycopg import errors
from psycopg.rows import TupleRow

from toolkit.store.changes import AppendEvent, Lease, LeaseLost, make_unusable_error
from toolkit.store.postgres.connections import (
    Session,
    make_unreachable_error,
    open_connection,
    open_pipeline,
    translate_postgres_errors,
)
from toolkit.store.postgres.notices import NOTIFY_SQL, build_payloads
from toolkit.store.postgres.reads import spell_parameters
from toolkit.store.postgres.writing.ballast import SessionBallast
from toolkit.store.tables import metadata
from toolkit.store.text_index import (
    POSTGRES_INSERT_SQL,
    POSTGRES_NUMBER,
    TEXT_TABLES,
    build_postgres_values,
    fold_inputs,
)
from toolkit.store.writing.statements import quote_names
from toolkit.store.writing.submissions import MergedChanges
from toolkit.store.writing.write_connection import (
    EVENT_COLUMNS,
    CommitInDoubt,
    DatabaseLocked,
    DatabaseUnreachable,
    Rows,
    WriteConnection,
)

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
BEGIN_SQL: Final = "SELECT pg_current_xact_id()::text"
PROGRESS_WAIT_S: Final = 0.05
# A transaction that gives up waiting starts over, so it waits longer than the server needs to
# notice a deadlock.
LOCK_TIMEOUT_MS: Final = 1_500
RECONNECT_WAIT_S: Final = 0.1
# All rows are found by keys: for a small table the server would choose another plan, and keep it.
# If no other plan exists, its forbidden steps count as so expensive that the server would compile
# the statement first, which takes a hundred times as long as running it.
_SETTINGS_SQL: Final = (
    f"SET lock_timeout = {LOCK_TIMEOUT_MS};"
    " SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;"
    " SET jit = off"
)
_END_SESSION_SQL: Final = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid = %s AND application_name = %s AND usename = current_user"
)
_CONFIGURED: Final = frozenset({"accounts", "api_keys", "connections", "shares"})


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
    """Build the statement that locks rows by ids, in the order in which all engines lock them."""
    return f'SELECT {columns} FROM "{table}" WHERE id = ANY(%s) ORDER BY id FOR UPDATE'  # noqa: S608


@cache
def build_last_numbers(key: str, column: str) -> str:
    """Build the statement that finds the last event number of each resource or job; 0 for none."""
    last = f"SELECT max({column}) FROM events WHERE {key} = v.id"  # noqa: S608 - our names
    return f"SELECT v.id, coalesce(({last}), 0) FROM unnest(%s::text[]) AS v (id)"  # noqa: S608


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that was sent.

    Attributes:
        xid: id of its transaction.
        trace: query for a row that the transaction wrote, and its values; None if it wrote no
            row that stays.
        is_lasting: whether no other transaction removes that trace.
    """

    xid: str
    trace: tuple[str, tuple[object, ...]] | None
    is_lasting: bool

    def find_outcome(self, connection: Session) -> bool:
        """Find out whether the commit was made.

        After a crash, the server may reuse the ids of transactions that left nothing on its disk.
        So if a commit counts as made, its trace must exist, too.

        Raises:
            DatabaseLocked: the commit is still in progress, or the server cannot be asked.
            ServiceError: `UNAVAILABLE` if the server no longer knows the outcome.
        """
        with translate_postgres_errors(connection):
            try:
                ask = "SELECT pg_xact_status(%s::text::xid8)"
                (status,) = connection.execute(ask, (self.xid,)).fetchone() or (None,)
            except errors.InvalidParameterValue:
                return False  # no such transaction has been yet, so nothing of it was kept
            if status == "in progress":
                time.sleep(PROGRESS_WAIT_S)  # in the writer's own thread
                raise DatabaseLocked
            if status == "aborted":
                return False
            if status == "committed" and self.trace is None:
                return True
            if status == "committed" and self.trace is not None:
                has_trace = connection.execute(*self.trace).fetchone() is not None
                if has_trace or self.is_lasting:
                    return has_trace
        raise make_unusable_error(
            "The connection to the database was lost, and it is unknown whether this was written:"
            " check whether it exists before you retry."
        )


def make_commit(xid: str, batch: MergedChanges, event_rows: list[list[object]]) -> Commit:
    """Make the record of a commit that is about to be sent."""
    row_xid = int(xid) % 2**32  # as rows have it
    if event_rows:
        key, number, *_ = EVENT_COLUMNS
        sql = f"SELECT 1 FROM events WHERE {key} = %s AND {number} = %s AND xmin::text = %s"  # noqa: S608
        return Commit(xid, (sql, (event_rows[0][0], event_rows[0][1], str(row_xid))), True)
    for table, rows in batch.inserts.items():
        sql = f'SELECT 1 FROM "{table}" WHERE id = %s'  # noqa: S608 - our names
        return Commit(xid, (sql, (next(iter(rows)),)), True)
    for table, rows in batch.updates.items():
        sql = f'SELECT 1 FROM "{table}" WHERE id = %s AND xmin::text = %s'  # noqa: S608
        return Commit(xid, (sql, (next(iter(rows)), str(row_xid))), False)
    for table, row_ids in batch.deletes.items():
        sql = f'SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM "{table}" WHERE id = %s)'  # noqa: S608
        return Commit(xid, (sql, (row_ids[0],)), True)
    return Commit(xid, None, False)


class PostgresWriteConnection(WriteConnection):
    """The writer's connection to a database of PostgreSQL, which it opens again when it is lost.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be opened.
    """

    kind = "postgresql"
    is_remote = True
    _text_tables = TEXT_TABLES

    def __init__(self, url: str, owner: str) -> None:
        super().__init__(owner)
        self._url = url
        self._name = f"toolkit writer {owner}"
        self._pid = 0
        self._is_closed = False
        self._last_numbers: dict[tuple[str, str], int] = {}
        self._ballast = SessionBallast()
        with translate_postgres_errors():
            self._connection = self._open()

    def close(self) -> None:
        """Close the connection, for good."""
        self._is_closed = True
        self._connection.close()

    def _open(self) -> Session:
        connection = open_connection(self._url, self._name, is_impatient=True)
        try:
            # The lost connection's transaction may be open still, and hold its locks until its end.
            connection.execute(_END_SESSION_SQL, (self._pid, self._name), prepare=False)
            connection.execute(_SETTINGS_SQL, prepare=False)
        except BaseException:
            connection.close()
            raise
        self._pid = connection.info.backend_pid
        self._ballast.note_new_session()
        return connection

    def _get_connection(self) -> Session:
        """Return the connection, opened anew if it was lost."""
        if self._is_closed:
            raise make_unreachable_error()
        if self._connection.closed:
            try:
                self._connection = self._open()
            except psycopg.Error as error:
                time.sleep(RECONNECT_WAIT_S)  # in the writer's own thread
                raise DatabaseUnreachable from error
        return self._connection

    def _write(
        self,
        leases: Collection[Lease],
        batch: MergedChanges,
        wait_ms: int,  # noqa: ARG002 - a connection that waits here keeps its place in the queue
    ) -> float:
        if not leases and batch.is_empty:
            return 0.0
        connection = self._get_connection()
        with translate_postgres_errors(connection):
            try:
                return self._run_transaction(connection, leases, batch)
            except BaseException:
                _roll_back(connection)
                raise

    def _run_transaction(
        self, connection: Session, leases: Collection[Lease], batch: MergedChanges
    ) -> float:
        self.numbers.begin(batch.inserts.values())
        with open_pipeline(connection):
            xid = self._begin(connection, leases, batch)
            event_rows = self.numbers.make_rows(batch.events)
            self._apply_changes(batch, event_rows)
        self._check_limits()
        took_s = self._commit(connection, make_commit(xid, batch, event_rows), batch.events)
        self.numbers.trim()
        return took_s

    def _begin(self, connection: Session, leases: Collection[Lease], batch: MergedChanges) -> str:
        """Begin a transaction: lock rows that others may want, and look up the events' numbers.

        Returns:
            The id of the transaction.

        Raises:
            LeaseLost: another process has one of the leases.
        """
        connection.execute("BEGIN")
        transaction = connection.execute(BEGIN_SQL)
        ids = sorted(lease.root_id for lease in leases)
        locks = connection.execute(build_lock("roots", "id, owner, fence"), (ids,))
        if _CONFIGURED.intersection(
            batch.inserts, batch.updates, batch.replacements, batch.deletes
        ):
            connection.execute("SELECT version FROM configuration FOR UPDATE")
        accounts = {lease.account_id for lease in leases}
        for inserted in (*batch.inserts.values(), *batch.replacements.values()):
            accounts |= {str(row["account_id"]) for row in inserted.values() if "account_id" in row}
        connection.execute(build_lock("stored_bytes"), (sorted(accounts),))
        unknown = [
            (key, connection.execute(build_last_numbers(key, column), (values,)))
            for key, column, values in self.numbers.list_unknown(batch.events)
        ]
        row = transaction.fetchone()
        fences = {lease.root_id: lease.fence for lease in leases}
        for root_id, owner, fence in locks.fetchall():
            if owner != self._owner or fence != fences[root_id]:
                raise LeaseLost(root_id)
        self._last_numbers = {
            (key, str(value)): int(last)
            for key, cursor in unknown
            for value, last in cursor.fetchall()
        }
        return str(row[0]) if row is not None else ""

    def _find_last_number(self, key: str, column: str, value: str) -> int:  # noqa: ARG002
        return self._last_numbers[key, value]

    def _index_texts(self, table: str, rows: Mapping[str, MutableMapping[str, object]]) -> None:
        index_texts(self._connection, table, rows)

    def _insert(
        self, table: str, columns: tuple[str, ...], rows: Rows, on_conflict: str = ""
    ) -> None:
        insert_rows(self._connection, table, columns, rows, on_conflict)

    def _update(self, table: str, columns: tuple[str, ...], rows: Rows) -> None:
        arrays = transpose(table, columns, rows, "text")
        self._connection.execute(build_update(table, columns), arrays)

    def _delete(self, table: str, row_ids: Sequence[str]) -> None:
        deletion = f'DELETE FROM "{table}" WHERE id = ANY(%s)'  # noqa: S608 - our names
        self._connection.execute(deletion, (row_ids,))

    def _execute(self, sql: str, parameters: Mapping[str, object]) -> psycopg.Cursor[TupleRow]:
        return self._connection.execute(spell_parameters(sql), parameters)

    def _commit(self, connection: Session, commit: Commit, events: Iterable[AppendEvent]) -> float:
        """Commit, notify the other engines of the events, and return the seconds it took.

        Raises:
            CommitInDoubt: the connection was lost before the server confirmed the commit.
        """
        ids = {event.resource_id for event in events} | {event.job_id or "" for event in events}
        payloads = list(build_payloads(self._owner, ids - {""}))
        started = time.perf_counter()
        cursor = None
        try:
            with open_pipeline(connection):
                cursor = connection.execute("COMMIT", prepare=False)
                if payloads:
                    # Outside of the transaction: one that notifies waits for all others to commit.
                    connection.execute(NOTIFY_SQL, (payloads,))
        except psycopg.Error as error:
            if cursor is not None and cursor.statusmessage == "COMMIT":
                return time.perf_counter() - started  # it is the notice that failed
            if connection.closed:
                raise CommitInDoubt(lambda: commit.find_outcome(self._get_connection())) from error
            raise
        if cursor.statusmessage != "COMMIT":
            raise psycopg.InternalError("the transaction was rolled back")
        return time.perf_counter() - started

    @property
    def ballast_bytes(self) -> int:
        """The disk space that is reserved for results, in bytes."""
        return self._ballast.size_bytes

    def grow_ballast(self, size_bytes: int) -> None:
        """Reserve at least `size_bytes` of disk space for results."""
        if size_bytes > self._ballast.size_bytes:
            connection = self._get_connection()
            with translate_postgres_errors(connection):
                self._ballast.grow(connection, size_bytes)

    def drop_ballast(self) -> bool:
        """Release the disk space that is reserved for results; return whether there was any."""
        return not self._connection.closed and self._ballast.drop(self._connection)


def _roll_back(connection: Session) -> None:
    if not connection.closed:
        try:
            connection.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            connection.close()


def index_texts(
    connection: Session, table: str, rows: Mapping[str, MutableMapping[str, object]]
) -> None:
    """Insert the texts of new rows, and mark the rows as indexed."""
    folded = fold_inputs(table, rows)
    if folded:
        connection.execute(POSTGRES_INSERT_SQL, build_postgres_values(folded))
    for row_id, row in rows.items():
        row["text_number"] = POSTGRES_NUMBER if row_id in folded else None


def insert_rows(
    connection: Session, table: str, columns: tuple[str, ...], rows: Rows, on_conflict: str = ""
) -> None:
    """Insert rows, each in the order of the columns."""
    statement = build_insert(table, columns, on_conflict)
    connection.execute(statement, transpose(table, columns, rows))
