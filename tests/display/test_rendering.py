"""Tables, and the lines of events."""

import io

import pytest

from toolkit.contract.events import Event
from toolkit.display.progress.progress_display import EventLines
from toolkit.display.records.html import render_facts, render_table
from toolkit.display.text import format_event
from toolkit.display.workflow.layers import lay_out_graph

NASTY = '<script>alert("x")</script>'


def test_rejects_a_cycle() -> None:
    """Given a cycle, then it has no layout."""
    with pytest.raises(ValueError, match="cycle"):
        lay_out_graph({"a": ["b"], "b": ["a"]})


def test_tables_escape_text_from_outside() -> None:
    """Given a name that is markup, then tables show it as text."""
    assert "<script" not in render_table([{"name": NASTY, NASTY: 1}], ["name", NASTY], NASTY)
    assert "<script" not in render_facts(NASTY, {NASTY: NASTY})


def event(kind: str, **data: object) -> Event:
    """An event of a workflow."""
    at = "2026-11-20T08:00:00.000Z"
    return Event.model_validate({"n": 1, "resource_id": "w", "type": kind, "at": at, "data": data})


def test_formats_an_event_as_a_line() -> None:
    """Given an event, then its line has the node, state, provider, time, cost and error."""
    error = {"code": "PROVIDER_TIMEOUT", "message": "late"}
    spent = {"provider": "openai", "latency_ms": 1234, "cost_usd": 0.002}
    line = format_event(event("node.failed", node_id="card", error=error, **spent))
    for part in ("✗ card", "failed", "by openai", "1.23 s", "$0.002", "PROVIDER_TIMEOUT: late"):
        assert part in line


def test_prints_a_repeated_state_once() -> None:
    """Given the same state twice, then there is one line."""
    stream = io.StringIO()
    lines = EventLines(stream)
    for _ in range(2):
        lines.add(event("node.running", node_id="a"))
    lines.add(event("node.completed", node_id="a"))
    assert len(stream.getvalue().splitlines()) == 2


def test_prints_a_late_event_after_the_text() -> None:
    """Given an event that arrives amid the text of a run, then its line follows the text."""
    stream = io.StringIO()
    lines = EventLines(stream)
    lines.add_text("One ", restarts=False)
    lines.add(event("run.running", provider="openai"))
    lines.add_text("piece.", restarts=False)
    lines.add(event("run.completed", provider="openai"))
    text, running, completed = stream.getvalue().splitlines()
    assert text == "One piece."
    assert "running by openai" in running
    assert "completed" in completed


def test_prints_a_new_attempt_before_its_text() -> None:
    """Given a text that another provider starts anew, then its line precedes the text."""
    stream = io.StringIO()
    lines = EventLines(stream)
    lines.add_text("One", restarts=False)
    lines.add(event("run.running", provider="google"))
    lines.add_text("Two", restarts=True)
    lines.end_line()
    assert [line[:3] for line in stream.getvalue().splitlines()][::2] == ["One", "Two"]


def test_prints_no_control_characters() -> None:
    """Given a text and an error with control characters, then none of them is printed."""
    stream = io.StringIO()
    lines = EventLines(stream)
    lines.add_text("a\tb\n\x1b]52;c;cGxhbnRlZA==\x07c\r\x9b2J", restarts=True)
    error = {"code": "PROVIDER_ERROR", "message": "d\x1b[2Je"}
    lines.add(event("node.failed", node_id="f\x1b[1m", error=error))
    assert [c for c in stream.getvalue() if not c.isprintable()] == ["\n", "\n", "\n"]
    for words in ("a    b", "]52;c;", "d", "[2Je"):
        assert words in stream.getvalue()
