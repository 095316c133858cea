"""The repair of the sums of what accounts store, beside engines that go on adding to them.

To add up all rows may take minutes, and every commit of an engine changes some sum. So what a sum
lacks is found as of one moment, and then added to whatever the sum has become: the rows that were
written meanwhile have been counted by their own triggers.
"""

from collections.abc import Mapping
from typing import Any, Final

from psycopg import Connection

from toolkit.store.postgres.advisory_locks import hold_lock
from toolkit.store.stored_bytes import COUNTED_SQL, build_totals_query, compute_shortfalls

# Two repairs at once would find the same shortfalls, and each would add them.
_LOCK: Final = "recount"
_ADD_SQL: Final = (
    "INSERT INTO stored_bytes AS kept (id, artifacts, records) VALUES (%s, %s, %s)"
    " ON CONFLICT (id) DO UPDATE SET artifacts = kept.artifacts + excluded.artifacts,"
    " records = kept.records + excluded.records"
)
# An engine has a sum locked for as long as a transaction takes.
LOCK_TIMEOUT_MS: Final = 10_000


def find_shortfalls(connection: "Connection[Any]") -> Mapping[str, tuple[int, int]]:
    """Find by how much accounts' sums are too small, of artifacts and of records, as of one moment.

    Args:
        connection: to the database, in no transaction.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        counted = connection.execute(COUNTED_SQL).fetchall()
        totals = connection.execute(build_totals_query("postgresql").encode()).fetchall()
    return compute_shortfalls(counted, totals)


def correct_sums(connection: "Connection[Any]") -> bool:
    """Correct the sums that are wrong, while engines add to them; return whether any were.

    Args:
        connection: to the database, in autocommit mode.

    Raises:
        psycopg.errors.LockNotAvailable: somebody has a sum locked for long; what was corrected
            until then stays so, and the others may be tried again.
    """
    with hold_lock(connection, _LOCK):
        shortfalls = find_shortfalls(connection)
        for account_id, missing in shortfalls.items():
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}".encode())
                connection.execute(_ADD_SQL, (account_id, *missing))
    return bool(shortfalls)
