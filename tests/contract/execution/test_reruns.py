"""Running a workflow again, in whole or in part, without paying again for results."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.embedded import get_thread
from tests.support.timing import wait_until
from toolkit import Client, RequestError, Workflow
from toolkit.client import WorkflowRun
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.plugins import TextRequest
from toolkit.sandbox import Faults
from toolkit.settings import Settings
from toolkit.store import Change, UpdateRow
from toolkit.vendors import load_vendors

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings without retries of calls."""
    return settings.model_copy(update={"retries": 0, "breaker_failures": 50})


def build_poster() -> Workflow:
    """Build a workflow of three texts, and a card of the second."""
    flow = Workflow("poster")
    tides = flow.add("tides", "llm.generate", objective="One line on tides")
    mills = flow.add("mills", "llm.generate", objective="One line on mills", depends_on=[tides])
    flow.add("card", "composition.layout", title="Mills", depends_on=[mills])
    flow.add("salt", "llm.generate", objective="One line on salt")
    return flow


def count_calls(faults: Faults) -> int:
    """Count the calls that a vendor answered, without those to the encyclopedia."""
    return sum(not call.fault and call.vendor != "encyclopedia" for call in faults.calls)


@pytest.fixture
def failed(client: Client, faults: Faults) -> WorkflowRun:
    """A workflow whose node `text` failed, so that `card` never started; its vendors are back."""
    for vendor in load_vendors().values():
        if TextRequest in vendor.operations:
            faults.fail(vendor.id, status=503, times=None)
    flow = Workflow("poster")
    facts = flow.add("facts", "research.gather", topic="Tides")
    text = flow.add("text", "llm.generate", objective="One line on mills", depends_on=[facts])
    flow.add("card", "composition.layout", title="Mills", depends_on=[text])
    run = client.workflows.submit(flow).wait(check=False)
    assert run.retry().wait(check=False).status == "failed"  # the vendors are still away
    faults.clear()
    return run


def test_a_retry_continues_at_the_failed_node(
    client: Client, faults: Faults, failed: WorkflowRun
) -> None:
    """Given a failed workflow, when the vendor is back, then a retry keeps its id and results."""
    assert [node.status for node in failed.nodes] == ["completed", "failed", "cancelled"]
    before = {node.id: (node.job_id, node.artifact_id) for node in failed.nodes}
    retried = client.workflows.retry(failed.id)
    assert (retried.id, retried.status in ("queued", "running")) == (failed.id, True)
    retried.wait()
    after = {node.id: (node.job_id, node.artifact_id) for node in retried.nodes}
    assert after["facts"] == before["facts"]
    assert after["text"][0] == before["text"][0]  # the same job, with all its attempts
    job = client.jobs.get(after["text"][0])
    assert (job.attempts[0].status, job.attempts[-1].status) == ("failed", "completed")
    assert count_calls(faults) == 1
    assert (retried.status, retried.record.error) == ("completed", None)
    assert retried.final_artifact_id
    kinds = [event.type for event in retried.events()]
    assert kinds.index("workflow.failed") < kinds.index("workflow.completed")
    assert [event.n for event in retried.events()] == list(range(1, len(kinds) + 1))


@pytest.mark.parametrize("state", ["completed", "running"])
def test_rejects_a_retry_of_other_workflows(client: Client, state: str) -> None:
    """Given a workflow that runs or has completed, then a retry is a conflict."""
    run = client.workflows.submit(build_poster())
    if state == "completed":
        run.wait()
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        client.workflows.retry(run.id)
    run.wait()


def test_a_fork_keeps_the_other_results(client: Client, faults: Faults) -> None:
    """Given a completed workflow, then its forks run only one node and its dependents."""
    source = client.workflows.submit(build_poster()).wait()
    calls = count_calls(faults)
    input = {"objective": "One line on watermills"}
    fork = source.fork(from_node="mills", overrides={"mills": input}).wait()
    assert count_calls(faults) == calls + 1
    assert (fork.id != source.id, fork.record.forked_from) == (True, source.id)
    before = {node.id: node.artifact_id for node in source.nodes}
    after = {node.id: node.artifact_id for node in fork.nodes}
    assert {n for n in after if after[n] != before[n]} == {"mills", "card"}
    assert fork.nodes[1].input["objective"] == "One line on watermills"
    assert source.refresh().nodes[1].artifact_id == before["mills"]  # the source is unchanged
    assert 0 < fork.record.cost_incurred_usd < source.record.cost_incurred_usd
    second = client.workflows.fork(fork.id, "card", {"card": {"title": "Salt"}}).wait()
    assert count_calls(faults) == calls + 1
    assert [node.artifact_id for node in second.nodes[:2]] == [after["tides"], after["mills"]]


@pytest.mark.parametrize(
    ("from_node", "overrides", "path"),
    [
        ("nope", {}, "from_node"),
        ("mills", {"tides": {}}, "overrides.tides"),
        ("mills", {"nope": {}}, "overrides.nope"),
        ("mills", {"mills": {"surprise": 1}}, "nodes.1.input.surprise"),
    ],
)
def test_rejects_an_invalid_fork(
    client: Client, from_node: str, overrides: dict[str, dict[str, object]], path: str
) -> None:
    """Given an unknown node, or an override of a node that is kept, then the fork is rejected."""
    source = client.workflows.submit(build_poster()).wait()
    with pytest.raises(RequestError) as error:
        client.workflows.fork(source.id, from_node, overrides)
    assert path in [detail.path for detail in error.value.details]


def test_a_retry_that_cannot_be_written_can_be_repeated(
    client: Client, failed: WorkflowRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a store that fails for a moment, then the workflow stays failed, and can be retried."""
    store = get_thread(client).engine.core.store
    write = store.write

    async def fail(changes: Sequence[Change], **options: Any) -> None:
        if any(isinstance(change, UpdateRow) and change.table == "workflows" for change in changes):
            raise ServiceError(ErrorCode.UNAVAILABLE, "disk I/O error")
        await write(changes, **options)

    monkeypatch.setattr(store, "write", fail)
    with pytest.raises(ServiceError):
        client.workflows.retry(failed.id)
    monkeypatch.undo()
    assert failed.refresh().status == "failed"

    def is_retried() -> bool:
        try:
            failed.retry()
        except RequestError:
            return False
        return True

    wait_until(is_retried)
    assert failed.wait().status == "completed"
