"""Tasks: an objective, planned, run, reviewed."""

import pytest

from tests.support.views import render_views
from toolkit import Client, WorkError
from toolkit.cli.output import ClientOutput
from toolkit.display.text import format_event
from toolkit.notebook import TaskReview, WorkflowGraph

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]


def test_a_plan_is_a_dry_run(client: Client) -> None:
    """Given an objective, when planned, then nothing is spent and the estimate is a range."""
    plan = client.plans.create("A social card about tea").record
    assert plan.executable
    assert plan.nodes[-1].capability.startswith("composition.layout")
    assert 0 < plan.estimated_cost_usd.low <= plan.estimated_cost_usd.high
    assert len(client.jobs.list()) == 0


def test_a_budget_too_small_fails_before_anything_is_spent(client: Client) -> None:
    """Given a budget below the plan's least cost, then the task fails and has spent nothing."""
    task = client.tasks.create("A narration about tea", max_cost_usd=0.0000001)
    with pytest.raises(WorkError, match=r"^BUDGET_EXCEEDED:"):
        task.wait()
    assert len(client.jobs.list()) == 0


def test_what_is_missing_is_told_capability_by_capability(
    bare: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given nothing connected, then plan and task say which capability needs which provider."""
    objective = "A social card with a narration about tea, and an image of a kettle"
    plan = bare.plans.create(objective)
    needed = {one.capability: one.any_of for one in plan.missing}
    catalogue = {one.id: one.record.source for one in bare.capabilities.list()}
    for capability, any_of in needed.items():
        assert sorted(any_of) == sorted(catalogue[capability].routing.allowed_connections)
        assert any_of[0] == catalogue[capability].routing.default_provider
    assert {"speech.generate", "image.generate"} <= needed.keys()
    assert set(plan.missing_connections) == {one for any_of in needed.values() for one in any_of}
    assert not plan.executable
    task = bare.tasks.create(objective).wait(check=False)
    assert (task.status, task.missing) == ("blocked", plan.missing)
    told = "speech.generate needs a connection to minimax or elevenlabs"
    assert (task.cost_usd, task.cost_incurred_usd) == (0, 0)
    for one in (plan, task):
        ClientOutput(bare).print_record(one)
        assert told in capsys.readouterr().out
    graph, review = WorkflowGraph(task), TaskReview(task)
    for shown in (
        render_views(plan), render_views(task), format_event(task.events()[-1]),
        graph.headline.value, review.headline.value,
    ):  # fmt: skip
        assert told in shown
    graph.close()
    review.close()
    bare.connections.create("elevenlabs", "environment", "ELEVENLABS_API_KEY")
    left = {one.capability for one in bare.plans.create(objective).missing}
    assert left == needed.keys() - {"speech.generate"}


def test_what_nobody_makes_is_missing_too(client: Client) -> None:
    """Given an objective that no capability meets, then no provider would do."""
    (lacking,) = client.plans.create("A video about tea").missing
    assert (lacking.capability, lacking.any_of) == ("video.generate", [])


def test_what_a_task_holds_beside_its_review(client: Client) -> None:
    """Given a task that is done, then what it cost, its plan and its error are at hand."""
    task = client.tasks.create("A social card about tea").wait()
    plan = client.plans.get(task.plan_id)
    assert (task.objective, task.error) == (plan.objective, None)
    assert task.cost_usd == task.record.cost_usd
    assert task.completed_at > task.created_at
    assert task.artifact_ids.keys() == set(plan.deliverables)
    assert [one.decision for one in task.reviews] == [task.review.decision] == ["pass"]
    assert client.workflows.get(task.workflow_id).task_id == task.id
