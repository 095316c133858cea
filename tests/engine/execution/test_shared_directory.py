"""Engines that share a directory, and wake each other."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.engine_accounts import connect_account
from tests.support.process_kill import kill_engine
from tests.support.slow_capability import load_slow_registry
from tests.support.timing import PATIENCE_S, wait_until_async
from toolkit.contract.runs import RunCreate
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Engine
from toolkit.engine.execution import leases
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings


@pytest.fixture
def faults() -> Faults:
    """A slow vendor, and the log of its calls."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=30, times=None))
    return faults


@pytest.fixture
def short(shared: Settings) -> Settings:
    """Settings with short leases."""
    return shared.model_copy(update={"lease_s": 0.5})


@pytest.fixture
async def engine(short: Settings, faults: Faults) -> AsyncIterator[Engine]:
    """The first engine."""
    engine = await open_engine(short, faults=faults)
    yield engine
    await engine.close(0)


def build_run(i: int) -> RunCreate:
    """Build a run that differs from runs with other numbers."""
    return RunCreate(name="llm.generate", input={"objective": f"Line {i}"})


def build_chain(length: int) -> WorkflowCreate:
    """Build a workflow of texts in a row."""
    nodes = [
        NodeCreate(
            id=f"n{i}",
            capability="llm.generate",
            input={"objective": f"Node {i}"},
            depends_on=[f"n{i - 1}"] if i else [],
        )
        for i in range(length)
    ]
    return WorkflowCreate(name="chain", nodes=nodes)


async def test_takes_over_work_of_a_dead_engine(
    engine: Engine, short: Settings, faults: Faults
) -> None:
    """Given an engine that dies during a workflow, then another engine continues it."""
    dead = await open_engine(short, faults=faults)
    context = await connect_account(dead, "minimax")
    workflow = await dead.workflows.create(context, build_chain(12))
    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(lambda: len(faults.calls) >= 4)
        await kill_engine(dead)
        before = await engine.workflows.get(context, workflow.id)
        await engine.wait(context, workflow.id, 20)
    after = await engine.workflows.get(context, workflow.id)
    assert after.status == "completed"
    artifacts = {n.id: n.artifact_id for n in before.nodes if n.status == "completed"}
    assert {n.id: n.artifact_id for n in after.nodes if n.id in artifacts} == artifacts
    assert len(faults.calls) <= 13
    jobs = [await engine.jobs.get(context, str(node.job_id)) for node in after.nodes]
    statuses = [attempt.status for job in jobs for attempt in job.attempts]
    assert statuses.count("interrupted") == len(faults.calls) - 12


def build_cached(i: int) -> RunCreate:
    """Build a run that shares its result with each run of the same number."""
    run = build_run(i)
    return run.model_copy(update={"options": run.options.model_copy(update={"cache": True})})


async def test_pays_equal_runs_of_two_engines_once(shared: Settings, faults: Faults) -> None:
    """Given equal runs on two engines at once, then each input is paid once, and all complete."""
    # With short leases, a busy machine would lose them.
    engines = [await open_engine(shared, faults=faults) for _ in range(2)]
    engine = engines[0]
    context = await connect_account(engine, "minimax")
    runs = await asyncio.gather(
        *(runner.runs.create(context, build_cached(i)) for i in range(10) for runner in engines)
    )
    async with asyncio.timeout(PATIENCE_S):
        for run in runs:
            await engine.wait(context, run.id, 10)
    runs = [await engine.runs.get(context, run.id) for run in runs]
    assert {run.status for run in runs} == {"completed"}
    assert sum(run.cached for run in runs) == 10
    assert len(faults.calls) == 10
    rows = await engine.core.store.find_rows("cache")
    assert {row["job_id"] for row in rows} == {run.job_id for run in runs if not run.cached}
    assert not [row for row in rows if ":" in str(row["id"])]  # a claim
    for engine in engines:
        await engine.close(0)


async def test_takes_over_a_cache_claim_of_a_dead_engine(
    engine: Engine, short: Settings, faults: Faults
) -> None:
    """Given an engine that dies while it makes a result, then an equal run elsewhere makes it."""
    faults.add(Fault("minimax", delay_ms=60_000, times=1))
    dead = await open_engine(short, faults=faults)
    context = await connect_account(dead, "minimax")
    lost = await dead.runs.create(context, build_cached(1))
    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(lambda: len(faults.calls) == 1)
        equal = await engine.runs.create(context, build_cached(1))
        await kill_engine(dead)
        for run in (equal, lost):
            await engine.wait(context, run.id, 60)
    runs = [await engine.runs.get(context, run.id) for run in (equal, lost)]
    assert {run.status for run in runs} == {"completed"}
    assert sum(run.cached for run in runs) == 1
    assert len(faults.calls) == 2  # the lost call and its repetition


async def test_fences_off_an_engine_that_lost_its_lease(
    engine: Engine, short: Settings, faults: Faults
) -> None:
    """Given an engine that hangs past its lease, then its later writes are rejected.

    Another engine has its lease by then, and each change is checked against the fencing token.
    """
    hung = await open_engine(short, faults=faults)
    context = await connect_account(hung, "minimax")
    workflow = await hung.workflows.create(context, build_chain(8))
    writes: list[tuple[Any, Any]] = []

    def hold(changes: Any, lease: Any, eager: bool = True) -> "asyncio.Future[None]":
        writes.append((changes, lease))
        return asyncio.get_running_loop().create_future()

    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(lambda: len(faults.calls) >= 2)
        # It does not renew, and to other engines its lock file looks like that of a dead process.
        assert hung.leases._keeper is not None
        hung.leases._keeper.cancel()
        hung.leases._heartbeat.close()
        hung.core.store.writer.submit = hold  # type: ignore[method-assign, assignment]
        await engine.wait(context, workflow.id, 20)
    assert not hung.core.store.writer.backlog
    ended = await engine.workflows.get(context, workflow.id)
    assert ended.status == "completed"
    del hung.core.store.writer.submit
    for changes, lease in writes:
        if lease is not None:
            with pytest.raises(Exception, match=workflow.id):
                await hung.core.store.write(changes, lease=lease)
    assert (await engine.workflows.get(context, workflow.id)).nodes == ended.nodes
    await kill_engine(hung)


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
