"""Holds of a dead engine on an allowance: released or spent when its work is taken up."""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from tests.support.timing import yield_turns
from tests.support.write_lock import WriteLock
from toolkit.contract.base import now
from toolkit.contract.money import ZERO_USD
from toolkit.engine.job_record import AttemptRecord, JobRecord
from toolkit.engine.money.abandoned_holds import make_hold_id, release_abandoned_holds
from toolkit.engine.money.allowance import Allowances, make_account_limit
from toolkit.engine.money.budget import reserve
from toolkit.store import AddSpending, InsertRow, Lease, Store

AT = "2026-11-20T08:00:00.000Z"


def make_job(job_id: str, attempts: int) -> InsertRow:
    """Build the row of a job with this number of attempts."""
    job = JobRecord(id=job_id, capability="llm.generate@1", input={}, created_at=now())
    job.attempts = [
        AttemptRecord(
            n=n + 1, provider="openai", status="running", reservation_usd=ZERO_USD, started_at=now()
        )
        for n in range(attempts)
    ]
    row = {"id": job_id, "account_id": "acc", "root_id": "run_a", "status": "running"}
    row |= {"capability": job.capability, "created_at": AT, "doc": job.to_json()}
    return InsertRow("jobs", row)


async def test_releases_a_hold_whose_work_is_cancelled_meanwhile(
    tmp_path: Path, find_url: Callable[[Path], str | None]
) -> None:
    """Given a hold that is being written, when it is cancelled, then nothing is held or spent."""
    store = await Store.open(tmp_path, database=find_url(tmp_path))
    lock = WriteLock(tmp_path, find_url(tmp_path))
    try:
        inserted, lease = store.leases.build_root("run_a", "run", "acc")
        await store.write([inserted])
        lock.take()
        holding = asyncio.create_task(
            Allowances(store).hold(
                lease,
                ("job_a", 1),
                [make_account_limit("acc", 1.0)],
                Decimal("0.25"),
                await reserve([], Decimal("0.25")),
                partial(store.write, lease=lease),
            )
        )
        await yield_turns(5)
        for _ in range(2):  # a deadline may follow a cancel
            holding.cancel()
            await yield_turns(5)
        lock.release()
        with pytest.raises(asyncio.CancelledError):
            await holding
        await store.write([], lease=lease)  # after all earlier writes
        assert await store.list_reservations("run_a") == []
        (spending,) = await store.find_rows("spending")
        assert spending["nano"] == 0
    finally:
        lock.close()
        await store.close()


@pytest.mark.parametrize(("recorded", "spent"), [(0, 0), (1, 7)])
async def test_counts_only_recorded_calls_as_spent(
    tmp_path: Path, recorded: int, spent: int
) -> None:
    """Given a hold whose engine died, then it is spent if its call is on record, else released."""
    store = await Store.open(tmp_path)
    try:
        inserted, old = store.leases.build_root("run_a", "run", "acc")
        hold_id = make_hold_id(old, "job_a", 1)
        row = {"id": hold_id, "spending_id": "day", "owner": "dead", "nano": 7, "created_at": AT}
        hold = [AddSpending("day", "key", 7, 10), InsertRow("reservations", row)]
        await store.write([inserted, make_job("job_a", recorded), *hold])
        await release_abandoned_holds(store, old)  # an own hold is not abandoned
        assert [hold["id"] for hold in await store.list_reservations("run_a")] == [hold_id]

        await store.leases.release(old, is_done=False)
        (new,) = await store.leases.claim(1)
        assert isinstance(new, Lease)
        await release_abandoned_holds(store, new)
        assert await store.list_reservations("run_a") == []
        assert (await store.get_spending("day"))[0] == spent
    finally:
        await store.close()
