"""PostgreSQL as the writer sees it: a transaction in three round trips, made in a thread."""

import json
import time
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Final

import psycopg

from toolkit.store.changes import AppendEvent, Lease, LeaseLost, OverLimit, PatchDocument
from toolkit.store.crashpoints import find_crash_point
from toolkit.store.postgres.connections import (
    make_unreachable_error,
    open_connection,
    open_pipeline,
    translate_postgres_errors,
)
from toolkit.store.postgres.notices import NOTIFY_SQL, build_payloads
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
from toolkit.store.writing.event_numbers import EVENT_COLUMNS, EventNumbers
from toolkit.store.writing.submissions import MergedChanges
from toolkit.store.writing.write_connection import CommitInDoubt, DatabaseUnreachable

# What gives up waiting does everything again, so a lock is waited for until after the time in which
# the server notices a deadlock.
LOCK_TIMEOUT_MS: Final = 1_500
RECONNECT_WAIT_S: Final = 0.1
# All is found by keys: while a table is still small, the server would plan otherwise, and keep to
# that plan. Where there is no other way, what is forbidden counts as so dear that the server would
# compile the statement first, which takes a hundred times as long as running it.
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


class PostgresWriteConnection:
    """The writer's connection to a database of PostgreSQL, which it opens again when it is lost.

    Args:
        url: the database's address.
        owner: the id of this opening of the store.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be opened.
    """

    is_remote = True

    def __init__(self, url: str, owner: str) -> None:
        self._url = url
        self._owner = owner
        self._name = f"toolkit writer {owner}"
        self._pid = 0
        self._is_closed = False
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._last_numbers: dict[tuple[str, str], int] = {}
        self._numbers = EventNumbers(self._get_last_number)
        self._crash = find_crash_point("commit")
        self._ballast = SessionBallast()
        with translate_postgres_errors():
            self._connection = self._open()

    def close(self) -> None:
        """Close the connection, for good."""
        self._is_closed = True
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> psycopg.Connection[tuple[Any, ...]]:
        connection = open_connection(self._url, self._name, is_impatient=True)
        try:
            # What the lost connection was at may not have ended, and holds its locks until it does.
            connection.execute(_END_SESSION_SQL, (self._pid, self._name), prepare=False)
            connection.execute(_SETTINGS_SQL, prepare=False)
        except BaseException:
            connection.close()
            raise
        self._pid = connection.info.backend_pid
        self._ballast.note_new_session()
        return connection

    def _get_connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Return the connection, opened anew if it was lost.

        Raises:
            DatabaseUnreachable: it cannot be opened now.
            ServiceError: `UNAVAILABLE` when the store is closed.
        """
        if self._is_closed:
            raise make_unreachable_error()
        if self._connection is None or self._connection.closed:
            try:
                self._connection = self._open()
            except psycopg.Error as error:
                time.sleep(RECONNECT_WAIT_S)  # in the writer's own thread
                raise DatabaseUnreachable from error
        return self._connection

    def write(
        self,
        leases: Collection[Lease],
        batch: MergedChanges,
        wait_ms: int,  # noqa: ARG002 - a connection that waits here keeps its place in the queue
    ) -> float:
        """Write a batch in one transaction, and return the seconds that its commit took."""
        if not leases and batch.is_empty:
            return 0.0
        try:
            connection = self._get_connection()
            with translate_postgres_errors(connection):
                try:
                    return self._run_transaction(connection, leases, batch)
                except BaseException:
                    _roll_back(connection)
                    raise
        except BaseException:
            self._numbers.forget()
            raise

    def _run_transaction(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        leases: Collection[Lease],
        batch: MergedChanges,
    ) -> float:
        self._numbers.begin()
        for rows in batch.inserts.values():
            self._numbers.add_new(rows)
        with open_pipeline(connection):
            xid = self._begin(connection, leases, batch)
            event_rows = self._numbers.make_rows(batch.events)
            patched, spent = self._apply_changes(connection, batch, event_rows)
        for patch, cursor in patched:
            if not cursor.rowcount:
                _patch_here(connection, patch)
        for spending_id, cursor in spent:
            if not cursor.rowcount:
                raise OverLimit(spending_id)
        if self._crash is not None:
            self._crash("before")
        took_s = self._commit(connection, make_commit(xid, batch, event_rows), batch.events)
        if self._crash is not None:
            self._crash("after")
        self._numbers.trim()
        return took_s

    def _begin(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        leases: Collection[Lease],
        batch: MergedChanges,
    ) -> str:
        """Begin a transaction: lock what others may want, and look up the numbers of events.

        Returns:
            the id of the transaction.
        """
        connection.execute("BEGIN")
        begun = connection.execute(BEGIN_SQL)
        ids = sorted(lease.root_id for lease in leases)
        held = connection.execute(statements.build_lock("roots", "id, owner, fence"), (ids,))
        if _CONFIGURED.intersection(
            batch.inserts, batch.updates, batch.replacements, batch.deletes
        ):
            connection.execute(statements.LOCK_CONFIGURATION_SQL)
        accounts = {lease.account_id for lease in leases}
        for inserted in (*batch.inserts.values(), *batch.replacements.values()):
            accounts |= {str(row["account_id"]) for row in inserted.values() if "account_id" in row}
        connection.execute(statements.build_lock("stored_bytes"), (sorted(accounts),))
        unknown = [
            (key, connection.execute(statements.build_last_numbers(key, column), (wanted,)))
            for key, column, wanted in self._numbers.list_unknown(batch.events)
        ]
        row = begun.fetchone()
        fences = {lease.root_id: lease.fence for lease in leases}
        for root_id, owner, fence in held.fetchall():
            if owner != self._owner or fence != fences[root_id]:
                raise LeaseLost(root_id)
        self._last_numbers = {
            (key, str(value)): int(last)
            for key, cursor in unknown
            for value, last in cursor.fetchall()
        }
        return str(row[0]) if row is not None else ""

    def _get_last_number(self, key: str, _column: str, value: str) -> int:
        return self._last_numbers[key, value]

    def _apply_changes(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        batch: MergedChanges,
        event_rows: Sequence[Sequence[object]],
    ) -> tuple[
        list[tuple[PatchDocument, psycopg.Cursor[tuple[Any, ...]]]],
        list[tuple[str, psycopg.Cursor[tuple[Any, ...]]]],
    ]:
        """Send a batch's changes, sorted, so that no two engines wait for each other.

        Returns:
            each patch with its answer, and the counting of what was spent, by the spending's id.
        """
        run = connection.execute
        for table, rows in sorted(batch.inserts.items()):
            insert_rows(connection, table, rows)
        for table, rows in sorted(batch.updates.items()):
            for columns, values in _group_updates(rows).items():
                given = statements.transpose(table, columns, values, "text")
                run(statements.build_update(table, columns), given)
        patched = _apply_patches(connection, batch.patches)
        for table, rows in sorted(batch.replacements.items()):
            insert_rows(connection, table, rows, replace=True)
        for table, row_ids in sorted(batch.deletes.items()):
            run(statements.build_delete(table), (sorted(row_ids),))
        spent = []
        for spend in sorted(batch.spendings, key=lambda each: each.id):
            run(statements.INSERT_SPENDING_SQL, (spend.id, spend.key_id))
            wanted = {"nano": spend.nano_usd, "id": spend.id, "most": spend.limit}
            spent.append((spend.id, run(statements.ADD_SPENDING_SQL, wanted)))
        for table, columns, sums, values in _group_increments(batch):
            given = statements.transpose(table, (*columns, *sums), values)
            run(statements.build_increment(table, columns, sums), given)
        if event_rows:
            given = statements.transpose("events", EVENT_COLUMNS, event_rows)
            run(statements.build_insert("events", EVENT_COLUMNS), given)
        return patched, spent

    def _commit(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        commit: Commit,
        events: Iterable[AppendEvent],
    ) -> float:
        """Commit, and tell the other engines of the events, and return the seconds it took.

        Raises:
            CommitInDoubt: the connection was lost before the server said that it had committed.
        """
        ids = {event.resource_id for event in events} | {event.job_id or "" for event in events}
        payloads = list(build_payloads(self._owner, ids - {""}))
        started = time.perf_counter()
        done = None
        try:
            with open_pipeline(connection):
                done = connection.execute("COMMIT", prepare=False)
                if payloads:
                    # Outside of the transaction: one that notifies waits for all others to commit.
                    connection.execute(NOTIFY_SQL, (payloads,))
        except psycopg.Error as error:
            if done is not None and done.statusmessage == "COMMIT":
                return time.perf_counter() - started  # it is the notice that failed
            if connection.closed:
                raise CommitInDoubt(lambda: commit.find_outcome(self._get_connection())) from error
            raise
        if done.statusmessage != "COMMIT":
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
        connection = self._connection
        if connection is None or connection.closed:
            return False
        return self._ballast.drop(connection)

    def forget_numbers(self) -> None:
        """Forget the remembered numbers of events: another process may have added some."""
        self._numbers.forget()


def _roll_back(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    if not connection.closed:
        try:
            connection.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            connection.close()


def _index_texts(
    connection: psycopg.Connection[tuple[Any, ...]],
    table: str,
    rows: Mapping[str, MutableMapping[str, object]],
) -> None:
    """Insert the texts of new rows, and mark the rows as indexed."""
    folded = fold_inputs(table, rows)
    if folded:
        connection.execute(POSTGRES_INSERT_SQL, build_postgres_values(folded))
    for row_id, row in rows.items():
        row["text_number"] = POSTGRES_NUMBER if row_id in folded else None


def insert_rows(
    connection: psycopg.Connection[tuple[Any, ...]],
    table: str,
    rows: Mapping[str, MutableMapping[str, object]],
    *,
    replace: bool = False,
) -> None:
    """Insert rows by their ids, and their texts into the index."""
    if table in TEXT_TABLES:
        _index_texts(connection, table, rows)
    grouped: dict[tuple[str, ...], list[list[object]]] = {}
    for _, row in sorted(rows.items()):
        grouped.setdefault(tuple(row), []).append(list(row.values()))
    for columns, values in grouped.items():
        statement = statements.build_insert(table, columns, replace=replace)
        connection.execute(statement, statements.transpose(table, columns, values))


def _apply_patches(
    connection: psycopg.Connection[tuple[Any, ...]], patches: Iterable[PatchDocument]
) -> list[tuple[PatchDocument, psycopg.Cursor[tuple[Any, ...]]]]:
    """Change members of documents, sorted, and return the answer for each."""
    return [
        (
            each,
            connection.execute(
                statements.build_patch(each.table), (json.dumps(dict(each.values)), each.id)
            ),
        )
        for each in sorted(patches, key=lambda patch: (patch.table, patch.id))
    ]


def _patch_here(connection: psycopg.Connection[tuple[Any, ...]], patch: PatchDocument) -> None:
    """Change members of a document that the server cannot read, if it is there."""
    row = connection.execute(statements.build_read_doc(patch.table), (patch.id,)).fetchone()
    if row is not None:
        doc = json.dumps({**json.loads(row[0]), **patch.values})
        connection.execute(statements.build_write_doc(patch.table), (doc, patch.id))


def _group_updates(
    rows: Mapping[str, Mapping[str, object]],
) -> dict[tuple[str, ...], list[list[object]]]:
    """Group rows by the columns that change, each sorted by the ids that its rows end with."""
    found: dict[tuple[str, ...], list[list[object]]] = {}
    for row_id, changed in sorted(rows.items()):
        found.setdefault(tuple(changed), []).append([*changed.values(), row_id])
    return found


def _group_increments(
    batch: MergedChanges,
) -> list[tuple[str, tuple[str, ...], tuple[str, ...], list[list[object]]]]:
    """Group rows to add to by their tables and columns, each sorted by the rows' ids."""
    found: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[list[object]]] = {}
    for _, (count, sums) in sorted(batch.increments.items()):
        key = count.table, tuple(count.values), tuple(sums)
        found.setdefault(key, []).append([*count.values.values(), *sums.values()])
    return [(*key, rows) for key, rows in sorted(found.items())]
