"""Cancelling at every state: nothing new starts, what was spent is kept, and it is final soon."""

from collections.abc import Callable, Iterator

import pytest

from tests.support.timing import Watch, check_stays, wait_until
from toolkit import Client, Workflow
from toolkit.client._sync.resources.runs import Run
from toolkit.client._sync.resources.tasks import Task
from toolkit.client._sync.resources.workflows import WorkflowRun
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

ASKED = {"objective": "One line on tides"}
PICTURE = {"prompt": "a lighthouse", "steps": 2, "width": 256, "height": 256}
SOON_S = 2.0


@pytest.fixture
def client(settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client with room for three jobs at once, and one call at once to each vendor."""
    update = {"max_concurrent_jobs": 3, "max_concurrent_calls": 1, "retry_base_s": 20.0}
    narrow = settings.model_copy(update=update)
    with Client.local(settings=narrow, faults=faults) as client:
        yield client


def start_run_awaiting_slot(client: Client, faults: Faults) -> Run:
    """A run that waits until there is room for it."""
    faults.add(Fault("minimax", mangle="hang", times=None))
    for i in range(3):
        client.runs.create("llm.generate", {"objective": f"Line {i}"})
    run = client.runs.create("llm.generate", ASKED)
    assert client.runs.get(run.id).status == "queued"
    return run


def start_run_awaiting_vendor(client: Client, faults: Faults) -> Run:
    """A run whose vendor is busy with another one's call."""
    faults.add(Fault("minimax", mangle="hang", times=None))
    client.runs.create("llm.generate", {"objective": "First"})
    wait_until(lambda: len(faults.calls) == 1)
    run = client.runs.create("llm.generate", ASKED, provider="minimax")
    wait_until(lambda: client.runs.get(run.id).status == "running")
    return run


def start_run_in_call(client: Client, faults: Faults) -> Run:
    """A run whose vendor does not answer."""
    faults.add(Fault("minimax", mangle="hang", times=None))
    run = client.runs.create("llm.generate", ASKED)
    wait_until(lambda: len(faults.calls) == 1)
    return run


def start_run_backing_off(client: Client, faults: Faults) -> Run:
    """A run that waits before it asks again."""
    faults.fail("minimax", status=503, times=None)
    run = client.runs.create("llm.generate", ASKED, provider="minimax")
    wait_until(lambda: client.runs.get(run.id).record.status_detail == "retrying")
    return run


def start_run_queued_at_vendor(client: Client, faults: Faults) -> Run:
    """A run whose image is queued at the vendor."""
    faults.add(Fault("runpod-jobs", path_contains="/status/", delay_ms=5000, times=None))
    run = client.runs.create("image.generate", PICTURE)
    wait_until(lambda: any("/status/" in call.path for call in faults.calls))
    return run


RUNS = (
    start_run_awaiting_slot,
    start_run_awaiting_vendor,
    start_run_in_call,
    start_run_backing_off,
    start_run_queued_at_vendor,
)


@pytest.mark.parametrize("state", RUNS, ids=[each.__name__ for each in RUNS])
def test_a_run(client: Client, faults: Faults, state: Callable[[Client, Faults], Run]) -> None:
    """Given a run in some state, when it is cancelled, then it is final soon and stays so."""
    run = state(client, faults)
    calls = len(faults.calls)
    watch = Watch()
    run.cancel()
    assert watch.measure_elapsed_s() < SOON_S
    assert (run.status, run.error.code) == ("cancelled", "CANCELLED")
    first = run.to_dict()

    def asks_nobody() -> bool:
        return all("/cancel/" in c.path or c.vendor == "minimax" for c in faults.calls[calls:])

    check_stays(asks_nobody, 0.3)
    assert run.refresh().to_dict() == first
    assert run.cancel().to_dict() == first  # again: answered as it is
    assert [event.type for event in run.events()].count("run.cancelled") == 1


def test_what_a_cancelled_call_may_cost_is_kept(client: Client, faults: Faults) -> None:
    """Given a call under way, then it counts as spent; given none, then nothing was."""
    called = start_run_in_call(client, faults).cancel()
    assert [a.status for a in called.attempts] == ["cancelled"]
    assert called.record.cost_incurred_usd == called.attempts[0].cost_usd > 0
    faults.clear()
    queued = start_run_awaiting_slot(client, faults).cancel()
    assert (queued.record.started_at, queued.record.cost_incurred_usd) == (None, 0)


def test_a_job_at_the_vendor_is_cancelled_there(client: Client, faults: Faults) -> None:
    """Given an image in the vendor's queue, then the vendor is told to cancel it."""
    start_run_queued_at_vendor(client, faults).cancel()
    cancelled = [call for call in faults.calls if "/cancel/" in call.path]
    assert [call.status for call in cancelled] == [200]


def test_a_vendor_that_does_not_answer_a_cancel(client: Client, faults: Faults) -> None:
    """Given a vendor that hangs when told to cancel, then the run is final soon all the same."""
    faults.add(Fault("runpod-jobs", path_contains="/cancel/", mangle="hang", times=None))
    run = start_run_queued_at_vendor(client, faults)
    watch = Watch()
    assert run.cancel().status == "cancelled"
    assert watch.measure_elapsed_s() < SOON_S


def test_a_workflow(client: Client, faults: Faults) -> None:
    """Given a workflow with nodes in every state, then all of them are final, and none starts."""
    flow = Workflow("many")
    done = flow.add("done", "llm.generate", options={"provider": "openai"}, **ASKED)
    faults.add(Fault("minimax", mangle="hang", times=None))
    for i in range(5):
        flow.add(f"n{i}", "llm.generate", objective=f"Line {i}", depends_on=[done])
    flow.add("last", "composition.layout", title="Tides", depends_on=["n0"])
    run: WorkflowRun = client.workflows.submit(flow)
    wait_until(lambda: any(call.vendor == "minimax" for call in faults.calls))
    watch = Watch()
    run.cancel()
    assert watch.measure_elapsed_s() < SOON_S
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
def test_a_task(client: Client, faults: Faults, state: str) -> None:
    """Given a task in some state, then it is failed with `CANCELLED`, and its workflow ended."""
    faults.add(Fault("*", mangle="hang", times=None))
    if state == "blocked":
        for connection in client.connections.list():
            client.connections.delete(connection.id)
    task: Task = client.tasks.create("A spoken summary of tides")
    wait_until(lambda: client.tasks.get(task.id).status == state)
    watch = Watch()
    task.cancel()
    assert watch.measure_elapsed_s() < SOON_S
    assert (task.status, task.record.error.code) == ("failed", "CANCELLED")
    if task.workflow_id:
        assert client.workflows.get(task.workflow_id).status == "cancelled"


def test_by_another_process(settings: Settings, faults: Faults) -> None:
    """Given a run of one process, when another is asked to cancel it, then it is final soon."""
    faults.add(Fault("minimax", mangle="hang", times=None))
    with (
        Client.local(settings=settings, faults=faults) as works,
        Client.local(settings=settings, faults=faults) as asks,
    ):
        run = works.runs.create("llm.generate", ASKED)
        wait_until(lambda: len(faults.calls) == 1)
        watch = Watch()
        asks.runs.get(run.id).cancel()
        wait_until(lambda: works.runs.get(run.id).status == "cancelled")
        assert watch.measure_elapsed_s() < SOON_S
        assert len(faults.calls) == 1
