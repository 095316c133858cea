"""The cost of work: one number for one thing, through whichever door it is looked at."""

from collections.abc import Iterator
from html import unescape

import pytest

from tests.support.views import render_views
from toolkit import Client, Workflow
from toolkit.cli.output import ClientOutput
from toolkit.cli.resources.workflows import NODE_COLUMNS
from toolkit.contract.money import format_usd
from toolkit.notebook import TaskReview, WorkflowGraph
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

pytestmark = pytest.mark.sqlite("other tests have its statements")


@pytest.fixture
def stormy(settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client whose first call of each kind is answered with garbage where a test orders it."""
    hasty = settings.model_copy(update={"retries": 0})
    with Client.local(settings=hasty, faults=faults) as client:
        yield client


def run_retried_workflow(client: Client, faults: Faults) -> Workflow:
    """A workflow that has ended, whose text was paid for twice and delivered once."""
    faults.mangle("openai", "garbage", times=1)
    wf = Workflow("twice", max_retries=1)
    facts = wf.add("facts", "research.gather", topic="Tidal power", synthesize=False)
    copy = wf.add(
        "copy", "llm.generate", objective="A teaser", depends_on=[facts],
        options={"provider": "openai"},
    )  # fmt: skip
    wf.add("voice", "speech.generate", depends_on=[copy])
    done = client.workflows.submit(wf).wait()
    assert done.retries == 1
    return done


def sum_delivered_cost(client: Client, workflow) -> float:
    """Sum the bills of the calls that delivered, by the attempts of its jobs."""
    attempts = [
        attempt
        for node in workflow.nodes
        for attempt in client.jobs.get(node.job_id).attempts
        if attempt.provider and attempt.status == "completed"
    ]
    assert len(attempts) == 2
    return sum(attempt.cost_usd for attempt in attempts)


def test_a_workflow_costs_the_same_through_every_door(
    stormy: Client, faults: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a workflow with a retry, then every view of it shows what its results cost."""
    done = run_retried_workflow(stormy, faults)
    paid = pytest.approx(sum_delivered_cost(stormy, done), abs=1e-9)
    shown = format_usd(done.cost_usd)
    in_all = format_usd(done.record.cost_incurred_usd)
    assert done.cost_usd == paid
    assert done.record.cost_incurred_usd > done.cost_usd > 0
    # As data.
    assert done.to_dict()["cost_usd"] == stormy.workflows.list().cost_usd == paid
    assert done.to_frame()["cost_usd"].sum() == paid
    assert done.timeline().to_frame()["cost_usd"].sum() == paid
    assert sum(node["cost_usd"] for _, node in done.to_networkx().nodes(data=True)) == paid
    assert done.events()[-1].data["cost_usd"] == paid
    # As pictures, which say what was paid for in vain beside it.
    for picture in (done.picture(), done.timeline().picture()):
        caption = unescape(picture)
        assert f"{shown} ({in_all} with all attempts)" in caption
    texts = [text.get_text() for axes in done.plot().axes for text in axes.texts]
    assert any(shown in text.replace("\\$", "$") for text in texts)
    # As text.
    assert f" {shown}>" in repr(done)
    assert shown in stormy.workflows.list()._repr_html_()
    ClientOutput(stormy).print_record(stormy.workflows.get(done.id), "nodes", NODE_COLUMNS)
    ClientOutput(stormy).print_table(stormy.workflows.list(), ("id", "cost_usd"))
    assert capsys.readouterr().out.count(shown) == 2
    graph = WorkflowGraph(stormy.workflows.get(done.id))
    assert shown in graph.headline.value
    assert shown in unescape(graph.snapshot())
    graph.close()
    # What all calls cost is another thing, and one number too.
    (usage,) = stormy.usage.list(["day"])
    assert usage.cost_usd == pytest.approx(done.record.cost_incurred_usd, abs=1e-9)
    assert stormy.billing.get().total_usd == pytest.approx(usage.cost_usd, abs=1e-9)


def test_a_task_costs_what_its_workflows_do(
    stormy: Client, faults: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a task that a person has run again in part, then every view shows one sum."""
    faults.mangle("minimax", "garbage", times=1, path_contains="t2a")
    task = stormy.tasks.create("A narration about tea").wait()
    stormy.tasks.submit_review(task.id, "retry", node_id="narration")
    task = stormy.tasks.get(task.id).wait()
    assert len(task.workflow_ids) == 2
    workflows = [stormy.workflows.get(one) for one in task.workflow_ids]
    assert task.cost_usd == pytest.approx(sum(one.cost_usd for one in workflows), abs=1e-9)
    assert task.cost_incurred_usd == pytest.approx(
        sum(one.cost_incurred_usd for one in workflows), abs=1e-9
    )
    assert task.cost_incurred_usd > task.cost_usd > 0
    shown = format_usd(task.cost_usd)
    assert f" {shown}>" in repr(task)
    assert shown in render_views(task)
    assert task.to_frame()["cost_usd"].item() == stormy.tasks.list().cost_usd == task.cost_usd
    assert task.events()[-1].data["cost_usd"] == task.cost_usd
    ClientOutput(stormy).print_record(task)
    ClientOutput(stormy).print_table(stormy.tasks.list(), ("id", "cost_usd"))
    assert capsys.readouterr().out.count(shown) == 2
    review = TaskReview(task)
    assert shown in review.headline.value
    for one in workflows:
        assert format_usd(one.cost_usd) in review.attempts.value
    review.close()
    (usage,) = stormy.usage.list(["day"])
    assert usage.cost_usd == pytest.approx(task.cost_incurred_usd, abs=1e-9)


def test_what_was_never_called_costs_nothing(stormy: Client, faults: Faults) -> None:
    """Given failures before any call, or that no vendor bills, then they cost 0 and not unknown."""
    faults.add(Fault("openai", status=400, times=None))
    refused = stormy.runs.create("llm.generate", {"objective": "x"}, provider="openai")
    refused.wait(check=False)
    unfound = stormy.runs.create("research.gather", {"topic": "zzzz qqqq xxyyzz"})
    unfound.wait(check=False)
    for run in (refused, unfound):
        assert run.status == "failed"
        assert (run.cost_usd, run.cost_incurred_usd) == (0, 0)
        assert run.record.cost_source == "metered"
        assert "unknown" not in render_views(run)
        assert repr(run).endswith("$0>")
        assert {attempt.cost_usd for attempt in run.attempts} == {0}
    wf = Workflow("never")
    bad = wf.add("bad", "research.gather", topic="zzzz qqqq xxyyzz")
    wf.add("behind", "llm.generate", objective="Say it", depends_on=[bad])
    flow = stormy.workflows.submit(wf).wait(check=False)
    assert flow.cost_usd == 0
    assert [node.cost_usd for node in flow.nodes] == [0, 0]
    task = stormy.tasks.create("A narration about tea", max_cost_usd=1e-7).wait(check=False)
    assert (task.status, task.error.code) == ("failed", "BUDGET_EXCEEDED")
    assert (task.cost_usd, task.cost_incurred_usd) == (0, 0)
    assert repr(task).endswith("$0>")


def test_what_failed_after_a_call_costs_what_may_be_billed(stormy: Client, faults: Faults) -> None:
    """Given an answer that nobody can read, then the run failed, and its cost is not hidden."""
    faults.mangle("openai", "garbage", times=None)
    run = stormy.runs.create("llm.generate", {"objective": "x"}, provider="openai")
    run.wait(check=False)
    assert (run.status, run.error.code) == ("failed", "PROVIDER_BAD_RESPONSE")
    assert run.cost_usd == run.cost_incurred_usd == run.attempts[0].cost_usd > 0
    assert run.record.cost_source == "estimated"
