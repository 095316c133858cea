"""Running a workflow again, in whole or in part, without paying again for what is there."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.support.embedded import get_thread
from tests.support.timing import PATIENCE_S
from toolkit import Client, RequestError, Workflow
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.plugins import TextRequest
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings
from toolkit.store import Change, UpdateRow
from toolkit.vendors import load_vendors

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]


@pytest.fixture
def stormy(settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client of a sandbox that faults can be ordered in."""
    patient = settings.model_copy(update={"retries": 0, "breaker_failures": 50})
    with Client.local(settings=patient, faults=faults) as client:
        yield client


def poster() -> Workflow:
    """Two texts, and a card of one of them."""
    flow = Workflow("poster")
    one = flow.add("one", "llm.generate", objective="One line on tides")
    two = flow.add("two", "llm.generate", objective="One line on mills", depends_on=[one])
    flow.add("card", "composition.layout", title="Mills", depends_on=[two])
    flow.add("side", "llm.generate", objective="One line on salt")
    return flow


def vendor_calls(faults: Faults) -> int:
    """Count the texts that were asked for and answered."""
    return sum(not call.fault and call.vendor != "encyclopedia" for call in faults.calls)


def run_failing_workflow(stormy: Client, faults: Faults) -> Workflow:
    """A workflow of which `two` failed, and `card` was never begun."""
    for vendor in load_vendors().values():
        if TextRequest in vendor.operations:
            faults.fail(vendor.id, status=503, times=None)
    flow = Workflow("poster")
    facts = flow.add("facts", "research.gather", topic="Tides")
    two = flow.add("two", "llm.generate", objective="One line on mills", depends_on=[facts])
    flow.add("card", "composition.layout", title="Mills", depends_on=[two])
    return stormy.workflows.submit(flow).wait(check=False)


def test_retry_goes_on_from_the_failed_node(stormy: Client, faults: Faults) -> None:
    """Given a failed workflow, when the vendor is back, then its id and its results stay."""
    flow = run_failing_workflow(stormy, faults)
    assert [node.status for node in flow.nodes] == ["completed", "failed", "cancelled"]
    before = {node.id: (node.job_id, node.artifact_id) for node in flow.nodes}
    faults.clear()
    again = stormy.workflows.retry(flow.id)
    assert (again.id, again.status in ("queued", "running")) == (flow.id, True)
    done = again.wait()
    after = {node.id: (node.job_id, node.artifact_id) for node in done.nodes}
    assert after["facts"] == before["facts"]
    assert after["two"][0] == before["two"][0]  # the same job, with all its tries
    job = stormy.jobs.get(after["two"][0])
    assert (job.attempts[0].status, job.attempts[-1].status) == ("failed", "completed")
    assert vendor_calls(faults) == 1
    assert (done.status, done.record.error, done.final_artifact_id != "") == (
        "completed",
        None,
        True,
    )
    kinds = [event.type for event in done.events()]
    assert kinds.index("workflow.failed") < kinds.index("workflow.completed")
    assert [event.n for event in done.events()] == list(range(1, len(kinds) + 1))


def test_retry_of_what_was_cancelled(stormy: Client, faults: Faults) -> None:
    """Given a cancelled workflow, then retry runs what had not completed."""
    faults.add(Fault("minimax", delay_ms=400, times=None))
    flow = stormy.workflows.submit(poster())
    flow.cancel()
    assert flow.refresh().status == "cancelled"
    faults.clear()
    assert flow.retry().wait().status == "completed"


def test_retry_can_fail_again(stormy: Client, faults: Faults) -> None:
    """Given a vendor that is still down, then the workflow fails again and can be retried again."""
    flow = run_failing_workflow(stormy, faults)
    assert flow.retry().wait(check=False).status == "failed"
    faults.clear()
    assert flow.retry().wait().status == "completed"


@pytest.mark.parametrize("state", ["completed", "running"])
def test_only_what_did_not_complete_is_retried(client: Client, state: str) -> None:
    """Given a workflow that runs or has completed, then a retry is a conflict."""
    flow = client.workflows.submit(poster())
    if state == "completed":
        flow.wait()
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        client.workflows.retry(flow.id)
    flow.wait()


def test_a_fork_keeps_the_other_results(stormy: Client, faults: Faults) -> None:
    """Given a completed workflow, then a fork runs one node and what is behind it, and no more."""
    first = stormy.workflows.submit(poster()).wait()
    calls = vendor_calls(faults)
    fork = first.fork(from_node="two", overrides={"two": {"objective": "One line on watermills"}})
    done = fork.wait()
    assert vendor_calls(faults) == calls + 1
    assert (done.id != first.id, done.record.forked_from) == (True, first.id)
    before = {node.id: node.artifact_id for node in first.nodes}
    after = {node.id: node.artifact_id for node in done.nodes}
    assert {n for n in after if after[n] != before[n]} == {"two", "card"}
    assert done.nodes[1].input["objective"] == "One line on watermills"
    assert first.refresh().nodes[1].artifact_id == before["two"]  # the source is as it was
    assert 0 < done.record.cost_incurred_usd < first.record.cost_incurred_usd


def test_a_fork_of_a_fork(stormy: Client, faults: Faults) -> None:
    """Given a fork, then it can be forked, and still nothing kept is paid again."""
    first = stormy.workflows.submit(poster()).wait()
    second = first.fork(from_node="card").wait()
    calls = vendor_calls(faults)
    third = stormy.workflows.fork(second.id, "card", {"card": {"title": "Salt"}}).wait()
    assert vendor_calls(faults) == calls
    assert [n.artifact_id for n in third.nodes[:2]] == [n.artifact_id for n in first.nodes[:2]]


@pytest.mark.parametrize(
    ("from_node", "overrides", "path"),
    [
        ("nope", {}, "from_node"),
        ("two", {"one": {}}, "overrides.one"),
        ("two", {"nope": {}}, "overrides.nope"),
        ("two", {"two": {"surprise": 1}}, "nodes.1.input.surprise"),
    ],
)
def test_forks_that_do_not_fit(
    client: Client, from_node: str, overrides: dict[str, dict[str, object]], path: str
) -> None:
    """Given a node that is not there or stays as it is, then the fork is refused."""
    first = client.workflows.submit(poster()).wait()
    with pytest.raises(RequestError) as refused:
        client.workflows.fork(first.id, from_node, overrides)
    assert path in [detail.path for detail in refused.value.details]


def test_a_retry_that_cannot_be_written_can_be_asked_for_again(
    stormy: Client, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a store that takes nothing just then, then the workflow stays as it was."""
    flow = run_failing_workflow(stormy, faults)
    faults.clear()
    store = get_thread(stormy).engine.core.store
    write = store.write

    async def fail(changes: Sequence[Change], **options: Any) -> None:
        if any(isinstance(one, UpdateRow) and one.table == "workflows" for one in changes):
            raise ServiceError(ErrorCode.UNAVAILABLE, "disk I/O error")
        await write(changes, **options)

    monkeypatch.setattr(store, "write", fail)
    with pytest.raises(ServiceError):
        stormy.workflows.retry(flow.id)
    monkeypatch.undo()
    assert flow.refresh().status == "failed"
    until = time.monotonic() + PATIENCE_S
    while flow.status == "failed" and time.monotonic() < until:
        with contextlib.suppress(RequestError):
            flow.retry()
    assert flow.wait().status == "completed"
