"""Engines on one database of PostgreSQL that are told at once what they would find in a second."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from tests.support.slow_capability import load_slow_registry
from tests.support.timing import wait_until_async
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Engine
from toolkit.engine.execution import leases
from toolkit.engine.request_context import RequestContext
from toolkit.settings import Settings

# Far less than until anybody looks by himself.
SOON_S = 30.0
LISTENING_SQL = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN toolkit_work%'"


@pytest.fixture
async def engines(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[list[Engine]]:
    """Two engines, as of two machines, that look for nothing by themselves for ten minutes."""
    monkeypatch.setattr(leases, "KEEPER_INTERVAL_S", 600.0)
    opened = []
    for name in ("one", "two"):
        settings = Settings(data_dir=tmp_path / name, database=postgres_url, lease_s=6000.0)
        opened.append(await Engine.open(settings, registry=load_slow_registry()))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        await wait_until_async(lambda: connection.execute(LISTENING_SQL).fetchone() == (2,))
    yield opened
    for engine in opened:
        await engine.close(0)


async def begin_nap(engine: Engine) -> tuple[RequestContext, str]:
    """Begin a workflow that takes long."""
    account, _ = await engine.accounts.open_local_account()
    context = RequestContext(account.id)
    nap = NodeCreate(id="nap", capability="test.nap", input={"seconds": 60})
    made = await engine.workflows.create(context, WorkflowCreate(name="nap", nodes=[nap]))
    await engine.core.store.wait_for_event(made.id, after=1, timeout_s=SOON_S)
    return context, made.id


async def test_what_a_drained_engine_leaves_is_taken_up_at_once(engines: list[Engine]) -> None:
    """Given an engine that ends, then the other one goes on with its work before it looks."""
    first, second = engines
    await begin_nap(first)
    await first.close(0)
    async with asyncio.timeout(SOON_S):
        await wait_until_async(lambda: second.leases.running_count == 1)


async def test_a_cancel_reaches_the_engine_that_works_at_once(engines: list[Engine]) -> None:
    """Given work of one engine, when another is asked to cancel it, then it ends at once."""
    first, second = engines
    context, workflow_id = await begin_nap(first)
    await second.workflows.cancel(context, workflow_id)
    async with asyncio.timeout(SOON_S):
        await second.wait(context, workflow_id, SOON_S)
    assert (await second.workflows.get(context, workflow_id)).status == "cancelled"
    # The other engine may read the end before the first one has given its lease back.
    await wait_until_async(lambda: first.leases.running_count == 0)


async def test_many_notices_are_one_look(
    engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given much work that is let go of at once, then the other one does not look for each."""
    first, second = engines
    for _ in range(20):
        await begin_nap(first)
    claim, looks = second.core.store.leases.claim, []

    async def count(*given: object) -> object:
        looks.append(given)
        return await claim(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(second.core.store.leases, "claim", count)
    await first.close(0)
    async with asyncio.timeout(SOON_S):
        await wait_until_async(lambda: second.leases.running_count == 20)
    assert len(looks) < 20


async def test_work_of_an_unknown_kind_is_left_alone(engines: list[Engine]) -> None:
    """Given a kind of work that a later version has, then it is left, and the rest is taken up."""
    first, second = engines
    store = first.core.store
    later, lease = store.leases.build_root("new_a", "new", "acc")
    await store.write([later])
    await store.leases.release(lease, is_done=False, is_announced=True)
    _, workflow_id = await begin_nap(first)
    await first.close(0)
    async with asyncio.timeout(SOON_S):
        await wait_until_async(lambda: second.leases.running_count == 1)
    row = await second.core.store.get_row("roots", "new_a")
    assert row is not None
    assert row["owner"] is None
    assert row["open"]
    assert (await second.core.store.get_row("roots", workflow_id) or {})["owner"]
