"""Cancels before the work has written anything: none is lost."""

import asyncio

from tests.engine.execution.test_shared_directory import build_chain, build_run
from tests.support.engine_accounts import connect_account
from tests.support.process_kill import kill_engine
from tests.support.timing import PATIENCE_S, wait_until_async, yield_turns
from toolkit.contract.tasks import TaskCreate
from toolkit.local import open_engine
from toolkit.sandbox import Faults
from toolkit.settings import Settings

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
