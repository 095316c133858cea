"""The scheduler: acceptance of work, graphs, and turns of nodes."""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.execution.test_shared_directory import build_run
from tests.support.engine_accounts import connect_account
from tests.support.slow_capability import load_slow_registry
from tests.support.timing import PATIENCE_S, wait_until_async, yield_turns
from tests.support.write_lock import WriteLock
from toolkit.contract.account import KeyCreate
from toolkit.contract.choices import Scope
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.contract.workflows import NodeCreate, WorkflowCreate, WorkflowRecord
from toolkit.engine import Engine
from toolkit.engine.execution.node_states import find_dependents, find_descendants
from toolkit.engine.execution.workflow_graph import check_graph
from toolkit.engine.observer import Observer
from toolkit.engine.request_context import IdempotencyClaim, RequestContext
from toolkit.local import open_engine
from toolkit.sandbox import Faults
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


class CommitCounter(Observer):
    """Counts the transactions of an engine."""

    def __init__(self) -> None:
        self.count = 0

    def record_commit(self, seconds: float) -> None:
        """Count a transaction."""
        self.count += 1


def with_claim(context: RequestContext) -> RequestContext:
    """Return a request with an idempotency key whose other uses this process does not know."""
    return replace(context, claim=IdempotencyClaim("key", context.account_id, "same", 202))


async def test_a_run_takes_two_transactions(settings: Settings) -> None:
    """Given an idle engine, then acceptance and intent are one transaction, the end another."""
    counter = CommitCounter()
    engine = await open_engine(settings, observer=counter)
    context = await connect_account(engine, "minimax")
    counts = []
    for number in range(6):
        run = await engine.runs.create(context, build_run(number))
        assert run.status == "queued"
        await engine.wait(context, run.id, PATIENCE_S)
        assert (await engine.runs.get(context, run.id)).status == "completed"
        await engine.leases.wait(run.id)
        counts.append(counter.count)
    assert counts[-1] - counts[0] == 2 * 5
    await engine.close(0)


@pytest.mark.parametrize("daily_limit", [None, 1.0])
async def test_a_rejected_acceptance_starts_nothing(
    settings: Settings, caplog: pytest.LogCaptureFixture, daily_limit: float | None
) -> None:
    """Given an idempotency key that another process claimed, then nothing is called or spent."""
    faults = Faults()
    engine = await open_engine(settings, faults=faults)
    owner = await connect_account(engine, "minimax")
    context = replace(owner, scopes=frozenset(get_args(Scope)))
    key = await engine.keys.create(context, KeyCreate(max_cost_usd_per_day=daily_limit))
    context = replace(context, key_id=key.id)
    first = await engine.runs.create(with_claim(context), build_run(0))
    await engine.wait(context, first.id, PATIENCE_S)
    remaining = await engine.core.allowances.find_remaining(context)
    late = with_claim(context)
    with pytest.raises(ServiceError, match=r"^UNAVAILABLE:"):
        await engine.runs.create(late, build_run(0))
    assert late.claim is not None
    assert late.claim.is_lost
    await wait_until_async(lambda: engine.leases.running_count == 0)
    assert [run.id for run in await engine.runs.list(context, 10, None)] == [first.id]
    assert len(faults.calls) == 1
    assert await engine.core.allowances.find_remaining(context) == remaining
    assert not [line.message for line in caplog.records if line.levelname != "DEBUG"]
    await engine.close(0)


def build_nodes(edges: dict[str, list[str]]) -> list[NodeCreate]:
    """Build nodes from the dependencies of each node."""
    return [NodeCreate(id=i, capability="x", depends_on=d) for i, d in edges.items()]


def test_reports_all_faults_at_once() -> None:
    """Given a graph with several faults, then each is reported with the path of its node."""
    edges = {"a": ["b"], "b": ["a"], "c": ["c"], "d": ["ghost"], "e": ["a", "a"]}
    with pytest.raises(RequestError) as caught:
        check_graph(build_nodes(edges), max_nodes=10, max_edges=10)
    assert caught.value.code is ErrorCode.INVALID_WORKFLOW
    assert {detail.path for detail in caught.value.details} == {
        "nodes.0.depends_on",
        "nodes.2.depends_on.0",
        "nodes.3.depends_on.0",
        "nodes.4.depends_on.1",
    }


@pytest.mark.parametrize(("max_nodes", "max_edges"), [(2, 10), (10, 1)])
def test_rejects_a_graph_above_the_limits(max_nodes: int, max_edges: int) -> None:
    """Given more nodes or edges than allowed, then the graph is rejected."""
    nodes = build_nodes({"a": [], "b": ["a"], "c": ["a", "b"]})
    with pytest.raises(RequestError):
        check_graph(nodes, max_nodes=max_nodes, max_edges=max_edges)


def test_rejects_a_dense_cycle_quickly() -> None:
    """Given 30 nodes that all depend on each other, then one cycle is named, quickly."""
    names = [f"n{i}" for i in range(30)]
    nodes = build_nodes({n: [m for m in names if m != n] for n in names})
    began = time.thread_time()
    with pytest.raises(RequestError) as caught:
        check_graph(nodes, max_nodes=50, max_edges=1000)
    assert time.thread_time() - began < 1
    assert len(caught.value.details) == 1


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=30))
def test_accepts_acyclic_graphs(raw: list[list[int]]) -> None:
    """Given dependencies on earlier nodes only, then the graph is accepted."""
    edges = {
        f"n{i}": sorted({f"n{up % i}" for up in ups}) if i else [] for i, ups in enumerate(raw)
    }
    nodes = build_nodes(edges)
    check_graph(nodes, max_nodes=100, max_edges=1000)
    dependents = find_dependents(nodes)
    for node in edges:
        assert {node, *edges[node]}.isdisjoint(find_descendants(node, dependents))
