"""Workflows on the engine itself, where a test can look in between two steps of the loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

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
    """An engine that knows the nap, and soon takes up what was let go of."""
    short = settings.model_copy(update={"lease_s": 1.0})
    engine = await open_engine(short, registry=load_slow_registry())
    yield engine
    await engine.close(0)


@pytest.fixture
async def context(engine: Engine) -> RequestContext:
    """The account of its owner."""
    account, _ = await engine.accounts.open_local_account()
    return RequestContext(account.id)


def build_nap_node(
    node_id: str, seconds: float = 0, *, after: str = "", fails: bool = False
) -> NodeCreate:
    """A node that naps."""
    given = {"seconds": seconds, "fails": fails}
    return NodeCreate(id=node_id, capability="test.nap", input=given, depends_on=after.split())


async def create(engine: Engine, context: RequestContext, *nodes: NodeCreate) -> WorkflowRecord:
    """A workflow of these nodes, accepted."""
    request = WorkflowCreate(name="w", nodes=list(nodes), max_retries=0)
    return await engine.workflows.create(context, request)


async def wait_until_ended(
    engine: Engine, context: RequestContext, workflow: WorkflowRecord
) -> WorkflowRecord:
    """The workflow once it has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while workflow.status in ("queued", "running"):
            await engine.wait(context, workflow.id, 5)
            workflow = await engine.workflows.get(context, workflow.id)
    return workflow


async def test_nodes_that_fail_at_once_do_not_end_what_has_not_begun(
    engine: Engine, context: RequestContext
) -> None:
    """Given more nodes than begin at once, when each fails at once, then all run in one go."""
    nodes = [build_nap_node(str(n), fails=True) for n in range(9)]
    workflow = await create(engine, context, *nodes)
    ended = await wait_until_ended(engine, context, workflow)
    assert [node.status for node in ended.nodes] == ["failed"] * 9
    events = await engine.core.store.list_events(workflow.id, after=0)
    assert [event["type"] for event in events].count("workflow.running") == 1


async def test_an_end_reads_the_same_at_first_and_later(
    engine: Engine, context: RequestContext
) -> None:
    """Given a workflow with a node that failed, when it has ended, then each reads the same."""
    nodes = [build_nap_node("a"), build_nap_node("b", fails=True), build_nap_node("c", after="b")]
    workflow = await create(engine, context, *nodes)
    first = await wait_until_ended(engine, context, workflow)
    first_as_told = first.model_dump_json()
    first.nodes.clear()  # no reader may see what another one does to its own
    second = await engine.workflows.get(context, workflow.id)
    assert second.model_dump_json() == first_as_told
    assert [node.status for node in second.nodes] == ["completed", "failed", "cancelled"]


async def test_a_cancel_before_the_first_step_is_kept(
    engine: Engine, context: RequestContext
) -> None:
    """Given a workflow accepted this very moment, when cancelled, then nothing of it starts."""
    nodes = [build_nap_node("a", 30), build_nap_node("b", after="a")]
    workflow = await create(engine, context, *nodes)
    cancelled = await engine.workflows.cancel(context, workflow.id)
    assert cancelled.status == "cancelled"
    assert {node.status for node in cancelled.nodes} == {"cancelled"}


async def test_what_never_starts_is_shown_at_once(engine: Engine, context: RequestContext) -> None:
    """Given a failed node and a slow one beside it, then what lies behind is shown cancelled."""
    nodes = [
        build_nap_node("bad", fails=True),
        build_nap_node("behind", after="bad"),
        build_nap_node("slow", 30),
    ]
    workflow = await create(engine, context, *nodes)

    async def has_failed() -> bool:
        nonlocal workflow
        workflow = await engine.workflows.get(context, workflow.id)
        # Of two reads, the first may be of before the node began.
        return workflow.nodes[0].status == "failed" and workflow.status != "queued"

    await wait_until_async(has_failed)
    bad, behind, slow = workflow.nodes
    assert (workflow.status, slow.status) == ("running", "running")
    assert behind.status == "cancelled"
    assert behind.error is not None
    assert behind.error.code == "UPSTREAM_FAILED"
    assert behind.completed_at == bad.completed_at
    told = await engine.events.list(context, workflow.id, after=0, wait_s=0)
    assert [e.data["node_id"] for e in told if e.type == "node.cancelled"] == ["behind"]


async def test_a_chain_of_naps_leaves_the_loop_its_turns(
    engine: Engine, context: RequestContext
) -> None:
    """Given a long chain of nodes that never wait, then other work on the loop is not held up."""
    names = [f"n{i}" for i in range(200)]
    nodes = [build_nap_node(name, after=up) for name, up in zip(names, ["", *names], strict=False)]
    workflow = await create(engine, context, *nodes)
    turns = 0
    while workflow.status in ("queued", "running"):
        await yield_turns()
        turns += 1
        if turns % 50 == 0:
            workflow = await engine.workflows.get(context, workflow.id)
    assert workflow.status == "completed"
    assert turns > len(nodes)


async def test_a_picture_is_used_before_it_is_durable(
    engine: Engine, context: RequestContext
) -> None:
    """Given a card on a card, when the first is on its way to the store, then it is there."""
    nodes = [
        NodeCreate(
            id=node_id,
            capability="composition.layout",
            input={"title": "Tea", "width": 240, "height": 200},
            depends_on=after,
        )
        for node_id, after in (("first", []), ("second", ["first"]))
    ]
    workflow = await create(engine, context, *nodes)
    done = await wait_until_ended(engine, context, workflow)
    assert done.error is None
    assert done.status == "completed"


async def test_a_store_that_was_locked_for_a_while(
    engine: Engine,
    context: RequestContext,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    find_url: Callable[[Path], str | None],
) -> None:
    """Given a database that is locked as a workflow ends, then it is taken up once it is free."""
    monkeypatch.setattr(writer, "WORK_WAIT_S", 0.1)
    monkeypatch.setattr(writer, "REQUEST_WAIT_S", 0.1)
    nodes = [build_nap_node("a", 0.1), build_nap_node("b", after="a")]
    workflow = await create(engine, context, *nodes)
    lock = WriteLock(settings.data_dir, find_url(settings.data_dir))
    lock.take()
    await wait_until_async(lambda: "will be released later" in caplog.text)
    lock.release()
    lock.close()
    done = await wait_until_ended(engine, context, workflow)
    assert done.status == "completed"
    jobs = [await engine.jobs.get(context, node.job_id or "") for node in done.nodes]
    assert {job.status for job in jobs} == {"completed"}
