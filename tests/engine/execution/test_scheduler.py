"""Workflows on the engine itself, between two steps of the loop."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.support.engine_accounts import connect_account
from tests.support.slow_capability import load_slow_registry
from tests.support.timing import PATIENCE_S, wait_until_async, yield_turns
from tests.support.write_lock import WriteLock
from toolkit.contract.workflows import NodeCreate, WorkflowCreate, WorkflowRecord
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.settings import Settings
from toolkit.store.writing import writer


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    """An engine with the capability of a nap, and short leases."""
    short = settings.model_copy(update={"lease_s": 1.0})
    engine = await open_engine(short, registry=load_slow_registry())
    yield engine
    await engine.close(0)


@pytest.fixture
async def context(engine: Engine) -> RequestContext:
    """The account of its owner."""
    return await connect_account(engine)


def build_nap_node(
    node_id: str, seconds: float = 0, *, after: str = "", fails: bool = False
) -> NodeCreate:
    """Build a node that naps."""
    nap = {"seconds": seconds, "fails": fails}
    return NodeCreate(id=node_id, capability="test.nap", input=nap, depends_on=after.split())


async def submit(engine: Engine, context: RequestContext, *nodes: NodeCreate) -> WorkflowRecord:
    """Submit a workflow of nodes."""
    request = WorkflowCreate(name="w", nodes=list(nodes), max_retries=0)
    return await engine.workflows.create(context, request)


async def wait_until_ended(
    engine: Engine, context: RequestContext, workflow: WorkflowRecord
) -> WorkflowRecord:
    """Wait until a workflow has ended, and return it."""
    await engine.wait(context, workflow.id, PATIENCE_S)
    return await engine.workflows.get(context, workflow.id)


async def test_runs_all_nodes_when_each_fails_at_once(
    engine: Engine, context: RequestContext
) -> None:
    """Given more nodes than start at once, when each fails at once, then all run in one go."""
    nodes = [build_nap_node(str(n), fails=True) for n in range(9)]
    workflow = await submit(engine, context, *nodes)
    workflow = await wait_until_ended(engine, context, workflow)
    assert [node.status for node in workflow.nodes] == ["failed"] * 9
    events = await engine.core.store.list_events(workflow.id, after=0)
    assert [event["type"] for event in events].count("workflow.running") == 1


async def test_readers_do_not_share_a_record(engine: Engine, context: RequestContext) -> None:
    """Given a failed workflow, when a reader changes the record, then the next read is the same."""
    nodes = [build_nap_node("a"), build_nap_node("b", fails=True), build_nap_node("c", after="b")]
    workflow = await submit(engine, context, *nodes)
    first = await wait_until_ended(engine, context, workflow)
    before = first.model_dump_json()
    first.nodes.clear()
    second = await engine.workflows.get(context, workflow.id)
    assert second.model_dump_json() == before
    assert [node.status for node in second.nodes] == ["completed", "failed", "cancelled"]


async def test_cancels_before_the_first_step(engine: Engine, context: RequestContext) -> None:
    """Given a workflow that was just accepted, when cancelled, then none of its nodes starts."""
    nodes = [build_nap_node("a", 30), build_nap_node("b", after="a")]
    workflow = await submit(engine, context, *nodes)
    cancelled = await engine.workflows.cancel(context, workflow.id)
    assert cancelled.status == "cancelled"
    assert {node.status for node in cancelled.nodes} == {"cancelled"}


async def test_cancels_dependents_while_other_nodes_run(
    engine: Engine, context: RequestContext
) -> None:
    """Given a failed node and a slow node, then dependents of the failed node are cancelled."""
    nodes = [
        build_nap_node("bad", fails=True),
        build_nap_node("behind", after="bad"),
        build_nap_node("slow", 30),
    ]
    workflow = await submit(engine, context, *nodes)

    async def has_failed() -> bool:
        nonlocal workflow
        workflow = await engine.workflows.get(context, workflow.id)
        # A record may combine a read from before the start with a later read.
        return workflow.nodes[0].status == "failed" and workflow.status != "queued"

    await wait_until_async(has_failed)
    bad, behind, slow = workflow.nodes
    assert (workflow.status, slow.status) == ("running", "running")
    assert behind.status == "cancelled"
    assert behind.error is not None
    assert behind.error.code == "UPSTREAM_FAILED"
    assert behind.completed_at == bad.completed_at
    events = await engine.events.list(context, workflow.id, after=0, wait_s=0)
    assert [e.data["node_id"] for e in events if e.type == "node.cancelled"] == ["behind"]


async def test_a_long_chain_does_not_block_the_loop(
    engine: Engine, context: RequestContext
) -> None:
    """Given a long chain of nodes that never wait, then other work has turns of the loop."""
    names = [f"n{i}" for i in range(200)]
    nodes = [build_nap_node(name, after=up) for name, up in zip(names, ["", *names], strict=False)]
    workflow = await submit(engine, context, *nodes)
    turns = 0
    while workflow.status in ("queued", "running"):
        await yield_turns()
        turns += 1
        if turns % 50 == 0:
            workflow = await engine.workflows.get(context, workflow.id)
    assert workflow.status == "completed"
    assert turns > len(nodes)


async def test_uses_a_picture_before_it_is_durable(engine: Engine, context: RequestContext) -> None:
    """Given a card that shows a card, then the first card is available before it is stored."""
    nodes = [
        NodeCreate(
            id=node_id,
            capability="composition.layout",
            input={"title": "Tea", "width": 240, "height": 200},
            depends_on=after,
        )
        for node_id, after in (("first", []), ("second", ["first"]))
    ]
    workflow = await submit(engine, context, *nodes)
    workflow = await wait_until_ended(engine, context, workflow)
    assert (workflow.status, workflow.error) == ("completed", None)


async def test_resumes_work_after_a_locked_database(
    engine: Engine,
    context: RequestContext,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    find_url: Callable[[Path], str | None],
) -> None:
    """Given a database that is locked as a workflow ends, then the work resumes after the lock."""
    monkeypatch.setattr(writer, "WORK_WAIT_S", 0.1)
    monkeypatch.setattr(writer, "REQUEST_WAIT_S", 0.1)
    nodes = [build_nap_node("a", 0.1), build_nap_node("b", after="a")]
    workflow = await submit(engine, context, *nodes)
    lock = WriteLock(settings.data_dir, find_url(settings.data_dir))
    lock.take()
    await wait_until_async(lambda: "will be released later" in caplog.text)
    lock.release()
    lock.close()
    workflow = await wait_until_ended(engine, context, workflow)
    assert workflow.status == "completed"
    jobs = [await engine.jobs.get(context, node.job_id or "") for node in workflow.nodes]
    assert {job.status for job in jobs} == {"completed"}
