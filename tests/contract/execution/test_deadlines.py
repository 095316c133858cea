"""Deadlines of runs, nodes and workflows; and what a clock that somebody sets does to them."""

import time
from collections.abc import Iterator

import pytest

from tests.support.timing import Watch
from toolkit import Client, RequestError, Workflow
from toolkit.contract.errors import WorkError
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

ASKED = {"objective": "One line on tides"}


@pytest.fixture
def faults() -> Faults:
    """A minimax that answers to nobody."""
    faults = Faults()
    faults.add(Fault("minimax", mangle="hang", times=None))
    return faults


@pytest.fixture
def client(settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client of that sandbox."""
    with Client.local(settings=settings, faults=faults) as client:
        yield client


def test_a_run_that_is_not_done_in_time(client: Client) -> None:
    """Given a vendor that hangs, then the run fails at its deadline, and the call counts."""
    started, watch = time.monotonic(), Watch()
    run = client.runs.create("llm.generate", ASKED, deadline_s=0.4)
    with pytest.raises(WorkError, match=r"deadline of 0\.4 s") as failed:
        run.wait()
    elapsed_s = time.monotonic() - started
    assert elapsed_s > 0.3
    assert watch.measure_elapsed_s() < 2
    assert failed.value.code.name == "PROVIDER_TIMEOUT"
    run.refresh()
    took_ms = run.record.latency_ms + (run.record.queue_ms or 0)  # the deadline is for both
    assert 300 < took_ms < elapsed_s * 1000 + 2
    assert [a.status for a in run.attempts] == ["cancelled"]
    assert run.record.cost_incurred_usd > 0  # the vendor may bill it


def test_a_workflow_that_is_not_done_in_time(client: Client) -> None:
    """Given a deadline, then what runs is ended, what waits never starts, and the rest is kept."""
    flow = Workflow("late", deadline_s=3.0)
    quick = flow.add("quick", "research.gather", topic="Tides", options={"provider": "openai"})
    slow = flow.add("slow", "llm.generate", depends_on=[quick], **ASKED)
    flow.add("after", "composition.layout", title="Tides", depends_on=[slow])
    watch = Watch()
    with pytest.raises(WorkError, match="deadline of 3 s"):
        client.workflows.submit(flow).wait()
    assert watch.measure_elapsed_s() < 5
    done = client.workflows.list()[0].refresh()
    assert done.status == "failed"
    assert [node.status for node in done.nodes] == ["completed", "cancelled", "cancelled"]
    assert done.latency_ms > 2900
    assert client.jobs.get(done.nodes[1].job_id).status == "cancelled"


def test_a_node_with_a_deadline_of_its_own(client: Client) -> None:
    """Given one node with a deadline, then it fails alone, and what does not need it completes."""
    flow = Workflow("late")
    flow.add("slow", "llm.generate", options={"deadline_s": 0.3}, **ASKED)
    flow.add("other", "llm.generate", options={"provider": "openai"}, **ASKED)
    done = client.workflows.submit(flow).wait(check=False)
    assert {node.id: node.status for node in done.nodes} == {"slow": "failed", "other": "completed"}


@pytest.mark.parametrize("deadline_s", [0, -1, 1e9])
def test_what_is_no_deadline(client: Client, deadline_s: float) -> None:
    """Given a deadline that is none, then the run is refused."""
    with pytest.raises(RequestError) as refused:
        client.runs.create("llm.generate", ASKED, deadline_s=deadline_s)
    assert refused.value.details[0].path == "options.deadline_s"
