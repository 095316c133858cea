"""What a dead engine held of an allowance: released or spent, once its work is taken up."""

from pathlib import Path

import pytest

from toolkit.contract.base import now
from toolkit.contract.money import ZERO_USD
from toolkit.engine.job_record import AttemptRecord, JobRecord
from toolkit.engine.money.abandoned_holds import make_hold_id, release_abandoned_holds
from toolkit.store import AddSpending, InsertRow, Lease, Store

AT = "2026-11-20T08:00:00.000Z"


def make_job(job_id: str, attempts: int) -> InsertRow:
    """A job whose record has so many attempts."""
    job = JobRecord(id=job_id, capability="llm.generate@1", input={}, created_at=now())
    job.attempts = [
        AttemptRecord(
            n=n + 1, provider="openai", status="running", reservation_usd=ZERO_USD, started_at=now()
        )
        for n in range(attempts)
    ]
    row = {"id": job_id, "account_id": "acc", "root_id": "run_a", "status": "running"}
    more = {"capability": job.capability, "created_at": AT, "doc": job.to_json()}
    return InsertRow("jobs", {**row, **more})


@pytest.mark.parametrize(("recorded", "spent"), [(0, 0), (1, 7)])
async def test_only_a_call_that_is_on_record_counts_as_spent(
    tmp_path: Path, recorded: int, spent: int
) -> None:
    """Given a hold whose engine died, then it is released unless its call may have been made."""
    store = await Store.open(tmp_path)
    try:
        inserted, old = store.leases.build_root("run_a", "run", "acc")
        hold_id = make_hold_id(old, "job_a", 1)
        row = {"id": hold_id, "spending_id": "day", "owner": "dead", "nano": 7, "created_at": AT}
        held = [AddSpending("day", "key", 7, 10), InsertRow("reservations", row)]
        await store.write([inserted, make_job("job_a", recorded), *held])
        await release_abandoned_holds(store, old)  # its own are not abandoned
        assert [each["id"] for each in await store.list_reservations("run_a")] == [hold_id]

        await store.leases.release(old, done=False)
        (new,) = await store.leases.claim(1)
        assert isinstance(new, Lease)
        await release_abandoned_holds(store, new)
        assert await store.list_reservations("run_a") == []
        assert (await store.get_spending("day"))[0] == spent
    finally:
        await store.close()
