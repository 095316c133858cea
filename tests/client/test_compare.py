"""Comparisons of two runs, workflows or tasks, and lists as tables of experiments."""

from pathlib import Path

import pytest

from toolkit import AsyncClient, Client, Workflow
from toolkit.contract.errors import RequestError
from toolkit.display.records.text_differences import compare_texts, format_parts
from toolkit.sandbox import Faults


def _write(client: Client, objective: str, **options: object):
    run = client.runs.create("llm.generate", {"objective": objective}, **options)  # type: ignore[arg-type]
    return run.wait(progress=False)


def test_compares_runs_of_two_providers(client: Client) -> None:
    """Given runs of two providers, then input, provider, tags, model and text differ."""
    a = _write(client, "On tides", provider="openai")
    b = _write(client, "On salt", provider="anthropic", tags=["second"])

    comparison = client.compare(a, b.id)
    differing = {
        difference.what: (difference.a, difference.b) for difference in comparison.differences
    }
    assert differing["input.objective"] == ("On tides", "On salt")
    assert differing["provider"] == ("openai", "anthropic")
    assert differing["tags"] == (None, ["second"])
    assert {"model", "text"} <= set(differing)
    assert "status" not in differing
    assert not comparison.is_same
    assert "[-" in comparison.text
    frame = comparison.to_frame().set_index("what")
    assert list(frame.loc["status"]) == ["completed", "completed", False]
    assert frame.loc["cost_usd", "a"] == a.cost_usd


def test_equal_runs_are_the_same(client: Client) -> None:
    """Given two runs of one input and provider, then the comparison finds them the same."""
    a, b = (_write(client, "On tides", provider="openai") for _ in range(2))
    assert client.compare(a, b).is_same
    assert repr(client.compare(a, a)).endswith("the same>")


def test_escapes_markup_in_a_comparison(client: Client) -> None:
    """Given texts with markup, then the HTML has a diff with escaped texts."""
    a = _write(client, "<b>tides</b> " * 12)
    b = _write(client, "<b>salt</b> " * 12)

    page = client.compare(a, b)._repr_html_()
    assert "<b>" not in page
    assert "<del" in page
    assert "<ins" in page
    assert a.id in page
    assert "&lt;b&gt;" in page


def test_compares_workflows_node_by_node(client: Client) -> None:
    """Given a fork, then only its own nodes differ, with their texts."""
    wf = Workflow("letter")
    wf.add("draft", "llm.generate", objective="On ropes")
    wf.add("final", "llm.generate", objective="Sum up", depends_on=["draft"])
    a = client.workflows.submit(wf).wait(progress=False)
    b = a.fork("final", {"final": {"objective": "Sum up for children"}}).wait(progress=False)

    comparison = client.compare(a, b)
    nodes = {difference.node for difference in comparison.differences}
    assert nodes <= {"", "final"}
    assert "final" in nodes
    assert "final · text: " in comparison.text
    frame = comparison.to_frame()
    assert list(frame.columns) == ["node", "what", "a", "b", "differs"]
    assert not frame[frame["node"] == "draft"]["differs"].any()


def test_compares_workflows_with_different_nodes(client: Client) -> None:
    """Given a node that only the second workflow has, then the first column is None."""
    workflows = []
    for name in ("one", "two"):
        wf = Workflow("letter")
        wf.add(name, "llm.generate", objective="On ropes")
        workflows.append(client.workflows.submit(wf).wait(progress=False))

    frame = client.compare(*workflows).to_frame()
    row = frame.set_index(["node", "what"]).loc["two", "input.objective"]
    assert list(row) == [None, "On ropes", True]


def test_compares_tasks(client: Client) -> None:
    """Given two tasks, then the comparison has objective, review, cost and delivered nodes."""
    a = client.tasks.create("A social card about tea", tags=["tea"]).wait(progress=False)
    b = client.tasks.create("A social card about salt", max_cost_usd=2).wait(progress=False)

    comparison = client.compare(a, b.id)
    assert comparison.kind == "tasks"
    facts = {(fact.node, fact.what): (fact.a, fact.b) for fact in comparison.facts}
    assert facts["", "objective"] == ("A social card about tea", "A social card about salt")
    assert facts["", "review.decision"] == ("pass", "pass")
    assert facts["", "constraints.max_cost_usd"] == (None, 2)
    assert facts["", "cost_usd"] == (a.cost_usd, b.cost_usd)
    delivered = a.workflow(a.attempts[(a.final_attempt or 0) - 1].workflow_id)
    assert {node.id for node in delivered.nodes} <= {node for node, _ in facts}
    assert any(fact.node for fact in comparison.differences)
    assert "node" in comparison.to_frame()
    assert client.compare(a, a).is_same


def test_table_of_attempts_has_their_errors(tmp_path: Path) -> None:
    """Given a failed first attempt, then the table has its error code and message."""
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


@pytest.mark.parametrize("ids", [("run_x", "wfl_x"), ("art_x", "art_y")])
def test_rejects_ids_of_other_kinds(client: Client, ids: tuple[str, str]) -> None:
    """Given ids of different or other kinds, then the error lists the comparable kinds."""
    with pytest.raises(RequestError, match="two runs, two workflows or two tasks"):
        client.compare(*ids)


async def test_async_client_compares(tmp_path: Path) -> None:
    """Given the async client, then it compares an id with a run."""
    async with AsyncClient.local(tmp_path, sandbox=True) as client:
        a, b = [
            await (await client.runs.create("llm.generate", {"objective": objective})).wait(
                progress=False
            )
            for objective in ("Tea", "Salt")
        ]
        assert (await client.compare(a.id, b)).differences


def test_compares_long_texts_by_lines() -> None:
    """Given texts too long to compare word by word, then the differences are whole lines."""
    lines = [f"line {n} of many words\n" for n in range(2_000)]
    parts = compare_texts("".join(lines), "".join([*lines[:700], "another line\n", *lines[701:]]))
    assert [part.kind for part in parts] == ["same", "removed", "added", "same"]
    assert "[-line 700 of many words\n-]{+another line\n+}" in format_parts(parts)


def test_table_of_runs_has_inputs_options_and_outputs(client: Client) -> None:
    """Given runs of two capabilities, then inputs, options and outputs have own columns."""
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
