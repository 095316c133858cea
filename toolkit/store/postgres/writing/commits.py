"""Commits whose connection was lost: another connection finds out whether they were made."""

import time
from dataclasses import dataclass
from typing import Final

from psycopg import errors

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.postgres.connections import Session, translate_postgres_errors
from toolkit.store.writing.event_numbers import EVENT_COLUMNS
from toolkit.store.writing.submissions import MergedChanges
from toolkit.store.writing.write_connection import DatabaseLocked

BEGIN_SQL: Final = "SELECT pg_current_xact_id()::text"
PROGRESS_WAIT_S: Final = 0.05


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
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "The connection to the database was lost, and it is unknown whether this was written:"
            " check whether it exists before you retry.",
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
