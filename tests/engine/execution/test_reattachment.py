"""Work that a vendor is at when its process ends: the next one attaches to it by who asked."""

import asyncio

from tests.engine.fake_cloud import HeldCloud, open_engine_on
from tests.support.engine_accounts import connect_account
from tests.support.timing import PATIENCE_S
from toolkit.contract.connections import ConnectionCreate
from toolkit.contract.runs import RunCreate
from toolkit.settings import Settings


async def test_work_under_way_is_attached_to_by_who_asked_for_it(settings: Settings) -> None:
    """Given work at a vendor and a newer key, when taken up, then the older one is asked for it."""
    cloud = HeldCloud("/status/")
    engine = await open_engine_on(cloud, settings)
    context = await connect_account(engine, "runpod")
    (first,) = await engine.connections.list(context, 1, None)
    body = {"name": "image.generate", "input": {"prompt": "a tidal mill"}}
    run = await engine.runs.create(context, RunCreate.model_validate(body))
    async with asyncio.timeout(PATIENCE_S):
        await cloud.is_asked.wait()
    unknown = ConnectionCreate(  # a key that this vendor does not know
        provider="runpod", connection_type="environment", secret_ref="OPENAI_API_KEY"
    )
    await engine.connections.create(context, unknown)
    await engine.close(0)
    cloud.may_answer.set()
    engine = await open_engine_on(cloud, settings)
    await engine.wait(context, run.id, PATIENCE_S)
    done = await engine.runs.get(context, run.id)
    await engine.close(0)
    assert done.status == "completed"
    assert {attempt.connection_id for attempt in done.attempts} == {first.id}
    assert sum(path.endswith("/run") for path in cloud.asked) == 1
