"""Cancels that come before the work has begun to write: none of them is lost."""

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
    """A vendor that never answers."""
    faults = Faults()
    faults.mangle("minimax", "hang", times=None)
    return faults


async def test_a_task_whose_plan_is_being_written_is_cancelled(shared: Settings) -> None:
    """Given a task, when cancelled whatever it is at, then it is cancelled, as is its workflow."""
    engine = await open_engine(shared, faults=make_silent_vendor())
    context = await connect_account(engine, "minimax")
    async with asyncio.timeout(PATIENCE_S):
        for turns in range(0, 60, 4):
            task = await engine.tasks.create(context, TASK)
            await yield_turns(turns)
            done = await engine.tasks.cancel(context, task.id)
            assert done.status == "failed"
            assert done.error is not None
            assert done.error.code == "CANCELLED"
            for workflow_id in done.workflow_ids:
                workflow = await engine.workflows.get(context, workflow_id)
                assert workflow.status == "cancelled"
    await engine.close(0)


async def test_abandoned_work_is_cancelled_as_it_is_taken_up(shared: Settings) -> None:
    """Given work of an engine that died, when another cancels it unseen, then it is cancelled."""
    dead = await open_engine(shared, faults=make_silent_vendor())
    context = await connect_account(dead, "minimax")
    run = await dead.runs.create(context, build_run(0))
    workflow = await dead.workflows.create(context, build_chain(2))
    task = await dead.tasks.create(context, TASK)

    async def is_under_way() -> bool:
        made, asked = await dead.runs.get(context, run.id), await dead.tasks.get(context, task.id)
        return (made.status, asked.status) == ("running", "executing")

    await wait_until_async(is_under_way)
    await kill_engine(dead)

    engine = await open_engine(shared, take_up=False)

    async def is_cancelled() -> bool:
        # A row that the dead one's session still holds is left alone: one asks again.
        found = [
            (await engine.runs.cancel(context, run.id)).status,
            (await engine.workflows.cancel(context, workflow.id)).status,
            (await engine.tasks.cancel(context, task.id)).status,
        ]
        return found == ["cancelled", "cancelled", "failed"]

    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(is_cancelled)
    ended = await engine.tasks.get(context, task.id)
    assert ended.error is not None
    assert ended.error.code == "CANCELLED"
    await engine.close(0)
