"""Two pieces of work beside each other, and lists as tables of experiments."""

from pathlib import Path

import pytest

from toolkit import AsyncClient, Client, Workflow
from toolkit.contract.errors import RequestError
from toolkit.display.records.text_differences import compare_texts, format_parts
from toolkit.sandbox import Faults


def _write(client: Client, objective: str, **options: object):
    made = client.runs.create("llm.generate", {"objective": objective}, **options)  # type: ignore[arg-type]
    return made.wait(progress=False)


def test_two_runs_differ_in_what_was_asked_and_who_served(client: Client) -> None:
    """Given runs of two providers, then input, route, text and cost are told apart."""
    a = _write(client, "On tides", provider="openai")
    b = _write(client, "On salt", provider="anthropic", tags=["second"])

    found = client.compare(a, b.id)
    differing = {one.what: (one.a, one.b) for one in found.differences}
    assert differing["input.objective"] == ("On tides", "On salt")
    assert differing["provider"] == ("openai", "anthropic")
    assert differing["tags"] == (None, ["second"])
    assert {"model", "text"} <= set(differing)
    assert "status" not in differing
    assert not found.is_same
    assert "[-" in found.text
    frame = found.to_frame().set_index("what")
    assert list(frame.loc["status"]) == ["completed", "completed", False]
    assert frame.loc["cost_usd", "a"] == a.cost_usd


def test_equal_runs_differ_in_no_more_than_time(client: Client) -> None:
    """Given the same question to the same provider twice, then nothing differs that matters."""
    a, b = (_write(client, "On tides", provider="openai") for _ in range(2))
    assert client.compare(a, b).is_same
    assert repr(client.compare(a, a)).endswith("the same>")


def test_a_comparison_shows_what_differs_and_no_markup(client: Client) -> None:
    """Given texts with markup, then the cell has a table and a diff, all of it escaped."""
    a = _write(client, "<b>tides</b> " * 12)
    b = _write(client, "<b>salt</b> " * 12)

    shown = client.compare(a, b)._repr_html_()
    assert "<b>" not in shown
    assert "<del" in shown
    assert "<ins" in shown
    assert a.id in shown
    assert "&lt;b&gt;" in shown


def test_workflows_are_compared_node_by_node(client: Client) -> None:
    """Given a fork, then its own nodes differ, what it kept does not, and texts are beside."""
    wf = Workflow("letter")
    wf.add("draft", "llm.generate", objective="On ropes")
    wf.add("final", "llm.generate", objective="Sum up", depends_on=["draft"])
    a = client.workflows.submit(wf).wait(progress=False)
    b = a.fork("final", {"final": {"objective": "Sum up for children"}}).wait(progress=False)

    found = client.compare(a, b)
    nodes = {one.node for one in found.differences}
    assert nodes <= {"", "final"}
    assert "final" in nodes
    assert "final · text: " in found.text
    frame = found.to_frame()
    assert list(frame.columns) == ["node", "what", "a", "b", "differs"]
    assert not frame[frame["node"] == "draft"]["differs"].any()


def test_a_node_that_only_one_has(client: Client) -> None:
    """Given workflows of different nodes, then what the other has not is empty there."""
    made = []
    for name in ("one", "two"):
        wf = Workflow("letter")
        wf.add(name, "llm.generate", objective="On ropes")
        made.append(client.workflows.submit(wf).wait(progress=False))

    frame = client.compare(*made).to_frame()
    (row,) = frame[(frame["node"] == "two") & (frame["what"] == "input.objective")].to_dict(
        "records"
    )
    assert (row["a"], row["b"], row["differs"]) == (None, "On ropes", True)


def test_tasks_are_compared_by_what_they_deliver(client: Client) -> None:
    """Given two tasks, then objective, verdict and cost are compared, and the nodes of both."""
    a = client.tasks.create("A social card about tea", tags=["tea"]).wait(progress=False)
    b = client.tasks.create("A social card about salt", max_cost_usd=2).wait(progress=False)

    found = client.compare(a, b.id)
    assert found.kind == "tasks"
    facts = {(one.node, one.what): (one.a, one.b) for one in found.facts}
    assert facts["", "objective"] == ("A social card about tea", "A social card about salt")
    assert facts["", "review.decision"] == ("pass", "pass")
    assert facts["", "constraints.max_cost_usd"] == (None, 2)
    assert facts["", "cost_usd"] == (a.cost_usd, b.cost_usd)
    delivered = a.workflow(a.attempts[(a.final_attempt or 0) - 1].workflow_id)
    assert {node.id for node in delivered.nodes} <= {node for node, _ in facts}
    assert any(one.node for one in found.differences)
    assert "node" in found.to_frame()
    assert client.compare(a, a).is_same


def test_a_table_of_attempts_tells_their_errors(tmp_path: Path) -> None:
    """Given a call that a vendor refused before it answered, then its code and message stand."""
    faults = Faults()
    faults.fail("openai", status=503, times=1)
    with Client.local(tmp_path, faults=faults) as client:
        run = _write(client, "On tides", provider="openai")
        frame = run.attempts.to_frame()
        assert frame["error.code"][0] == "PROVIDER_UNAVAILABLE"
        assert frame["error.code"].isna()[1]
        assert "503" in frame["error.message"][0]
        fine = _write(client, "On salt", provider="anthropic").attempts.to_frame()
        assert list(fine["error.code"]) == [None]
        assert client.runs.list().to_frame()["error.code"].isna().all()


def test_what_cannot_be_compared_is_refused(client: Client) -> None:
    """Given a run and something else, then the message says what can be compared."""
    a = _write(client, "On tides")
    with pytest.raises(RequestError, match="two runs, two workflows or two tasks"):
        client.compare(a, "wfl_x")
    with pytest.raises(RequestError, match="two tasks"):
        client.compare("art_x", "art_y")


async def test_the_async_client_compares_too(tmp_path: Path) -> None:
    """Given the async client, then it compares by ids as well."""
    async with AsyncClient.local(tmp_path, sandbox=True) as client:
        a, b = [
            await (await client.runs.create("llm.generate", {"objective": one})).wait(
                progress=False
            )
            for one in ("Tea", "Salt")
        ]
        assert (await client.compare(a.id, b)).differences


def test_long_texts_are_compared_by_lines() -> None:
    """Given texts too long to compare word by word, then lines that differ are found."""
    lines = [f"line {n} of many words\n" for n in range(2_000)]
    parts = compare_texts("".join(lines), "".join([*lines[:700], "another line\n", *lines[701:]]))
    assert [part.kind for part in parts] == ["same", "removed", "added", "same"]
    assert "[-line 700 of many words\n-]{+another line\n+}" in format_parts(parts)


def test_a_list_of_runs_has_what_each_was_given_and_made(client: Client) -> None:
    """Given runs of two capabilities, then inputs, options and outputs are columns of their own."""
    _write(client, "On tides", provider="openai", tags=["first"])
    card = {"title": "Tea", "width": 300, "height": 200}
    client.runs.create("composition.layout", card).wait(progress=False)

    frame = client.runs.list().to_frame().set_index("capability")
    assert frame.loc["llm.generate@1", "input.objective"] == "On tides"
    assert frame.loc["llm.generate@1", "options.provider"] == "openai"
    assert "tides" in frame.loc["llm.generate@1", "output.text"].lower()
    assert frame.loc["llm.generate@1", "tags"] == ["first"]
    assert frame.loc["composition.layout@1", "input.width"] == 300
    assert "options.deadline_s" not in frame
    assert {"id", "note", "error.code"} <= set(frame.columns)
