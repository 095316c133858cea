"""Pictures, tables and texts of records."""

import io

import pytest

from toolkit.contract.events import Event
from toolkit.display.progress.event_lines import EventLines
from toolkit.display.records.html import render_facts, render_table
from toolkit.display.text import format_event
from toolkit.display.workflow.layers import lay_out_graph

NASTY = '<script>alert("x")</script>'
AT = "2026-11-20T08:00:00.000Z"


def test_a_cycle_has_no_layout() -> None:
    """Given a cycle, then it is refused rather than drawn wrong."""
    with pytest.raises(ValueError, match="cycle"):
        lay_out_graph({"a": ["b"], "b": ["a"]})


def test_text_from_outside_is_never_markup() -> None:
    """Given a name that is markup, then no table has it raw."""
    assert "<script" not in render_table([{"name": NASTY, NASTY: 1}], ["name", NASTY], NASTY)
    assert "<script" not in render_facts(NASTY, {NASTY: NASTY})


def event(kind: str, **data: object) -> Event:
    """An event of a workflow."""
    return Event.model_validate(
        {"n": 1, "resource_id": "wfl_1", "type": kind, "at": AT, "data": data}
    )


def test_a_line_of_progress_says_what_happened() -> None:
    """Given an event, then its line has node, state, provider, time, cost and error."""
    line = format_event(
        event(
            "node.failed",
            node_id="card",
            provider="openai",
            latency_ms=1234,
            cost_usd=0.002,
            error={"code": "PROVIDER_TIMEOUT", "message": "late"},
        )
    )
    for part in ("✗ card", "failed", "by openai", "1.23 s", "$0.002", "PROVIDER_TIMEOUT: late"):
        assert part in line


def test_lines_are_printed_once_each() -> None:
    """Given the same state twice, then it is told once."""
    told = io.StringIO()
    lines = EventLines(told)
    for _ in range(2):
        lines.add(event("node.running", node_id="a"))
    lines.add(event("node.completed", node_id="a"))
    assert len(told.getvalue().splitlines()) == 2


def test_a_late_line_does_not_cut_a_text() -> None:
    """Given a run that is told to run while its text is shown, then that comes after the text."""
    told = io.StringIO()
    lines = EventLines(told)
    lines.add_text("One ", restarts=False)
    lines.add(event("run.running", provider="openai"))
    lines.add_text("piece.", restarts=False)
    lines.add(event("run.completed", provider="openai"))
    text, running, completed = told.getvalue().splitlines()
    assert text == "One piece."
    assert "running by openai" in running
    assert "completed" in completed


def test_a_new_attempt_is_told_before_its_text() -> None:
    """Given a text that another provider begins anew, then that provider is named before it."""
    told = io.StringIO()
    lines = EventLines(told)
    lines.add_text("One", restarts=False)
    lines.add(event("run.running", provider="google"))
    lines.add_text("Two", restarts=True)
    lines.end_line()
    assert [line[:3] for line in told.getvalue().splitlines()][::2] == ["One", "Two"]


def test_lines_have_no_characters_that_control_a_terminal() -> None:
    """Given a text and an error with such characters, then a terminal is not sent any."""
    stream = io.StringIO()
    lines = EventLines(stream)
    lines.add_text("a\tb\n\x1b]52;c;cGxhbnRlZA==\x07c\r\x9b2J", restarts=True)
    error = {"code": "PROVIDER_ERROR", "message": "d\x1b[2Je"}
    lines.add(event("node.failed", node_id="f\x1b[1m", error=error))
    assert [c for c in stream.getvalue() if not c.isprintable()] == ["\n", "\n", "\n"]
    for words in ("a    b", "]52;c;", "d", "[2Je"):
        assert words in stream.getvalue()
