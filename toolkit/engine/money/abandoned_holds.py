"""Release of allowance reservations (holds) that a dead engine left, when another resumes the work.

A hold is committed before the record of its call. The hold's id names that call, so that the next
engine can distinguish a call that was possibly made from a call that never was.
"""

import secrets

from toolkit.engine.job_record import read_job
from toolkit.store import AddSpending, Change, DeleteRow, Lease, Store

_SEPARATOR = "/"


def make_hold_id(lease: Lease, job_id: str, attempt: int) -> str:
    """Make the id of a hold, which is a call's reservation in an allowance.

    Args:
        lease: lease on the work that makes the call.
        job_id: job that makes the call.
        attempt: the number of the attempt.
    """
    parts = (lease.root_id, str(lease.fence), job_id, str(attempt), secrets.token_hex(8))
    return _SEPARATOR.join(parts)


async def release_abandoned_holds(store: Store, lease: Lease) -> None:
    """Delete the reservations that earlier processes made for the work of a lease.

    A recorded call counts as spent, because its vendor may bill it. A call without a record was
    never made, so its amount is given back.
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
