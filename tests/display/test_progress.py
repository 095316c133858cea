"""Progress of awaited work: what is known of it, and how that reads."""

from datetime import UTC, datetime, timedelta
from typing import Any

from toolkit.contract.events import Event
from toolkit.contract.tasks import Task
from toolkit.contract.workflows import WorkflowRecord
from toolkit.display.progress.html import render_line, render_progress
from toolkit.display.progress.words import MAX_ROWS, choose_rows, format_end, format_headline
from toolkit.display.progress.work_progress import WorkProgress

BEGIN = datetime(2026, 11, 20, 8, tzinfo=UTC)
NASTY = '<script>alert("x")</script>'


def at(seconds: float) -> datetime:
    """A time since the begin."""
    return BEGIN + timedelta(seconds=seconds)


def make_workflow(depends_on: dict[str, list[str]], **more: Any) -> WorkProgress:
    """A workflow of nodes that were just submitted."""
    nodes = [
        {"id": id, "capability": "llm.generate@1", "depends_on": those}
        for id, those in depends_on.items()
    ]
    record = {"id": "wfl_1", "name": "tides", "nodes": nodes, "created_at": BEGIN, **more}
    work = WorkProgress(WorkflowRecord.model_validate(record))
    tell(work, 0, "workflow.running")
    return work


def tell(work: WorkProgress, seconds: float, kind: str, node: str = "", **data: Any) -> None:
    """Tell of an event at a time."""
    given = {"node_id": node, **data} if node else {"id": work.id, **data}
    work.apply_event(Event(n=1, resource_id=work.id, type=kind, at=at(seconds), data=given))


def run_node(work: WorkProgress, node: str, begin: float, end: float, **data: Any) -> None:
    """Tell of a node that ran."""
    tell(work, begin, "node.running", node)
    tell(work, end, "node.completed", node, cost_usd=0.25, **data)


def test_the_time_left_is_that_of_the_longest_chain() -> None:
    """Given nodes that took 2 s each, then what is left is as long as the longest chain of it."""
    work = make_workflow({"a": [], "b": ["a"], "c": ["b"], "d": ["a"], "e": ["c", "d"]})
    assert "left" not in format_headline(work, at(0))
    run_node(work, "a", 0, 2)
    tell(work, 2, "node.running", "b")
    tell(work, 2, "node.running", "d")
    assert "about 6 s left" in format_headline(work, at(2))
    assert "about 5 s left" in format_headline(work, at(3))


def test_the_time_left_is_that_of_the_pace_where_more_is_to_do() -> None:
    """Given a hundred nodes of which four run at once, then what is left takes 24 turns of 2 s."""
    work = make_workflow({f"n{n}": [] for n in range(100)})
    for n in range(4):
        tell(work, 0, "node.running", f"n{n}")
    for n in range(4):
        tell(work, 2, "node.completed", f"n{n}")
    assert "about 48 s left" in format_headline(work, at(2))


def test_the_line_has_nodes_money_and_time() -> None:
    """Given a budget, then the line says how far the work is, and what it cost of that."""
    work = make_workflow({"a": [], "b": [], "c": []}, options={"max_cost_usd": 1})
    run_node(work, "a", 0, 2)
    tell(work, 2, "node.running", "b", provider="openai")
    for part in ("… tides", "1 of 3 done", "1 running", "1 pending", "3.0 s", "$0.25 of $1"):
        assert part in format_headline(work, at(3))
    first, second, third = choose_rows(work, at(3))
    assert (first.status, first.part, first.seconds) == ("completed", 1, "2.0 s")
    assert first.cost == "$0.25"
    assert (second.part, second.note) == (0.5, "openai")
    assert (third.part, third.seconds) == (0, "")


def test_of_many_nodes_those_that_run_or_failed_are_shown() -> None:
    """Given hundreds of nodes, then there are few rows, and the line counts the others."""
    work = make_workflow({f"n{n}": [] for n in range(300)})
    for n in range(50):
        run_node(work, f"n{n}", 0, 2)
    for n in range(50, 90):
        tell(work, 2, "node.running", f"n{n}")
    error = {"code": "PROVIDER_TIMEOUT", "message": "late"}
    tell(work, 3, "node.failed", "n52", error=error)
    rows = choose_rows(work, at(3))
    assert len(rows) == MAX_ROWS
    assert (rows[0].name, rows[0].note) == ("n52", "PROVIDER_TIMEOUT: late")
    assert {row.status for row in rows[1:]} == {"running"}
    assert "50 of 300 done · 1 failed · 39 running · 210 pending" in format_headline(work, at(3))
    html = render_progress(work, at(3))
    assert html.count("<tr") == MAX_ROWS


def test_what_all_of_it_waits_for_is_said() -> None:
    """Given a workflow that waits for a function, then the line says so until it goes on."""
    work = make_workflow({"a": [], "b": []})
    tell(work, 1, "workflow.running", status_detail="waiting_function")
    assert "2 pending · waiting function · 2.0 s" in format_headline(work, at(2))
    assert format_end(work, at(2)).startswith("… tides goes on, waiting function: 0 of 2 nodes")
    tell(work, 3, "workflow.running")
    assert "waiting" not in format_headline(work, at(3))


def test_one_line_is_left() -> None:
    """Given work that is over, or goes on, then one line says what it has come to."""
    work = make_workflow({"a": [], "b": ["a"]})
    run_node(work, "a", 0, 2)
    assert format_end(work, at(2)) == "… tides goes on: 1 of 2 nodes done, $0.25"
    run_node(work, "b", 2, 3)
    tell(work, 3, "workflow.completed")
    assert format_end(work, at(60)) == "✓ tides completed: 2 nodes in 3 s, $0.5"

    error = {"code": "PROVIDER_TIMEOUT", "message": "late"}
    nodes = [{"id": "a", "capability": "x@1", "status": "failed", "error": error}]
    ended = {"status": "failed", "error": error, "completed_at": at(4), "cost_incurred_usd": 0.5}
    failed = make_workflow({})
    failed.apply_record(
        WorkflowRecord.model_validate(
            {"id": "wfl_1", "name": "tides", "created_at": BEGIN, "nodes": nodes, **ended}
        )
    )
    assert format_end(failed, at(60)) == (
        "✗ tides failed: 0 of 1 node in 4 s, unknown ($0.5 with all attempts);"
        " a: PROVIDER_TIMEOUT: late"
    )


def test_a_task_shows_the_nodes_of_the_workflow_that_it_runs() -> None:
    """Given a task that is tried again, then its rows are the new workflow's, and all is paid."""
    record = {"id": "tsk_1", "objective": "A poem", "created_at": BEGIN}
    work = WorkProgress(Task.model_validate(record))
    assert "planning" in format_headline(work, at(1))
    for id, node in (("wfl_1", "draft"), ("wfl_2", "better")):
        nodes = [{"id": node, "capability": "llm.generate@1"}]
        made = {"id": id, "name": "x", "created_at": BEGIN, "nodes": nodes}
        work.apply_record(WorkflowRecord.model_validate(made))
        run_node(work, node, 0, 1)
        assert [row.name for row in choose_rows(work, at(1))] == [node]
    assert "$0.5" in format_headline(work, at(1))
    asked = {"status": "blocked", "question": "In which language?"}
    work.apply_record(Task.model_validate({**record, **asked}))
    assert format_end(work, at(1)).endswith("; In which language?")


def test_a_text_is_shown_while_it_is_written() -> None:
    """Given a node that writes, then its text is shown until it is over, also if it begins anew."""
    work = make_workflow({"a": []})
    tell(work, 0, "node.running", "a")
    work.add_text("a", "The ti", restarts=False)
    work.add_text("a", "des", restarts=False)
    assert choose_rows(work, at(1))[0].text == "The tides"
    work.add_text("a", "Tides", restarts=True)
    assert "Tides" in render_progress(work, at(1))
    assert "The tides" not in render_progress(work, at(1))
    tell(work, 2, "node.completed", "a")
    assert choose_rows(work, at(1))[0].text == ""


def test_what_comes_from_outside_is_no_markup() -> None:
    """Given names, errors and texts that are markup, then no display has them raw."""
    work = make_workflow({NASTY: []}, name=NASTY)
    tell(work, 0, "node.running", NASTY, provider=NASTY)
    work.add_text(NASTY, NASTY, restarts=False)
    shown = render_progress(work, at(1))
    tell(work, 1, "node.failed", NASTY, error={"code": "X", "message": NASTY})
    shown += render_progress(work, at(2)) + render_line(format_end(work, at(2)))
    assert "&lt;script" in shown
    assert "<script" not in shown
