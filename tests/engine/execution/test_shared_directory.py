"""Several engines on one directory or database: work is shared, taken over, and fenced off."""

import asyncio
from collections.abc import AsyncIterator

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
    """A vendor that takes its time, and the log of its calls."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=30, times=None))
    return faults


@pytest.fixture
def short(shared: Settings) -> Settings:
    """Leases that end soon."""
    return shared.model_copy(update={"lease_s": 0.5})


@pytest.fixture
async def engine(short: Settings, faults: Faults) -> AsyncIterator[Engine]:
    """The first engine."""
    engine = await open_engine(short, faults=faults)
    yield engine
    await engine.close(0)


def build_run(i: int) -> RunCreate:
    """A run of its own."""
    return RunCreate(name="llm.generate", input={"objective": f"Line {i}"})


def build_chain(length: int) -> WorkflowCreate:
    """Texts in a row."""
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


async def test_each_job_is_done_by_one_of_them(shared: Settings, faults: Faults) -> None:
    """Given two engines that are both asked, then every job is done once, by one of them."""
    # On a busy machine, leases that end soon would be taken over as they should.
    engine, other = [await open_engine(shared, faults=faults) for _ in range(2)]
    context = await connect_account(engine, "minimax")
    asked = [(engine, other)[i % 2].runs.create(context, build_run(i)) for i in range(20)]
    runs = await asyncio.gather(*asked)
    async with asyncio.timeout(PATIENCE_S):
        for run in runs:
            await engine.wait(context, run.id, 10)  # whoever does it, both can tell
            assert (await engine.runs.get(context, run.id)).status == "completed"
            assert (await other.runs.get(context, run.id)).status == "completed"
    assert len(faults.calls) == 20
    await engine.close(0)
    await other.close(0)


async def test_what_a_dead_one_left_is_taken_over(
    engine: Engine, short: Settings, faults: Faults
) -> None:
    """Given an engine that dies in mid-workflow, then the other one goes on from there."""
    other = await open_engine(short, faults=faults)
    context = await connect_account(other, "minimax")
    workflow = await other.workflows.create(context, build_chain(12))
    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(lambda: len(faults.calls) >= 4)
        await kill_engine(other)
        before = await engine.workflows.get(context, workflow.id)
        await engine.wait(context, workflow.id, 20)
    after = await engine.workflows.get(context, workflow.id)
    assert after.status == "completed"
    shown = {n.id: n.artifact_id for n in before.nodes if n.status == "completed"}
    assert {n.id: n.artifact_id for n in after.nodes if n.id in shown} == shown
    assert len(faults.calls) <= 13
    tries = [await engine.jobs.get(context, str(node.job_id)) for node in after.nodes]
    states = [attempt.status for job in tries for attempt in job.attempts]
    assert states.count("interrupted") == len(faults.calls) - 12


def build_cached(i: int) -> RunCreate:
    """A run that is equal to each other run with the same number, and uses results again."""
    run = build_run(i)
    return run.model_copy(update={"options": run.options.model_copy(update={"cache": True})})


async def test_equal_runs_of_two_engines_are_paid_once(shared: Settings, faults: Faults) -> None:
    """Given equal runs on two engines at once, then each input is paid once, and all complete."""
    engine, other = [await open_engine(shared, faults=faults) for _ in range(2)]
    context = await connect_account(engine, "minimax")
    asked = [
        each.runs.create(context, build_cached(i)) for i in range(10) for each in (engine, other)
    ]
    runs = await asyncio.gather(*asked)
    async with asyncio.timeout(PATIENCE_S):
        for run in runs:
            await engine.wait(context, run.id, 10)
    ended = [await engine.runs.get(context, run.id) for run in runs]
    assert {run.status for run in ended} == {"completed"}
    assert sum(run.cached for run in ended) == 10
    assert len(faults.calls) == 10
    rows = await engine.core.store.find_rows("cache")
    assert {row["job_id"] for row in rows} == {run.job_id for run in ended if not run.cached}
    assert not [row for row in rows if ":" in str(row["id"])]  # a claim
    await engine.close(0)
    await other.close(0)


async def test_the_claim_of_a_dead_engine_is_taken_over(
    engine: Engine, short: Settings, faults: Faults
) -> None:
    """Given an engine that dies while it makes a result, then an equal run elsewhere makes it."""
    faults.add(Fault("minimax", delay_ms=60_000, times=1))
    other = await open_engine(short, faults=faults)
    context = await connect_account(other, "minimax")
    lost = await other.runs.create(context, build_cached(1))
    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(lambda: len(faults.calls) == 1)
        equal = await engine.runs.create(context, build_cached(1))
        await kill_engine(other)
        for run in (equal, lost):
            await engine.wait(context, run.id, 60)
    ended = [await engine.runs.get(context, run.id) for run in (equal, lost)]
    assert {run.status for run in ended} == {"completed"}
    assert sum(run.cached for run in ended) == 1
    assert len(faults.calls) == 2  # the lost call, and the one that replaced it


async def test_one_that_hung_past_its_lease_commits_nothing(
    engine: Engine, short: Settings, faults: Faults
) -> None:
    """Given an engine that stops and comes back, then what it does then is not written.

    Its lease went to the other one meanwhile, and each change is checked against the fence.
    """
    other = await open_engine(short, faults=faults)
    context = await connect_account(other, "minimax")
    hung = await other.workflows.create(context, build_chain(8))
    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(lambda: len(faults.calls) >= 2)
        # It does not renew, and to the others its lock file looks like that of a dead process.
        assert other.leases._keeper is not None
        other.leases._keeper.cancel()
        other.leases._heartbeat.close()
        writes: list[object] = []
        held = other.core.store.writer.backlog
        other.core.store.writer.submit = (  # type: ignore[method-assign]
            lambda changes, lease, eager=True: _hang_forever(writes, changes, lease)
        )
        await engine.wait(context, hung.id, 20)
    done = await engine.workflows.get(context, hung.id)
    assert done.status == "completed"
    assert not held
    del other.core.store.writer.submit  # type: ignore[attr-defined]
    before = {n.id: n.artifact_id for n in done.nodes}
    store = other.core.store
    for changes, lease in writes:  # type: ignore[misc]
        if lease is not None:
            with pytest.raises(Exception, match=hung.id):
                await store.write(changes, lease=lease)
    after = await engine.workflows.get(context, hung.id)
    assert {n.id: n.artifact_id for n in after.nodes} == before
    await kill_engine(other)


def _hang_forever(writes: list[object], changes: object, lease: object) -> "asyncio.Future[None]":
    writes.append((changes, lease))
    return asyncio.get_running_loop().create_future()
