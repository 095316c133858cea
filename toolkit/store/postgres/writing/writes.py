"""PostgreSQL as the writer sees it: a transaction in three round trips, made in a thread."""

import time
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from typing import Final

import psycopg
from psycopg.rows import TupleRow

from toolkit.store.changes import (
    AppendEvent,
    Lease,
    LeaseLost,
)
from toolkit.store.postgres.connections import (
    Session,
    make_unreachable_error,
    open_connection,
    open_pipeline,
    translate_postgres_errors,
)
from toolkit.store.postgres.notices import NOTIFY_SQL, build_payloads
from toolkit.store.postgres.reads import spell_parameters
from toolkit.store.postgres.writing import statements
from toolkit.store.postgres.writing.ballast import SessionBallast
from toolkit.store.postgres.writing.commits import BEGIN_SQL, Commit, make_commit
from toolkit.store.text_index import (
    POSTGRES_INSERT_SQL,
    POSTGRES_NUMBER,
    TEXT_TABLES,
    build_postgres_values,
    fold_inputs,
)
from toolkit.store.writing.submissions import MergedChanges
from toolkit.store.writing.write_connection import (
    CommitInDoubt,
    DatabaseUnreachable,
    Rows,
    WriteConnection,
)

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
        """Return the connection, opened anew if it was lost.

        Raises:
            DatabaseUnreachable: it cannot be opened now.
            ServiceError: `UNAVAILABLE` when the store is closed.
        """
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
        self._crash("before")
        took_s = self._commit(connection, make_commit(xid, batch, event_rows), batch.events)
        self._crash("after")
        self.numbers.trim()
        return took_s

    def _begin(self, connection: Session, leases: Collection[Lease], batch: MergedChanges) -> str:
        """Begin a transaction: lock rows that others may want, and look up the events' numbers.

        Returns:
            The id of the transaction.
        """
        connection.execute("BEGIN")
        transaction = connection.execute(BEGIN_SQL)
        ids = sorted(lease.root_id for lease in leases)
        locks = connection.execute(statements.build_lock("roots", "id, owner, fence"), (ids,))
        if _CONFIGURED.intersection(
            batch.inserts, batch.updates, batch.replacements, batch.deletes
        ):
            connection.execute("SELECT version FROM configuration FOR UPDATE")
        accounts = {lease.account_id for lease in leases}
        for inserted in (*batch.inserts.values(), *batch.replacements.values()):
            accounts |= {str(row["account_id"]) for row in inserted.values() if "account_id" in row}
        connection.execute(statements.build_lock("stored_bytes"), (sorted(accounts),))
        unknown = [
            (key, connection.execute(statements.build_last_numbers(key, column), (values,)))
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
        arrays = statements.transpose(table, columns, rows, "text")
        self._connection.execute(statements.build_update(table, columns), arrays)

    def _delete(self, table: str, row_ids: Sequence[str]) -> None:
        deletion = f'DELETE FROM "{table}" WHERE id = ANY(%s)'  # noqa: S608 - our names
        self._connection.execute(deletion, (row_ids,))

    def _execute(self, sql: str, parameters: Mapping[str, object]) -> psycopg.Cursor[TupleRow]:
        return self._connection.execute(spell_parameters(sql), parameters)

    def _commit(
        self,
        connection: Session,
        commit: Commit,
        events: Iterable[AppendEvent],
    ) -> float:
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
        """Return how many bytes of ballast are held."""
        return self._ballast.size_bytes

    def grow_ballast(self, size_bytes: int) -> None:
        """Hold at least so many bytes of ballast."""
        if size_bytes > self._ballast.size_bytes:
            connection = self._get_connection()
            with translate_postgres_errors(connection):
                self._ballast.grow(connection, size_bytes)

    def drop_ballast(self) -> bool:
        """Give the ballast back to the file system; return whether there was any."""
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
    statement = statements.build_insert(table, columns, on_conflict)
    connection.execute(statement, statements.transpose(table, columns, rows))
