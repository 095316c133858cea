"""Progress of awaited work: its state, and its wording."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

from rich.console import Console

from toolkit.contract.events import Event, PieceKind, TextDelta, TextPiece, ToolCallPart
from toolkit.contract.tasks import Task
from toolkit.contract.workflows import WorkflowRecord
from toolkit.display.progress.html import render_line, render_progress, render_thoughts
from toolkit.display.progress.terminal import render_work
from toolkit.display.progress.words import MAX_ROWS, choose_rows, format_end, format_headline
from toolkit.display.progress.work_progress import WorkProgress

BEGIN = datetime(2026, 11, 20, 8, tzinfo=UTC)
NASTY = '<script>alert("x")</script>'


def at(seconds: float) -> datetime:
    """A time in seconds after the beginning."""
    return BEGIN + timedelta(seconds=seconds)


def make_piece(
    text: str,
    node: str,
    kind: PieceKind = "text",
    *,
    restarts: bool = False,
    call: ToolCallPart | None = None,
) -> TextPiece:
    """A piece of an answer that a node writes."""
    delta = TextDelta(
        resource_id="wfl_1", job_id="", node_id=node, attempt=1, text="", kind=kind, tool_call=call
    )
    return TextPiece.of(delta, text, restarts=restarts)


def make_workflow(depends_on: dict[str, list[str]], **fields: Any) -> WorkProgress:
    """A workflow of nodes that were just submitted."""
    nodes = [
        {"id": id, "capability": "llm.generate@1", "depends_on": upstream}
        for id, upstream in depends_on.items()
    ]
    record = {"id": "wfl_1", "name": "tides", "nodes": nodes, "created_at": BEGIN, **fields}
    work = WorkProgress(WorkflowRecord.model_validate(record))
    report(work, 0, "workflow.running")
    return work


def report(work: WorkProgress, seconds: float, kind: str, node: str = "", **data: Any) -> None:
    """Report an event at a time."""
    data |= {"node_id": node} if node else {"id": work.id}
    work.apply_event(Event(n=1, resource_id=work.id, type=kind, at=at(seconds), data=data))


def run_node(work: WorkProgress, node: str, begin: float, end: float, **data: Any) -> None:
    """Report that a node started and completed."""
    report(work, begin, "node.running", node)
    report(work, end, "node.completed", node, cost_usd=0.25, **data)


def test_estimates_the_time_left_by_the_longest_chain() -> None:
    """Given nodes that took 2 s each, then the estimate is the time of the longest chain left."""
    work = make_workflow({"a": [], "b": ["a"], "c": ["b"], "d": ["a"], "e": ["c", "d"]})
    assert "left" not in format_headline(work, at(0))
    run_node(work, "a", 0, 2)
    report(work, 2, "node.running", "b")
    report(work, 2, "node.running", "d")
    assert "about 6 s left" in format_headline(work, at(2))
    assert "about 5 s left" in format_headline(work, at(3))


def test_estimates_the_time_left_by_the_pace() -> None:
    """Given a hundred nodes, four at a time, then the rest takes 24 turns of 2 s."""
    work = make_workflow({f"n{n}": [] for n in range(100)})
    for n in range(4):
        report(work, 0, "node.running", f"n{n}")
    for n in range(4):
        report(work, 2, "node.completed", f"n{n}")
    assert "about 48 s left" in format_headline(work, at(2))


def test_headline_has_nodes_money_and_time() -> None:
    """Given a budget, then the line shows the progress, and the cost as part of the budget."""
    work = make_workflow({"a": [], "b": [], "c": []}, options={"max_cost_usd": 1})
    run_node(work, "a", 0, 2)
    report(work, 2, "node.running", "b", provider="openai")
    for part in ("… tides", "1 of 3 done", "1 running", "1 pending", "3.0 s", "$0.25 of $1"):
        assert part in format_headline(work, at(3))
    first, second, third = choose_rows(work, at(3))
    assert (first.status, first.part, first.seconds) == ("completed", 1, "2.0 s")
    assert first.cost == "$0.25"
    assert (second.part, second.note) == (0.5, "openai")
    assert (third.part, third.seconds) == (0, "")


def test_shows_running_and_failed_nodes_of_many() -> None:
    """Given hundreds of nodes, then there are few rows, and the line counts the others."""
    work = make_workflow({f"n{n}": [] for n in range(300)})
    for n in range(50):
        run_node(work, f"n{n}", 0, 2)
    for n in range(50, 90):
        report(work, 2, "node.running", f"n{n}")
    error = {"code": "PROVIDER_TIMEOUT", "message": "late"}
    report(work, 3, "node.failed", "n52", error=error)
    rows = choose_rows(work, at(3))
    assert len(rows) == MAX_ROWS
    assert (rows[0].name, rows[0].note) == ("n52", "PROVIDER_TIMEOUT: late")
    assert {row.status for row in rows[1:]} == {"running"}
    assert "50 of 300 done · 1 failed · 39 running · 210 pending" in format_headline(work, at(3))
    html = render_progress(work, at(3))
    assert html.count("<tr") == MAX_ROWS


def test_headline_says_that_work_waits_for_a_function() -> None:
    """Given a workflow that waits for a function, then the line says so until it goes on."""
    work = make_workflow({"a": [], "b": []})
    report(work, 1, "workflow.running", status_detail="waiting_function")
    assert "2 pending · waiting function · 2.0 s" in format_headline(work, at(2))
    assert format_end(work, at(2)).startswith("… tides goes on, waiting function: 0 of 2 nodes")
    report(work, 3, "workflow.running")
    assert "waiting" not in format_headline(work, at(3))


def test_leaves_one_line_at_the_end() -> None:
    """Given work that ended or goes on, then one line sums it up."""
    work = make_workflow({"a": [], "b": ["a"]})
    run_node(work, "a", 0, 2)
    assert format_end(work, at(2)) == "… tides goes on: 1 of 2 nodes done, $0.25"
    run_node(work, "b", 2, 3)
    report(work, 3, "workflow.completed")
    assert format_end(work, at(60)) == "✓ tides completed: 2 nodes in 3 s, $0.5"

    error = {"code": "PROVIDER_TIMEOUT", "message": "late"}
    nodes = [{"id": "a", "capability": "x@1", "status": "failed", "error": error}]
    end = {"status": "failed", "error": error, "completed_at": at(4), "cost_incurred_usd": 0.5}
    record = {"id": "wfl_1", "name": "tides", "created_at": BEGIN, "nodes": nodes, **end}
    failed = make_workflow({})
    failed.apply_record(WorkflowRecord.model_validate(record))
    assert format_end(failed, at(60)) == (
        "✗ tides failed: 0 of 1 node in 4 s, unknown ($0.5 with all attempts);"
        " a: PROVIDER_TIMEOUT: late"
    )


def test_a_task_shows_the_nodes_of_its_current_workflow() -> None:
    """Given a task that is tried again, then it shows the new workflow's nodes and all costs."""
    record = {"id": "tsk_1", "objective": "A poem", "created_at": BEGIN}
    work = WorkProgress(Task.model_validate(record))
    assert "planning" in format_headline(work, at(1))
    for id, node in (("wfl_1", "draft"), ("wfl_2", "better")):
        nodes = [{"id": node, "capability": "llm.generate@1"}]
        workflow = {"id": id, "name": "x", "created_at": BEGIN, "nodes": nodes}
        work.apply_record(WorkflowRecord.model_validate(workflow))
        run_node(work, node, 0, 1)
        assert [row.name for row in choose_rows(work, at(1))] == [node]
    assert "$0.5" in format_headline(work, at(1))
    blocked = {**record, "status": "blocked", "question": "In which language?"}
    work.apply_record(Task.model_validate(blocked))
    assert format_end(work, at(1)).endswith("; In which language?")


def test_shows_a_text_while_it_is_written() -> None:
    """Given a node that writes a text, then the text is shown until the node ends."""
    work = make_workflow({"a": []})
    report(work, 0, "node.running", "a")
    work.add_piece(make_piece("The ti", "a"))
    work.add_piece(make_piece("des", "a"))
    assert choose_rows(work, at(1))[0].text == "The tides"
    work.add_piece(make_piece("Tides", "a", restarts=True))
    assert "Tides" in render_progress(work, at(1))
    assert "The tides" not in render_progress(work, at(1))
    report(work, 2, "node.completed", "a")
    assert choose_rows(work, at(1))[0].text == ""


def test_shows_reasoning_folded_and_tool_calls_by_name() -> None:
    """Given reasoning and a tool call, then the fold stays after the end, and the call does not."""
    work = make_workflow({"a": []})
    report(work, 0, "node.running", "a")
    work.add_piece(make_piece("Hm", "a", "reasoning"))
    work.add_piece(make_piece(".", "a", "reasoning"))
    work.add_piece(make_piece("Let me look.", "a"))
    for index, cut in ((0, '{"city": "R'), (1, "{}"), (0, 'ome"}')):
        call = ToolCallPart(index=index, id="call", name=f"tool{index}")
        work.add_piece(make_piece(cut, "a", "tool_call", call=call))
    fold = render_thoughts(work)
    assert fold.startswith("<details")
    assert "<summary>Reasoning of a</summary>" in fold
    assert ">Hm.<" in fold
    assert choose_rows(work, at(1))[0].text == 'Let me look.\ntool0 {"city": "Rome"}\ntool1 {}'
    again = ToolCallPart(index=0, id="call", name="again")
    work.add_piece(make_piece("{}", "a", "tool_call", call=again, restarts=True))
    work.add_piece(make_piece("Aha", "a", "reasoning", restarts=True))
    assert choose_rows(work, at(1))[0].text == "Let me look.\nagain {}"
    report(work, 2, "node.completed", "a")
    assert choose_rows(work, at(2))[0].text == ""
    assert ">Aha<" in render_thoughts(work)
    report(work, 3, "node.queued", "a")
    assert render_thoughts(work) == ""


def test_a_terminal_dims_reasoning() -> None:
    """Given reasoning, then a terminal shows it dimmed until text comes, or the node is over."""
    work = make_workflow({"a": []})
    report(work, 0, "node.running", "a")
    work.add_piece(make_piece("Hm.", "a", "reasoning"))

    def render() -> str:
        stream = StringIO()
        Console(file=stream, force_terminal=True, width=100).print(render_work(work, at(1)))
        return stream.getvalue()

    assert "\x1b[2ma: Hm." in render()
    work.add_piece(make_piece("Tides", "a"))
    assert "a: Tides" in render()
    assert "Hm." not in render()
    report(work, 2, "node.completed", "a")
    assert "Hm." not in render()


def test_progress_escapes_text_from_outside() -> None:
    """Given names, errors and texts that are markup, then they are shown as text."""
    work = make_workflow({NASTY: []}, name=NASTY)
    report(work, 0, "node.running", NASTY, provider=NASTY)
    work.add_piece(make_piece(NASTY, NASTY))
    work.add_piece(make_piece(NASTY, NASTY, "reasoning"))
    html = render_progress(work, at(1)) + render_thoughts(work)
    report(work, 1, "node.failed", NASTY, error={"code": "X", "message": NASTY})
    html += render_progress(work, at(2)) + render_line(format_end(work, at(2)))
    assert "&lt;script" in html
    assert "<script" not in html
