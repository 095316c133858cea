"""Acceptance of a run: written together with the beginning of its work, or neither is."""

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
from toolkit.engine import Engine
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
        """Count one."""
        self.count += 1


def with_claim(context: RequestContext, key: str) -> RequestContext:
    """A request with an idempotency key, as a process that knows no other with it serves it."""
    return replace(context, claim=IdempotencyClaim(key, context.account_id, "same", 202))


async def run_until_over(engine: Engine, context: RequestContext, number: int) -> None:
    """Have a run accepted, and wait until its lease is given back."""
    accepted = await engine.runs.create(context, build_run(number))
    assert accepted.status == "queued"
    ended = await engine.wait(context, accepted.id, PATIENCE_S)
    assert ended is not None
    assert ended.status == "completed"
    await engine.leases.wait(accepted.id)


async def test_a_run_takes_two_transactions(settings: Settings) -> None:
    """Given nothing else to do, then a run's acceptance and intent are one, and its end one."""
    counter = CommitCounter()
    engine = await open_engine(settings, observer=counter)
    context = await connect_account(engine, "minimax")
    await run_until_over(engine, context, 0)
    before = counter.count
    for number in range(1, 6):
        await run_until_over(engine, context, number)
    # Where reading takes turns, the intent comes after the acceptance was sent.
    assert counter.count - before == (3 if ON_POSTGRESQL else 2) * 5
    await engine.close(0)


@pytest.mark.parametrize("a_day", [None, 1.0])
async def test_a_refused_acceptance_begins_nothing(
    settings: Settings, caplog: pytest.LogCaptureFixture, a_day: float | None
) -> None:
    """Given a key that another process has claimed, then nothing is called, spent or logged."""
    faults = Faults()
    engine = await open_engine(settings, faults=faults)
    owner = await connect_account(engine, "minimax")
    context = replace(owner, scopes=frozenset(get_args(Scope)))
    key = await engine.keys.create(context, KeyCreate(max_cost_usd_per_day=a_day))
    context = replace(context, key_id=key.id)
    first = await engine.runs.create(with_claim(context, "key"), build_run(0))
    await engine.wait(context, first.id, PATIENCE_S)
    spent = await engine.core.allowances.find_remaining(context)
    called = len(faults.calls)
    late = with_claim(context, "key")
    with pytest.raises(ServiceError, match=r"^UNAVAILABLE:"):
        await engine.runs.create(late, build_run(0))
    assert late.claim is not None
    assert late.claim.is_lost
    await wait_until_async(lambda: engine.leases.running_count == 0, "nothing is worked on")
    assert [run.id for run in await engine.runs.list(context, 10, None)] == [first.id]
    assert len(faults.calls) == called == 1
    assert await engine.core.allowances.find_remaining(context) == spent
    assert not [line.message for line in caplog.records if line.levelname != "DEBUG"]
    await engine.close(0)
