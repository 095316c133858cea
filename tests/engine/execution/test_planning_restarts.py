"""A task whose process ends while a model plans it: the next one goes on with what was paid for."""

import asyncio

from tests.engine.fake_cloud import HeldCloud, open_engine_on
from tests.support.engine_accounts import connect_account
from tests.support.timing import PATIENCE_S
from toolkit.contract.plans import Constraints
from toolkit.contract.tasks import TaskCreate
from toolkit.settings import Settings


async def test_a_model_that_was_cut_off_plans_after_a_restart(settings: Settings) -> None:
    """Given a process that ends while the model plans, then the same job goes on."""
    cloud = HeldCloud("/chat/completions")
    engine = await open_engine_on(cloud, settings)
    context = await connect_account(engine, "openai")
    asked = TaskCreate(
        objective="A poem about tea", constraints=Constraints(planner="llm", max_cost_usd=0.5)
    )
    task = await engine.tasks.create(context, asked)
    async with asyncio.timeout(PATIENCE_S):
        await cloud.is_asked.wait()
    await engine.close(0)
    cloud.may_answer.set()
    engine = await open_engine_on(cloud, settings)
    await engine.wait(context, task.id, PATIENCE_S)
    done = await engine.tasks.get(context, task.id)
    plan = await engine.plans.get(context, done.plan_id or "")
    (job_id,) = done.llm_job_ids
    job = await engine.jobs.get(context, job_id)
    await engine.close(0)
    assert plan.planner == "llm"
    assert [attempt.status for attempt in job.attempts] == ["interrupted", "completed"]
    # What was cut off may have been billed, so it counts.
    assert plan.cost_incurred_usd == job.cost_incurred_usd > (job.cost_usd or 0)
    assert done.cost_incurred_usd >= plan.cost_incurred_usd
