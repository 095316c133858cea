"""The widgets without a browser: driven by their buttons and traits, as a front end does it."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import ipywidgets
import pytest

from tests.support.timing import PATIENCE_S, wait_until
from toolkit import Client, Workflow
from toolkit.notebook import (
    CapabilityForm,
    ProviderSetup,
    RunTable,
    TaskDashboard,
    TaskReview,
    UsageDashboard,
    WorkflowEditor,
    WorkflowGraph,
)
from toolkit.notebook.widget_base import Panel
from toolkit.sandbox import Faults
from toolkit.vendors import load_vendors

CloseLater = Callable[[Panel], Any]
CANARY = "sk-proj-c0ffee5d41402abc4b2a76b9719d911017c592"


def two_nodes(**options: Any) -> Workflow:
    """A workflow of two nodes, of which the second gets the facts of the first."""
    workflow = Workflow("card")
    minimax = {"provider": "minimax"}
    facts = workflow.add("facts", "research.gather@1", topic="tidal power", options=minimax)
    workflow.add("words", "llm.generate@1", objective="Sum up", depends_on=[facts], options=options)
    return workflow


def rebuild(editor: WorkflowEditor) -> Workflow:
    """Run the Python code of an editor without a client, and return the workflow it builds."""
    code = editor.to_python().replace("client.workflows.submit(wf).wait()", "None")
    names: dict[str, Any] = {}
    exec(code.replace("Client.local(sandbox=True)", "None"), names)
    workflow: Workflow = names["wf"]
    return workflow


def press(panel: Any, button: Any) -> None:
    """Press a button, and wait until its work has ended."""
    button.click()
    assert panel.settle(PATIENCE_S)


@pytest.fixture
def close_later(faults: Faults) -> Iterator[CloseLater]:
    """Return a function that has a widget closed after the test, and waits for its threads."""
    panels: list[Panel] = []

    def keep(panel: Panel) -> Any:
        panels.append(panel)
        return panel

    yield keep
    faults.clear()
    for panel in panels:
        panel.close()
    ours = ("toolkit-widget", "toolkit-feed")
    wait_until(lambda: not any(t.name in ours for t in threading.enumerate()))


def test_a_graph_follows_its_workflow(client: Client, close_later: CloseLater) -> None:
    """Given a submitted workflow, then its graph shows its states, and the details of a node.

    A closed graph keeps its content, as a picture and a table without a live widget.
    """
    seen = set()
    graph = close_later(WorkflowGraph(client.workflows.submit(two_nodes())))
    graph.view.observe(lambda change: seen.add(change["new"]["facts"]["status"]), "states")
    assert graph.settle(PATIENCE_S)
    assert graph.status == "completed"
    assert "completed" in seen
    assert {state["status"] for state in graph.view.states.values()} == {"completed"}
    assert [node["id"] for node in graph.view.graph["nodes"]] == ["facts", "words"]
    assert graph.cancel.disabled
    graph.view.selected = "words"
    assert graph.settle(PATIENCE_S)
    for text in ("llm.generate@1", "Sum up", "Attempts", "minimax", "art_"):
        assert text in graph.details.value
    assert "2 of 2 nodes completed" in repr(graph)
    assert graph.picture().startswith("<svg")
    assert list(graph.table()["status"]) == ["completed"] * 2
    bundle = graph._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "✓ completed" in str(bundle["text/html"])
    press(graph, graph.fork)
    assert graph.workflow.record.forked_from
    graph.close()
    graph.close()
    assert "widget-view" not in str(graph._repr_mimebundle_().keys())


def test_a_graph_retries_and_cancels(
    client: Client, faults: Faults, close_later: CloseLater
) -> None:
    """Given a failed node, when Retry is pressed, then it completes; Cancel ends a hanging node."""
    faults.fail("openai", status=400, times=1)
    graph = close_later(WorkflowGraph(client.workflows.submit(two_nodes(provider="openai"))))
    assert graph.settle(PATIENCE_S)
    assert graph.view.states["words"]["line"] == "✗ failed, PROVIDER_REJECTED"
    graph.retry.click()
    wait_until(lambda: graph.status == "completed")
    assert graph.settle(PATIENCE_S)

    faults.mangle("openai", "hang")
    hung = close_later(WorkflowGraph(client.workflows.submit(two_nodes(provider="openai"))))
    wait_until(lambda: hung.view.states["words"]["status"] == "running")
    press(hung, hung.cancel)
    assert hung.view.states["words"]["status"] == "cancelled"


def test_connects_tests_and_removes_a_provider(
    client: Client, close_later: CloseLater, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given the list of providers, when its buttons are pressed, then connections come and go.

    It shows whether a variable is set, and neither its value nor its length.
    """
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    setup = close_later(ProviderSetup(client))
    vendors = load_vendors()
    connected = [id for id, vendor in vendors.items() if not vendor.is_local]
    assert f"{len(connected)} of {len(vendors)}" in repr(setup)
    press(setup, setup.rows["openai"].remove)
    assert "openai" not in setup.connected
    assert setup.rows["openai"].test.disabled
    setup.rows["openai"].use.click()
    assert setup.name.value == "OPENAI_API_KEY"
    press(setup, setup.connect)
    assert "openai is connected: it serves" in setup.message.value
    press(setup, setup.rows["openai"].test)
    assert "openai: works" in setup.message.value
    setup.name.value = "no name"
    press(setup, setup.connect)
    assert "INVALID_REQUEST" in setup.message.value
    assert "llm.generate" in setup.table()["unlocks"].iloc[0]
    assert CANARY not in setup.snapshot()


def test_shows_whether_a_variable_is_set(
    tmp_path: Any, close_later: CloseLater, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given no sandbox, when a variable is named, then the panel says whether it is set."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with Client.local(tmp_path) as client:
        setup = close_later(ProviderSetup(client))
        setup.rows["openai"].use.click()
        assert "OPENAI_API_KEY: set in this process" in setup.presence.value
        assert "OPENAI_API_KEY" in setup.name.options
        setup.rows["google"].use.click()
        assert "GEMINI_API_KEY: not set" in setup.presence.value


def test_runs_a_capability_from_its_form(client: Client, close_later: CloseLater) -> None:
    """Given a form, when it is filled in and run, then the sound is shown, and faults in place."""
    form = close_later(CapabilityForm(client, "speech.generate@1"))
    press(form, form.start)
    assert "Field required" in form.form.fields["text"].fault.value
    form.form.fields["text"].control.value = "Hello, tide mill."
    press(form, form.preview)
    assert "provider would be minimax" in form.message.value
    press(form, form.start)
    assert form.status == "completed"
    assert "<audio" in form.result.value
    assert not form.start.disabled
    assert form.stop.disabled
    assert list(form.table()["status"]) == ["completed"]


def test_a_form_reads_values_of_each_type(client: Client, close_later: CloseLater) -> None:
    """Given fields of each type, then their values are read back, and invalid JSON is not sent."""
    text = close_later(CapabilityForm(client, "llm.generate"))
    fields = text.form.fields
    fields["objective"].control.value = "Tides as JSON"
    fields["output_schema"].control.value = "{not JSON"
    text.start.click()
    assert "Correct output_schema first" in text.message.value
    fields["output_schema"].control.value = '{"type": "object"}'
    fields["max_tokens"].control.value = 64
    fields["temperature"].control.value = "0.5"
    assert text.form.read_values() == {
        "objective": "Tides as JSON",
        "output_schema": {"type": "object"},
        "max_tokens": 64,
        "temperature": 0.5,
    }
    card = close_later(CapabilityForm(client, "composition.layout"))
    values = {"title": "T", "bullets": ["a", "b"], "theme": "mint", "template": "split"}
    card.form.set_values(values)
    assert card.form.read_values() == values


def test_retries_a_task_with_a_review(client: Client, close_later: CloseLater) -> None:
    """Given a finished task, when a person retries it, then both attempts are side by side."""
    dashboard = close_later(TaskDashboard(client))
    dashboard.objective.value = "A social card about tidal power"
    press(dashboard, dashboard.start)
    review: TaskReview = dashboard.review
    assert review.settle(PATIENCE_S)
    assert dashboard.graph.settle(PATIENCE_S)
    assert dashboard.graph.status == "completed"
    assert "data:image/png;base64," in review.attempts.value
    review.constraints.value = "{not JSON"
    press(review, review.retry)
    assert "must be JSON" in review.message.value
    review.constraints.value = '{"theme": "mint"}'
    review.issues.value = "too pale"
    press(review, review.retry)
    assert review.status == "completed"
    assert list(review.table()["reviewer"]) == ["checks", "person", "checks"]
    assert list(review.table()["attempt"]) == [1, 1, 2]
    for text in ("Attempt 1", "Attempt 2", "too pale", "retry card with"):
        assert text in review.snapshot()
    press(review, review.accept)
    assert "pass" in review.message.value


def test_runs_and_usage_are_compared(client: Client, close_later: CloseLater) -> None:
    """Given runs, then a table sorts them by cost, and the usage is grouped by provider."""
    for text in ("Tea", "Coffee and cake"):
        client.runs.create("llm.generate", {"objective": text}).wait(progress=False)
    table = close_later(RunTable(client.runs.list()))
    table.by.value, table.falling.value = "cost_usd", False
    assert set(table.table()["input"]) >= {"Tea", "Coffee and cake"}
    costs = list(table.table()["cost_usd"].dropna())
    assert costs == sorted(costs)
    assert "aria-sort='ascending'" in table.rows.value
    table.refresh.click()
    usage = close_later(UsageDashboard(client))
    usage.group.value = "provider"
    assert usage.settle(PATIENCE_S)
    assert "minimax" in usage.chart.value
    assert "provider" in usage.table()


def test_answers_the_question_of_a_task(client: Client, close_later: CloseLater) -> None:
    """Given a vague objective, when its question is answered, then the task goes on."""
    task = client.tasks.create("Make it nicer").wait(progress=False)
    review: TaskReview = close_later(TaskReview(task))
    assert review.settle(PATIENCE_S)
    assert task.question
    assert task.question in review.snapshot()
    assert task.question in repr(review)
    assert review.answer.layout.display is None
    press(review, review.resume)
    assert "Answer it before you resume" in review.message.value
    review.answer.value = "A poem about the tides"
    press(review, review.resume)
    assert review.status == "completed"
    assert "Attempt 1" in review.snapshot()


def test_shows_the_missing_capability_with_a_hint(client: Client, close_later: CloseLater) -> None:
    """Given a task without a capability for it, then a hint is shown, and nothing to review."""
    task = client.tasks.create("A video about <b>tides</b>").wait(progress=False)
    review = close_later(TaskReview(task))
    assert review.settle(PATIENCE_S)
    assert "video.generate is not available here" in review.snapshot()
    assert "Install a plugin" in review.snapshot()
    assert "<b>tides" not in review.snapshot()
    assert review.accept.disabled
    assert review.answer.layout.display == "none"


def test_accepts_an_earlier_attempt(client: Client, close_later: CloseLater) -> None:
    """Given two attempts, when a person chooses the first and passes it, then it is delivered."""
    task = client.tasks.create("A poem about the tides").wait(progress=False)
    first = task.final_artifact_id
    task.submit_review("retry", issues=["Say more of the moon."]).wait(progress=False)
    review = close_later(TaskReview(task))
    assert review.settle(PATIENCE_S)
    assert [n for _, n in review.attempt.options] == [1, 2]
    review.attempt.value = 1
    press(review, review.accept)
    assert (task.final_attempt, task.final_artifact_id) == (1, first)
    assert "Attempt 1 ★ best ✓ delivered" in review.snapshot()
    assert review.table()["score"].isna().sum() == 2
    assert "pass</b> by person" in review.snapshot()


def test_offers_no_retry_after_the_last(client: Client, close_later: CloseLater) -> None:
    """Given a task with no retry left, then a person can only pass or fail it."""
    task = client.tasks.create("A poem about the tides").wait(progress=False)
    for issue in ("Say more of the moon.", "Say less of the moon."):
        task.submit_review("retry", issues=[issue]).wait(progress=False)
    review = close_later(TaskReview(task))
    assert review.settle(PATIENCE_S)

    assert review.retry.disabled
    assert review.node.disabled
    assert not review.accept.disabled
    assert not review.reject.disabled


def test_previews_a_plan(client: Client, close_later: CloseLater) -> None:
    """Given the dashboard, when a plan is previewed, then unknown words are marked."""
    dashboard = close_later(TaskDashboard(client, "A card about tides. Then zorble the blips."))
    press(dashboard, dashboard.preview)
    assert "<mark" in dashboard.planned.value
    assert "is not understood" in dashboard.planned.value
    dashboard.objective.value = "A card about tides"
    press(dashboard, dashboard.preview)
    assert "<svg" in dashboard.planned.value


def test_builds_a_workflow_by_forms(client: Client, close_later: CloseLater) -> None:
    """Given an editor, when nodes are added, joined and filled in, then it is checked and runs.

    Its faults are the faults of the service; its Python code builds the same workflow.
    """
    editor = close_later(WorkflowGraph.edit(client))
    assert [fault.path for fault in editor.faults] == ["nodes"]
    for name, capability in (("facts", "research.gather@1"), ("card", "composition.layout@1")):
        editor.new_id.value, editor.capability.value = name, capability
        editor.add.click()
    assert {fault.message for fault in editor.faults} == {"Field required"}
    assert editor.submit.disabled
    assert "Field required" in editor.form.fields["title"].fault.value
    editor.form.fields["title"].control.value = "Tides"
    editor.view.selected = "facts"
    editor.form.fields["topic"].control.value = "tides"
    assert editor.faults == []
    editor.depends_on.value = ["card"]
    assert [fault.message for fault in editor.faults] == ["a cycle: facts → card → facts"]
    editor.depends_on.value = []
    assert rebuild(editor).to_dict()["nodes"] == editor.nodes
    editor.shape.value = "json"
    assert "research.gather@1" in editor.exported.value
    press(editor, editor.submit)
    assert editor.graph.settle(PATIENCE_S)
    assert editor.graph.status == "completed"
    editor.view.selected = "card"
    editor.remove.click()
    assert list(editor.table()["id"]) == ["facts"]
    changed = close_later(WorkflowEditor(client, two_nodes()))
    assert changed.workflow().to_dict()["nodes"] == two_nodes().to_dict()["nodes"]


@pytest.mark.parametrize(
    "node_id", [" a b ", "Tee-für-茶-🍵", ("a step of many " * 20)[:200], "1", "a'\"\\", "<b>"]
)
def test_the_editor_keeps_unusual_ids(
    client: Client, close_later: CloseLater, node_id: str
) -> None:
    """Given an unusual id, when it is typed, then it stays the same everywhere."""
    editor = close_later(WorkflowEditor(client))
    editor.capability.value = "composition.layout@1"
    editor.new_id.set_state({"value": node_id})
    editor.add.click()
    assert editor.selected == node_id
    editor.form.set_values({"title": "Tea", "width": 300, "height": 200})
    editor.new_id.set_state({"value": "after"})
    editor.add.click()
    editor.form.set_values({"title": "Two", "width": 300, "height": 200})
    assert [node["id"] for node in editor.nodes] == [node_id, "after"]
    assert editor.depends_on.value == (node_id,)
    assert editor.faults == []
    assert json.loads(editor.to_json())["nodes"][1]["depends_on"] == [node_id]
    assert rebuild(editor).to_dict()["nodes"] == editor.nodes
    press(editor, editor.submit)
    assert editor.graph.settle(PATIENCE_S)
    editor.graph.view.selected = node_id
    assert editor.graph.settle(PATIENCE_S)
    assert "completed" in editor.graph.details.value
    editor.view.selected = node_id
    editor.remove.click()
    assert [(node["id"], node["depends_on"]) for node in editor.nodes] == [("after", [])]


def test_clears_a_key_in_each_text_field(client: Client, close_later: CloseLater) -> None:
    """Given a key that is pasted into a text field, then it is cleared at once."""
    task = client.tasks.create("A line about tides").wait(progress=False, check=False)
    editor = WorkflowEditor(client, two_nodes())
    editor.view.selected = "words"
    form = CapabilityForm(client, "llm.generate@1")
    panels = [ProviderSetup(client), form, TaskReview(task), TaskDashboard(client), editor]
    controls = [control for panel in panels for control in walk_controls(close_later(panel))]
    texts = [text for text in controls if isinstance(text, ipywidgets.Text | ipywidgets.Textarea)]
    assert len(texts) > 12
    for control in texts:
        control.set_state({"value": CANARY})
        assert control.value == ""
    assert all(panel.settle(PATIENCE_S) for panel in panels)
    state = ipywidgets.Widget.get_manager_state()  # as a saved notebook has it
    assert CANARY[:12] not in json.dumps(state, default=str)


def walk_controls(box: ipywidgets.Box) -> Iterator[ipywidgets.Widget]:
    """Yield each control of a box."""
    for child in box.children:
        yield child
        if isinstance(child, ipywidgets.Box):
            yield from walk_controls(child)
