"""The cost of work is the same in every view."""

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

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings without retries of calls."""
    return settings.model_copy(update={"retries": 0})


def sum_delivered_cost(client: Client, workflow) -> float:
    """Sum the costs of the two calls that delivered a result, by the attempts of its jobs."""
    attempts = [
        attempt
        for node in workflow.nodes
        for attempt in client.jobs.get(node.job_id).attempts
        if attempt.provider and attempt.status == "completed"
    ]
    assert len(attempts) == 2
    return sum(attempt.cost_usd for attempt in attempts)


def test_a_workflow_shows_one_cost_in_every_view(
    client: Client, faults: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a workflow whose text was paid twice, then every view shows the cost of its results."""
    faults.mangle("openai", "garbage", times=1)
    wf = Workflow("twice", max_retries=1)
    facts = wf.add("facts", "research.gather", topic="Tidal power", synthesize=False)
    options = {"provider": "openai"}
    copy = wf.add("copy", "llm.generate", objective="A teaser", depends_on=[facts], options=options)
    wf.add("voice", "speech.generate", depends_on=[copy])
    workflow = client.workflows.submit(wf).wait()
    assert workflow.retries == 1
    cost = pytest.approx(sum_delivered_cost(client, workflow), abs=1e-9)
    text = format_usd(workflow.cost_usd)
    total = format_usd(workflow.record.cost_incurred_usd)
    assert workflow.cost_usd == cost
    assert workflow.record.cost_incurred_usd > workflow.cost_usd > 0
    # As data.
    assert workflow.to_dict()["cost_usd"] == client.workflows.list().cost_usd == cost
    assert workflow.to_frame()["cost_usd"].sum() == cost
    assert workflow.timeline().to_frame()["cost_usd"].sum() == cost
    assert sum(node["cost_usd"] for _, node in workflow.to_networkx().nodes(data=True)) == cost
    assert workflow.events()[-1].data["cost_usd"] == cost
    # As pictures, which also show the cost with all attempts.
    for picture in (workflow.picture(), workflow.timeline().picture()):
        assert f"{text} ({total} with all attempts)" in unescape(picture)
    labels = [label.get_text() for axes in workflow.plot().axes for label in axes.texts]
    assert any(text in label.replace("\\$", "$") for label in labels)
    # As text.
    assert f" {text}>" in repr(workflow)
    assert text in client.workflows.list()._repr_html_()
    ClientOutput(client).print_record(client.workflows.get(workflow.id), "nodes", NODE_COLUMNS)
    ClientOutput(client).print_table(client.workflows.list(), ("id", "cost_usd"))
    assert capsys.readouterr().out.count(text) == 2
    graph = WorkflowGraph(client.workflows.get(workflow.id))
    assert text in graph.headline.value
    assert text in unescape(graph.snapshot())
    graph.close()
    # Usage and bill count all attempts.
    (usage,) = client.usage.list(["day"])
    assert usage.cost_usd == pytest.approx(workflow.record.cost_incurred_usd, abs=1e-9)
    assert client.billing.get().total_usd == pytest.approx(usage.cost_usd, abs=1e-9)


def test_a_task_costs_the_sum_of_its_workflows(
    client: Client, faults: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a task that was retried in part, then every view shows the same sum."""
    faults.mangle("minimax", "garbage", times=1, path_contains="t2a")
    task = client.tasks.create("A narration about tea").wait()
    client.tasks.submit_review(task.id, "retry", node_id="narration")
    task = client.tasks.get(task.id).wait()
    first, second = (client.workflows.get(workflow_id) for workflow_id in task.workflow_ids)
    assert task.cost_usd == pytest.approx(first.cost_usd + second.cost_usd, abs=1e-9)
    incurred = first.cost_incurred_usd + second.cost_incurred_usd
    assert task.cost_incurred_usd == pytest.approx(incurred, abs=1e-9)
    assert task.cost_incurred_usd > task.cost_usd > 0
    text = format_usd(task.cost_usd)
    assert f" {text}>" in repr(task)
    assert text in render_views(task)
    assert task.to_frame()["cost_usd"].item() == client.tasks.list().cost_usd == task.cost_usd
    assert task.events()[-1].data["cost_usd"] == task.cost_usd
    ClientOutput(client).print_record(task)
    ClientOutput(client).print_table(client.tasks.list(), ("id", "cost_usd"))
    assert capsys.readouterr().out.count(text) == 2
    review = TaskReview(task)
    assert text in review.headline.value
    for workflow in (first, second):
        assert format_usd(workflow.cost_usd) in review.attempts.value
    review.close()
    (usage,) = client.usage.list(["day"])
    assert usage.cost_usd == pytest.approx(task.cost_incurred_usd, abs=1e-9)


def test_work_that_was_never_billed_costs_nothing(client: Client, faults: Faults) -> None:
    """Given failures that no vendor bills, then they cost 0, which is not unknown."""
    faults.add(Fault("openai", status=400, times=None))
    nonsense = {"topic": "zzzz qqqq xxyyzz"}
    for run in (
        client.runs.create("llm.generate", {"objective": "x"}, provider="openai"),
        client.runs.create("research.gather", nonsense),
    ):
        run.wait(check=False)
        assert run.status == "failed"
        assert (run.cost_usd, run.cost_incurred_usd) == (0, 0)
        assert run.record.cost_source == "metered"
        assert "unknown" not in render_views(run)
        assert repr(run).endswith("$0>")
        assert {attempt.cost_usd for attempt in run.attempts} == {0}
    wf = Workflow("never")
    bad = wf.add("bad", "research.gather", nonsense)
    wf.add("behind", "llm.generate", objective="Say it", depends_on=[bad])
    flow = client.workflows.submit(wf).wait(check=False)
    assert flow.cost_usd == 0
    assert [node.cost_usd for node in flow.nodes] == [0, 0]
    task = client.tasks.create("A narration about tea", max_cost_usd=1e-7).wait(check=False)
    assert (task.status, task.error.code) == ("failed", "BUDGET_EXCEEDED")
    assert (task.cost_usd, task.cost_incurred_usd) == (0, 0)
    assert repr(task).endswith("$0>")


def test_a_failed_call_costs_the_amount_that_may_be_billed(client: Client, faults: Faults) -> None:
    """Given an unreadable answer, then the failed run shows its cost."""
    faults.mangle("openai", "garbage", times=None)
    run = client.runs.create("llm.generate", {"objective": "x"}, provider="openai")
    run.wait(check=False)
    assert (run.status, run.error.code) == ("failed", "PROVIDER_BAD_RESPONSE")
    assert run.cost_usd == run.cost_incurred_usd == run.attempts[0].cost_usd > 0
    assert run.record.cost_source == "estimated"
