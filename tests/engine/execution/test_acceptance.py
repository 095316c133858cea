"""Acceptance of a run: one transaction with the start of its work."""

from dataclasses import replace
from typing import get_args

import pytest

from tests.engine.execution.test_shared_directory import build_run
from tests.support.database_pool import ON_POSTGRESQL
from tests.support.engine_accounts import connect_account
from tests.support.timing import PATIENCE_S, wait_until_async
from toolkit.contract.account import KeyCreate
from toolkit.contract.choices import Scope
from toolkit.contract.errors import ServiceError
from toolkit.engine.observer import Observer
from toolkit.engine.request_context import IdempotencyClaim, RequestContext
from toolkit.local import open_engine
from toolkit.sandbox import Faults
from toolkit.settings import Settings


class CommitCounter(Observer):
    """Counts the transactions of an engine."""

    def __init__(self) -> None:
        self.count = 0

    def record_commit(self, seconds: float) -> None:
        """Count a transaction."""
        self.count += 1


def with_claim(context: RequestContext) -> RequestContext:
    """Return a request with an idempotency key whose other uses this process does not know."""
    return replace(context, claim=IdempotencyClaim("key", context.account_id, "same", 202))


async def test_a_run_takes_two_transactions(settings: Settings) -> None:
    """Given an idle engine, then acceptance and intent are one transaction, the end another."""
    counter = CommitCounter()
    engine = await open_engine(settings, observer=counter)
    context = await connect_account(engine, "minimax")
    counts = []
    for number in range(6):
        run = await engine.runs.create(context, build_run(number))
        assert run.status == "queued"
        await engine.wait(context, run.id, PATIENCE_S)
        assert (await engine.runs.get(context, run.id)).status == "completed"
        await engine.leases.wait(run.id)
        counts.append(counter.count)
    # PostgreSQL reads take turns of the loop, so the intent is written after the acceptance.
    assert counts[-1] - counts[0] == (3 if ON_POSTGRESQL else 2) * 5
    await engine.close(0)


@pytest.mark.parametrize("daily_limit", [None, 1.0])
async def test_a_rejected_acceptance_starts_nothing(
    settings: Settings, caplog: pytest.LogCaptureFixture, daily_limit: float | None
) -> None:
    """Given an idempotency key that another process claimed, then nothing is called or spent."""
    faults = Faults()
    engine = await open_engine(settings, faults=faults)
    owner = await connect_account(engine, "minimax")
    context = replace(owner, scopes=frozenset(get_args(Scope)))
    key = await engine.keys.create(context, KeyCreate(max_cost_usd_per_day=daily_limit))
    context = replace(context, key_id=key.id)
    first = await engine.runs.create(with_claim(context), build_run(0))
    await engine.wait(context, first.id, PATIENCE_S)
    remaining = await engine.core.allowances.find_remaining(context)
    late = with_claim(context)
    with pytest.raises(ServiceError, match=r"^UNAVAILABLE:"):
        await engine.runs.create(late, build_run(0))
    assert late.claim is not None
    assert late.claim.is_lost
    await wait_until_async(lambda: engine.leases.running_count == 0)
    assert [run.id for run in await engine.runs.list(context, 10, None)] == [first.id]
    assert len(faults.calls) == 1
    assert await engine.core.allowances.find_remaining(context) == remaining
    assert not [line.message for line in caplog.records if line.levelname != "DEBUG"]
    await engine.close(0)
