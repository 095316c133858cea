"""An engine that shuts down: what is under way ends, and nothing is begun that would be cut off."""

import pytest

from tests.support.engine_accounts import connect_account
from tests.support.timing import PATIENCE_S, wait_until_async
from toolkit.contract.runs import RunCreate
from toolkit.contract.tasks import TaskCreate
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Engine
from toolkit.engine.job_record import read_job
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.sandbox import Faults
from toolkit.settings import Settings

ASKED = {"objective": "Two sentences about tides."}


@pytest.fixture
def narrow(shared: Settings) -> Settings:
    """One call at a time."""
    return shared.model_copy(update={"max_concurrent_calls": 1, "connection_test_s": 0.0})


async def open_connected(settings: Settings, faults: Faults) -> tuple[Engine, RequestContext]:
    """An engine, and the account of its owner, which has connected minimax."""
    engine = await open_engine(settings, faults=faults)
    context = await connect_account(engine)
    if not await engine.connections.list(context, 1, None):
        await connect_account(engine, "minimax")
    return engine, context


async def ask_for_much(engine: Engine, context: RequestContext) -> list[str]:
    """Runs, a workflow whose nodes need nothing of each other, and a task; their ids."""
    runs = [RunCreate(name="llm.generate@1", input={**ASKED, "context": str(n)}) for n in "ab"]
    nodes = [
        NodeCreate(id=n, capability="llm.generate@1", input={**ASKED, "context": n}) for n in "cd"
    ]
    made = [
        *[await engine.runs.create(context, one) for one in runs],
        await engine.workflows.create(context, WorkflowCreate(name="w", nodes=nodes)),
        await engine.tasks.create(context, TaskCreate(objective=ASKED["objective"])),
    ]
    return [one.id for one in made]


def is_under_way(faults: Faults) -> bool:
    """Whether the vendor is at work on a call."""
    return any(not call.status for call in faults.calls)


async def test_a_shutdown_begins_no_call_that_has_waited(narrow: Settings) -> None:
    """Given work that waits for its turn, when the engine stops, then only the one call ends."""
    faults = Faults()
    faults.latency("minimax", 400)
    engine, context = await open_connected(narrow, faults)
    ids = await ask_for_much(engine, context)
    await wait_until_async(lambda: is_under_way(faults))
    engine.drain()
    begun = len(faults.calls)
    await engine.close(PATIENCE_S)
    assert len(faults.calls) == begun
    assert not is_under_way(faults)

    faults.clear()
    engine, context = await open_connected(narrow, faults)
    assert engine.leases.running_count
    await wait_until_async(lambda: not engine.leases.running_count)
    rows = await engine.core.store.find_rows("jobs", account_id=context.account_id)
    jobs = [read_job(row) for row in rows]
    assert {job.status for job in jobs} == {"completed"}
    assert [[one.status for one in job.attempts] for job in jobs] == [["completed"]] * len(jobs)
    assert len(faults.calls) == sum(job.provider is not None for job in jobs) >= len(ids)
    await engine.close(0)


async def test_what_is_asked_for_as_the_engine_ends_is_begun(narrow: Settings) -> None:
    """Given a run that waits for nothing, when the engine is closed at once, then it has ended."""
    faults = Faults()
    engine, context = await open_connected(narrow, faults)
    run = await engine.runs.create(context, RunCreate(name="llm.generate@1", input=ASKED))
    await engine.close(PATIENCE_S)
    engine, context = await open_connected(narrow, faults)
    again = await engine.runs.get(context, run.id)
    assert (again.status, len(faults.calls)) == ("completed", 1)
    await engine.close(0)
