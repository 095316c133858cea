"""Notifications between engines on one PostgreSQL database, which come before the next poll."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from tests.support.engine_accounts import connect_account
from tests.support.slow_capability import load_slow_registry
from tests.support.timing import wait_until_async
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Engine
from toolkit.engine.execution import leases
from toolkit.engine.request_context import RequestContext
from toolkit.settings import Settings

# Far less than the interval at which engines poll.
SOON_S = 30.0
LISTENING_SQL = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN toolkit_work%'"


@pytest.fixture
async def engines(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[list[Engine]]:
    """Two engines, as of two machines, that do not poll for ten minutes."""
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


async def start_nap(engine: Engine) -> tuple[RequestContext, str]:
    """Start a workflow that takes long."""
    context = await connect_account(engine)
    nap = NodeCreate(id="nap", capability="test.nap", input={"seconds": 60})
    workflow = await engine.workflows.create(context, WorkflowCreate(name="nap", nodes=[nap]))
    await engine.core.store.wait_for_event(workflow.id, after=1, timeout_s=SOON_S)
    return context, workflow.id


async def test_takes_up_work_of_a_closed_engine_at_once(engines: list[Engine]) -> None:
    """Given an engine that closes, then the other engine takes up its work without a poll."""
    first, second = engines
    await start_nap(first)
    await first.close(0)
    async with asyncio.timeout(SOON_S):
        await wait_until_async(lambda: second.leases.running_count == 1)


async def test_cancels_work_of_another_engine_at_once(engines: list[Engine]) -> None:
    """Given work of an engine, when another engine cancels it, then it ends without a poll."""
    first, second = engines
    context, workflow_id = await start_nap(first)
    await second.workflows.cancel(context, workflow_id)
    async with asyncio.timeout(SOON_S):
        await second.wait(context, workflow_id, SOON_S)
    assert (await second.workflows.get(context, workflow_id)).status == "cancelled"
    # The second engine may read the end before the first has released its lease.
    await wait_until_async(lambda: first.leases.running_count == 0)


async def test_merges_notifications(engines: list[Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Given many leases that are released at once, then the other engine claims them together."""
    first, second = engines
    for _ in range(20):
        await start_nap(first)
    claim, claims = second.core.store.leases.claim, []

    async def count(*arguments: object) -> object:
        claims.append(arguments)
        return await claim(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(second.core.store.leases, "claim", count)
    await first.close(0)
    async with asyncio.timeout(SOON_S):
        await wait_until_async(lambda: second.leases.running_count == 20)
    assert len(claims) < 20


async def test_leaves_work_of_an_unknown_kind(engines: list[Engine]) -> None:
    """Given work of a kind of a later version, then it stays, and other work is taken up."""
    first, second = engines
    store = first.core.store
    later, lease = store.leases.build_root("new_a", "new", "acc")
    await store.write([later])
    await store.leases.release(lease, is_done=False, is_announced=True)
    _, workflow_id = await start_nap(first)
    await first.close(0)
    async with asyncio.timeout(SOON_S):
        await wait_until_async(lambda: second.leases.running_count == 1)
    row = await second.core.store.get_row("roots", "new_a")
    assert row is not None
    assert row["owner"] is None
    assert row["open"]
    assert (await second.core.store.get_row("roots", workflow_id) or {})["owner"]
