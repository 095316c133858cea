"""Deadlines of runs, nodes and workflows."""

import time

import pytest

from tests.contract.conftest import expect_refusal
from tests.support.timing import Watch
from toolkit import Client, Workflow
from toolkit.contract.errors import WorkError
from toolkit.sandbox import Fault, Faults

pytestmark = pytest.mark.embedded

LINE = {"objective": "One line on tides"}


@pytest.fixture
def faults() -> Faults:
    """A minimax that never answers."""
    faults = Faults()
    faults.add(Fault("minimax", mangle="hang", times=None))
    return faults


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
