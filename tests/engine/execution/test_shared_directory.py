"""Several engines on one directory or database: work is shared, taken over, and fenced off."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.engine_accounts import connect_account
from tests.support.process_kill import kill_engine
from tests.support.timing import PATIENCE_S, wait_until_async
from toolkit.contract.runs import RunCreate
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Engine
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
