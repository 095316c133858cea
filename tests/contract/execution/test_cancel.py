"""Cancellation and deadlines."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.contract.conftest import expect_refusal
from tests.contract.raw_http import SMALL_IMAGE
from tests.support.timing import Watch, check_stays, wait_until
from toolkit import Client, Workflow
from toolkit.client._sync.resources.runs import Run
from toolkit.contract.errors import WorkError
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

pytestmark = pytest.mark.embedded

LINE = {"objective": "One line on tides"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings with three jobs at once, and one call at once to each vendor."""
    update = {"max_concurrent_jobs": 3, "max_concurrent_calls": 1, "retry_base_s": 20.0}
    return settings.model_copy(update=update)


@contextmanager
def expect_soon() -> Iterator[None]:
    """Expect the block to end within two seconds."""
    watch = Watch()
    yield
    assert watch.measure_elapsed_s() < 2


def start_run_awaiting_slot(client: Client, faults: Faults) -> Run:
    """Start a run that waits for a slot."""
    faults.add(Fault("minimax", mangle="hang", times=None))
    for i in range(3):
        client.runs.create("llm.generate", {"objective": f"Line {i}"})
    run = client.runs.create("llm.generate", LINE)
    assert client.runs.get(run.id).status == "queued"
    return run


def start_run_awaiting_vendor(client: Client, faults: Faults) -> Run:
    """Start a run that waits while the vendor serves another call."""
    faults.add(Fault("minimax", mangle="hang", times=None))
    client.runs.create("llm.generate", {"objective": "First"})
    wait_until(lambda: len(faults.calls) == 1)
    run = client.runs.create("llm.generate", LINE, provider="minimax")
    wait_until(lambda: client.runs.get(run.id).status == "running")
    return run


def start_run_in_call(client: Client, faults: Faults) -> Run:
    """Start a run whose vendor does not answer."""
    faults.add(Fault("minimax", mangle="hang", times=None))
    run = client.runs.create("llm.generate", LINE)
    wait_until(lambda: len(faults.calls) == 1)
    return run


def start_run_backing_off(client: Client, faults: Faults) -> Run:
    """Start a run that waits before its next attempt."""
    faults.fail("minimax", status=503, times=None)
    run = client.runs.create("llm.generate", LINE, provider="minimax")
    wait_until(lambda: client.runs.get(run.id).record.status_detail == "retrying")
    return run


def start_run_queued_at_vendor(client: Client, faults: Faults) -> Run:
    """Start a run whose image is queued at the vendor."""
    faults.add(Fault("runpod-jobs", path_contains="/status/", delay_ms=5000, times=None))
    run = client.runs.create("image.generate", SMALL_IMAGE)
    wait_until(lambda: any("/status/" in call.path for call in faults.calls))
    return run


@pytest.mark.parametrize(
    "start",
    [
        start_run_awaiting_slot,
        start_run_awaiting_vendor,
        start_run_in_call,
        start_run_backing_off,
        start_run_queued_at_vendor,
    ],
)
def test_cancels_a_run_in_any_state(
    client: Client, faults: Faults, start: Callable[[Client, Faults], Run]
) -> None:
    """Given a run in some state, when it is cancelled, then it is final soon and stays so."""
    run = start(client, faults)
    calls = len(faults.calls)
    with expect_soon():
        run.cancel()
    assert (run.status, run.error.code) == ("cancelled", "CANCELLED")
    record = run.to_dict()

    def makes_no_call() -> bool:
        return all("/cancel/" in c.path or c.vendor == "minimax" for c in faults.calls[calls:])

    check_stays(makes_no_call, 0.3)
    assert run.refresh().to_dict() == record
    assert run.cancel().to_dict() == record  # a second cancel changes nothing
    assert [event.type for event in run.events()].count("run.cancelled") == 1


def test_keeps_the_possible_cost_of_a_cancelled_call(client: Client, faults: Faults) -> None:
    """Given a call under way, then it counts as spent; a queued run has spent nothing."""
    run = start_run_in_call(client, faults).cancel()
    assert [a.status for a in run.attempts] == ["cancelled"]
    assert run.record.cost_incurred_usd == run.attempts[0].cost_usd > 0
    faults.clear()
    queued = start_run_awaiting_slot(client, faults).cancel()
    assert (queued.record.started_at, queued.record.cost_incurred_usd) == (None, 0)


@pytest.mark.parametrize("hangs", [False, True])
def test_cancels_a_job_at_its_vendor(client: Client, faults: Faults, hangs: bool) -> None:
    """Given an image in the vendor's queue, then the vendor is asked to cancel it, without a wait.

    A vendor that hangs on the request does not delay the cancel.
    """
    if hangs:
        faults.add(Fault("runpod-jobs", path_contains="/cancel/", mangle="hang", times=None))
    run = start_run_queued_at_vendor(client, faults)
    with expect_soon():
        assert run.cancel().status == "cancelled"
    statuses = [call.status for call in faults.calls if "/cancel/" in call.path]
    assert hangs or statuses == [200]


def test_cancels_a_workflow(client: Client, faults: Faults) -> None:
    """Given a workflow with nodes in every state, then all of them are final, and none starts."""
    flow = Workflow("many")
    first = flow.add("first", "llm.generate", options={"provider": "openai"}, **LINE)
    faults.add(Fault("minimax", mangle="hang", times=None))
    for i in range(5):
        flow.add(f"n{i}", "llm.generate", objective=f"Line {i}", depends_on=[first])
    flow.add("last", "composition.layout", title="Tides", depends_on=["n0"])
    run = client.workflows.submit(flow)
    wait_until(lambda: any(call.vendor == "minimax" for call in faults.calls))
    with expect_soon():
        run.cancel()
    assert run.status == "cancelled"
    assert [node.status for node in run.nodes] == ["completed", *["cancelled"] * 6]
    calls = len(faults.calls)
    check_stays(lambda: len(faults.calls) == calls, 0.3)
    jobs = [client.jobs.get(node.job_id) for node in run.nodes if node.job_id]
    assert {job.status for job in jobs} == {"completed", "cancelled"}
    spent = sum(job.record.cost_incurred_usd for job in jobs)
    assert run.record.cost_incurred_usd == pytest.approx(spent)
    assert spent > 0


@pytest.mark.parametrize("state", ["executing", "blocked"])
def test_cancels_a_task(client: Client, faults: Faults, state: str) -> None:
    """Given a task in some state, then it has failed with `CANCELLED`, and its workflow ended."""
    faults.add(Fault("*", mangle="hang", times=None))
    if state == "blocked":
        for connection in client.connections.list():
            client.connections.delete(connection.id)
    task = client.tasks.create("A spoken summary of tides")
    wait_until(lambda: client.tasks.get(task.id).status == state)
    with expect_soon():
        task.cancel()
    assert (task.status, task.record.error.code) == ("failed", "CANCELLED")
    if task.workflow_id:
        assert client.workflows.get(task.workflow_id).status == "cancelled"


def test_cancels_a_run_of_another_process(
    client: Client, settings: Settings, faults: Faults
) -> None:
    """Given a run of one process, when another process cancels it, then it is final soon."""
    run = start_run_in_call(client, faults)
    with Client.local(settings=settings, faults=faults) as second, expect_soon():
        second.runs.get(run.id).cancel()
        wait_until(lambda: client.runs.get(run.id).status == "cancelled")
    assert len(faults.calls) == 1


@pytest.fixture
def hanging_minimax(faults: Faults) -> None:
    """A minimax that never answers."""
    faults.add(Fault("minimax", mangle="hang", times=None))


@pytest.mark.usefixtures("hanging_minimax")
def test_a_run_fails_at_its_deadline(client: Client) -> None:
    """Given a vendor that hangs, then the run fails at its deadline, and the call counts."""
    started, watch = time.monotonic(), Watch()
    run = client.runs.create("llm.generate", LINE, deadline_s=0.4)
    with pytest.raises(WorkError, match=r"^PROVIDER_TIMEOUT:.*deadline of 0\.4 s"):
        run.wait()
    elapsed_s = time.monotonic() - started
    assert elapsed_s > 0.3
    assert watch.measure_elapsed_s() < 2
    run.refresh()
    # The deadline bounds the time in the queue and in the call together.
    total_ms = run.record.latency_ms + (run.record.queue_ms or 0)
    assert 300 < total_ms < elapsed_s * 1000 + 2
    assert [a.status for a in run.attempts] == ["cancelled"]
    assert run.record.cost_incurred_usd > 0  # the vendor may bill it


@pytest.mark.usefixtures("hanging_minimax")
def test_a_workflow_fails_at_its_deadline(client: Client) -> None:
    """Given a deadline, then running and waiting nodes are cancelled, and results are kept."""
    flow = Workflow("late", deadline_s=3.0)
    quick = flow.add("quick", "research.gather", topic="Tides", options={"provider": "openai"})
    slow = flow.add("slow", "llm.generate", depends_on=[quick], **LINE)
    flow.add("after", "composition.layout", title="Tides", depends_on=[slow])
    watch = Watch()
    with pytest.raises(WorkError, match="deadline of 3 s"):
        client.workflows.submit(flow).wait()
    assert watch.measure_elapsed_s() < 5
    run = client.workflows.list()[0].refresh()
    assert run.status == "failed"
    assert [node.status for node in run.nodes] == ["completed", "cancelled", "cancelled"]
    assert run.latency_ms > 2900
    assert client.jobs.get(run.nodes[1].job_id).status == "cancelled"


@pytest.mark.usefixtures("hanging_minimax")
def test_a_node_fails_at_its_own_deadline(client: Client) -> None:
    """Given one node with a deadline, then it fails alone, and an independent node completes."""
    flow = Workflow("late")
    flow.add("slow", "llm.generate", options={"deadline_s": 0.3}, **LINE)
    flow.add("other", "llm.generate", options={"provider": "openai"}, **LINE)
    run = client.workflows.submit(flow).wait(check=False)
    assert {node.id: node.status for node in run.nodes} == {"slow": "failed", "other": "completed"}


@pytest.mark.parametrize("deadline_s", [0, -1, 1e9])
def test_rejects_an_invalid_deadline(client: Client, deadline_s: float) -> None:
    """Given a deadline out of range, then the run is rejected."""
    with expect_refusal("INVALID_REQUEST", "options.deadline_s"):
        client.runs.create("llm.generate", LINE, deadline_s=deadline_s)
