"""Work whose process ends: the next process continues it, and counts each call that was paid."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from tests.engine.fake_cloud import HeldCloud, open_engine_on
from tests.support.database_pool import open_rows
from tests.support.engine_accounts import connect_account
from tests.support.timing import PATIENCE_S, wait_until
from toolkit import Client, Workflow
from toolkit.contract.connections import ConnectionCreate
from toolkit.contract.plans import Constraints
from toolkit.contract.runs import RunCreate
from toolkit.contract.tasks import TaskCreate
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
