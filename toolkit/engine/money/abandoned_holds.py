"""Holds of allowances whose engine died: what is released of them, once another one takes over.

A hold is committed before the record of the call that it is for. Its id says which call that is, so
that whoever takes the work up can tell a call that may have been made from one that was not.
"""

import secrets

from toolkit.engine.job_record import read_job
from toolkit.store import AddSpending, Change, DeleteRow, Lease, Store

_SEPARATOR = "/"


def make_hold_id(lease: Lease, job_id: str, attempt: int) -> str:
    """Make the id of a hold.

    Args:
        lease: of the work that its call is for.
        job_id: the job that calls.
        attempt: the number of the attempt.
    """
    parts = (lease.root_id, str(lease.fence), job_id, str(attempt), secrets.token_hex(8))
    return _SEPARATOR.join(parts)


async def release_abandoned_holds(store: Store, lease: Lease) -> None:
    """Release what earlier holders of a lease held, before its work goes on.

    A call that is on record counts as spent, as its vendor may bill it; one that is not was never
    made.
    """
    changes: list[Change] = []
    for row in await store.list_reservations(lease.root_id):
        _, fence, job_id, attempt, _ = str(row["id"]).split(_SEPARATOR)
        if int(fence) >= lease.fence:
            continue
        changes.append(DeleteRow("reservations", str(row["id"])))
        job = await store.get_row("jobs", job_id)
        if job is None or len(read_job(job).attempts) < int(attempt):
            changes.append(AddSpending(str(row["spending_id"]), "", -int(row["nano"]), None))
    if changes:
        await store.write(changes, lease=lease)
