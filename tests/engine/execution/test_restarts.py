"""Work that is cancelled early, or interrupted by a shutdown or a restart."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from tests.engine.execution.test_shared_directory import build_chain, build_run
from tests.engine.fake_cloud import HeldCloud, open_engine_on
from tests.support.database_pool import open_rows
from tests.support.engine_accounts import connect_account
from tests.support.process_kill import kill_engine
from tests.support.timing import PATIENCE_S, wait_until, wait_until_async, yield_turns
from toolkit import Client, Workflow
from toolkit.contract.connections import ConnectionCreate
from toolkit.contract.plans import Constraints
from toolkit.contract.runs import RunCreate
from toolkit.contract.tasks import TaskCreate
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Engine
from toolkit.engine.job_record import read_job
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.sandbox import Faults
from toolkit.settings import Settings


async def test_continues_a_plan_of_a_model(settings: Settings) -> None:
    """Given a process that ends while a model plans, then the next process continues its job."""
    cloud = HeldCloud("/chat/completions")
    engine = await open_engine_on(cloud, settings)
    context = await connect_account(engine, "openai")
    request = TaskCreate(
        objective="A poem about tea", constraints=Constraints(planner="llm", max_cost_usd=0.5)
    )
    task = await engine.tasks.create(context, request)
    async with asyncio.timeout(PATIENCE_S):
        await cloud.is_held.wait()
    await engine.close(0)
    cloud.may_answer.set()
    engine = await open_engine_on(cloud, settings)
    await engine.wait(context, task.id, PATIENCE_S)
    task = await engine.tasks.get(context, task.id)
    plan = await engine.plans.get(context, task.plan_id or "")
    (job_id,) = task.llm_job_ids
    job = await engine.jobs.get(context, job_id)
    await engine.close(0)
    assert plan.planner == "llm"
    assert [attempt.status for attempt in job.attempts] == ["interrupted", "completed"]
    # The interrupted call may have been billed, so it counts.
    assert plan.cost_incurred_usd == job.cost_incurred_usd > (job.cost_usd or 0)
    assert task.cost_incurred_usd >= plan.cost_incurred_usd


async def test_attaches_to_work_by_the_connection_that_started_it(settings: Settings) -> None:
    """Given work at a vendor and a newer connection, then the older connection attaches to it."""
    cloud = HeldCloud("/status/")
    engine = await open_engine_on(cloud, settings)
    context = await connect_account(engine, "runpod")
    (first,) = await engine.connections.list(context, 1, None)
    body = {"name": "image.generate", "input": {"prompt": "a tidal mill"}}
    run = await engine.runs.create(context, RunCreate.model_validate(body))
    async with asyncio.timeout(PATIENCE_S):
        await cloud.is_held.wait()
    unknown = ConnectionCreate(  # a key that this vendor does not know
        provider="runpod", connection_type="environment", secret_ref="OPENAI_API_KEY"
    )
    await engine.connections.create(context, unknown)
    await engine.close(0)
    cloud.may_answer.set()
    engine = await open_engine_on(cloud, settings)
    await engine.wait(context, run.id, PATIENCE_S)
    run = await engine.runs.get(context, run.id)
    await engine.close(0)
    assert run.status == "completed"
    assert {attempt.connection_id for attempt in run.attempts} == {first.id}
    assert sum(path.endswith("/run") for path in cloud.paths) == 1


def test_repeats_a_node_whose_end_was_not_written(
    tmp_path: Path, find_url: Callable[[Path], str | None]
) -> None:
    """Given a node whose document has an end but no artifact, then the node runs once more.

    A crash between two commits may leave this behind, because a document is written as it is then.
    """
    faults, workflow = Faults(), Workflow("tides")
    line = {"objective": "Write a line on tides."}
    first = workflow.add("first", "llm.generate", line, options={"provider": "openai"})
    workflow.add(
        "second", "llm.generate", line, depends_on=[first], options={"provider": "anthropic"}
    )
    faults.mangle("anthropic", "hang")
    with Client.local(tmp_path, faults=faults) as client:
        work_id = client.workflows.submit(workflow).id
        wait_until(lambda: client.workflows.get(work_id)["second"].status == "running")
        paid_usd = client.workflows.get(work_id)["first"].cost_usd or 0.0
    with open_rows(tmp_path, find_url(tmp_path)) as database:
        jobs = "(SELECT id FROM jobs WHERE node_id = 'first')"
        database.execute(f"DELETE FROM artifacts WHERE job_id = {jobs}")
        database.execute(f"UPDATE jobs SET status = 'running' WHERE id = {jobs}")

    with Client.local(tmp_path, sandbox=True) as client:
        work = client.workflows.get(work_id).wait(30, progress=False)
        node = work["first"]
        assert client.artifacts.get(node.artifact_id or "").text() == node.text
        assert work["second"].text
        assert node.cost_incurred_usd >= 2 * paid_usd > 0


TASK = TaskCreate(objective="A short written summary of tea")


def make_silent_vendor() -> Faults:
    """Make a vendor that never answers."""
    faults = Faults()
    faults.mangle("minimax", "hang", times=None)
    return faults


async def test_cancels_a_task_at_any_step(shared: Settings) -> None:
    """Given a task at any step of planning, when cancelled, then it ends with its workflow."""
    engine = await open_engine(shared, faults=make_silent_vendor())
    context = await connect_account(engine, "minimax")
    async with asyncio.timeout(PATIENCE_S):
        for turns in range(0, 60, 4):
            task = await engine.tasks.create(context, TASK)
            await yield_turns(turns)
            task = await engine.tasks.cancel(context, task.id)
            assert (task.status, task.error and task.error.code) == ("failed", "CANCELLED")
            for workflow_id in task.workflow_ids:
                workflow = await engine.workflows.get(context, workflow_id)
                assert workflow.status == "cancelled"
    await engine.close(0)


async def test_cancels_abandoned_work(shared: Settings) -> None:
    """Given work of a dead engine, when another engine cancels it, then it is cancelled."""
    dead = await open_engine(shared, faults=make_silent_vendor())
    context = await connect_account(dead, "minimax")
    run = await dead.runs.create(context, build_run(0))
    workflow = await dead.workflows.create(context, build_chain(2))
    task = await dead.tasks.create(context, TASK)

    async def is_running() -> bool:
        is_run_running = (await dead.runs.get(context, run.id)).status == "running"
        return is_run_running and (await dead.tasks.get(context, task.id)).status == "executing"

    await wait_until_async(is_running)
    await kill_engine(dead)

    engine = await open_engine(shared, take_up=False)

    async def is_cancelled() -> bool:
        # A row that is locked by the session of the dead engine is skipped at first.
        statuses = [
            (await engine.runs.cancel(context, run.id)).status,
            (await engine.workflows.cancel(context, workflow.id)).status,
            (await engine.tasks.cancel(context, task.id)).status,
        ]
        return statuses == ["cancelled", "cancelled", "failed"]

    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(is_cancelled)
    task = await engine.tasks.get(context, task.id)
    assert task.error is not None
    assert task.error.code == "CANCELLED"
    await engine.close(0)


TIDES: dict[str, object] = {"objective": "Two sentences about tides."}


async def open_connected(settings: Settings, faults: Faults) -> tuple[Engine, RequestContext]:
    """Open an engine with one call at a time, and its owner's account with a connection."""
    narrow = settings.model_copy(update={"max_concurrent_calls": 1, "connection_test_s": 0.0})
    engine = await open_engine(narrow, faults=faults)
    context = await connect_account(engine)
    if not await engine.connections.list(context, 1, None):
        await connect_account(engine, "minimax")
    return engine, context


def is_vendor_busy(faults: Faults) -> bool:
    """Return whether the vendor works on a call."""
    return any(not call.status for call in faults.calls)


async def test_a_shutdown_starts_no_waiting_call(shared: Settings) -> None:
    """Given waiting work, when the engine stops, then only the running call ends.

    The next engine does the rest, each call once.
    """
    faults = Faults()
    faults.latency("minimax", 400)
    engine, context = await open_connected(shared, faults)
    for n in "ab":
        run = RunCreate(name="llm.generate@1", input={**TIDES, "context": n})
        await engine.runs.create(context, run)
    nodes = [
        NodeCreate(id=n, capability="llm.generate@1", input={**TIDES, "context": n}) for n in "cd"
    ]
    await engine.workflows.create(context, WorkflowCreate(name="w", nodes=nodes))
    await engine.tasks.create(context, TaskCreate(objective="Two sentences about tides."))
    await wait_until_async(lambda: is_vendor_busy(faults))
    engine.drain()
    calls = len(faults.calls)
    await engine.close(PATIENCE_S)
    assert len(faults.calls) == calls
    assert not is_vendor_busy(faults)

    faults.clear()
    engine, context = await open_connected(shared, faults)
    assert engine.leases.running_count
    await wait_until_async(lambda: not engine.leases.running_count)
    rows = await engine.core.store.find_rows("jobs", account_id=context.account_id)
    jobs = [read_job(row) for row in rows]
    assert {job.status for job in jobs} == {"completed"}
    statuses = [[attempt.status for attempt in job.attempts] for job in jobs]
    assert statuses == [["completed"]] * len(jobs)
    assert len(faults.calls) == sum(job.provider is not None for job in jobs) >= 4
    await engine.close(0)


async def test_completes_a_run_that_was_accepted_before_the_shutdown(shared: Settings) -> None:
    """Given a run that need not wait, when the engine closes at once, then the run completes."""
    faults = Faults()
    engine, context = await open_connected(shared, faults)
    run = await engine.runs.create(context, RunCreate(name="llm.generate@1", input=TIDES))
    await engine.close(PATIENCE_S)
    engine, context = await open_connected(shared, faults)
    run = await engine.runs.get(context, run.id)
    assert (run.status, len(faults.calls)) == ("completed", 1)
    await engine.close(0)
