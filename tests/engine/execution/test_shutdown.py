"""Shutdown of an engine: running calls end, and no call starts that would be cut off."""

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
