"""Results in a notebook: what a node made, and records that can be read."""

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.notebooks.shells import NotebookShell, open_notebook_shell
from toolkit import AsyncClient
from toolkit.display.records.media import build_mime_bundle

SETUP = """\
run = client.runs.create("llm.generate", {"objective": "Tides", "max_tokens": 60})
run.wait(progress=False)
draft = Workflow("tides")
facts = draft.add("facts", "research.gather", topic="tidal power")
draft.add("copy", "llm.generate", objective="Tides", depends_on=[facts])
draft.add("card", "composition.layout", title="Tides", depends_on=["copy"])
flow = client.workflows.submit(draft).wait(progress=False)
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookShell]:
    """A shell in which some work has been done."""
    with open_notebook_shell(tmp_path_factory.mktemp("results")) as opened:
        assert opened.run(SETUP) == ""
        yield opened


def show(shell: NotebookShell, expression: str) -> dict[str, str]:
    """Return what a cell would show, by its media types."""
    shell.run(f"shown = {expression}")
    bundle, _ = shell.ip.display_formatter.format(shell.ip.user_ns["shown"])
    return dict(bundle)


def test_a_node_has_what_it_made(shell: NotebookShell) -> None:
    """Given a workflow that is done, then each node has its output, text, artifact and job."""
    flow = shell.ip.user_ns["flow"]
    assert flow["copy"].text == flow["copy"].output["text"] == flow.artifact("copy").text()
    assert flow["facts"].text.startswith("Tidal power")
    assert flow["card"].text is None
    assert flow["card"].artifact.media_type == "image/png"
    assert flow["card"].job.node_id == "card"
    assert (flow["card"].status, flow["card"].depends_on) == ("completed", ["copy"])


async def test_a_node_of_the_async_client_is_awaited(shell: NotebookShell) -> None:
    """Given the async client, then what a node made is awaited."""
    client = AsyncClient.local(shell.ip.user_ns["client"].access.data_dir, sandbox=True)
    try:
        flow = await client.workflows.get(shell.ip.user_ns["flow"].id)
        assert await flow["copy"].text == (await flow["copy"].output)["text"]
        assert (await flow["copy"].artifact).media_type == "text/plain"
    finally:
        await client.aclose()


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("run.attempts", ["minimax", "✓ completed", "$"]),
        ("run.routing", ["candidates", "anthropic", "the default provider"]),
        ("run.events()", ["run.queued", "run.completed"]),
        ("flow.nodes", ["facts", "llm.generate@1", "✓ completed"]),
        ("flow['copy']", ["llm.generate@1", "depends on", "✓ completed"]),
        ("run.record", ["objective: Tides", "input tokens"]),
    ],
)
def test_records_are_readable(shell: NotebookShell, expression: str, told: list[str]) -> None:
    """Given a record or a list of them, then it is shown in lines and as a table, not raw."""
    shown = show(shell, expression)
    for kind in ("text/plain", "text/html"):
        assert [words for words in told if words not in shown[kind]] == []
    assert "<table" in shown["text/html"]
    assert max(map(len, shown["text/plain"].splitlines())) <= 125


def test_lists_tell_runs_apart_and_capabilities_what_they_take(shell: NotebookShell) -> None:
    """Given lists, then runs have their input, capabilities their fields, and both fit the cell."""
    runs, offered = show(shell, "client.runs.list()"), show(shell, "client.capabilities.list()")
    assert "Tides, max tokens: 60" in runs["text/html"]
    assert "objective, context?, system?" in offered["text/html"]
    for shown in (runs, offered):
        assert shown["text/html"].startswith('<div style="overflow-x:auto')


def test_a_text_is_markdown(shell: NotebookShell) -> None:
    """Given a text of a model or a file, then its Markdown is shown as HTML that loads nothing."""
    shown = show(shell, "type(run.text)('# Tides <img src=x>')")
    assert (
        shown["text/html"]
        == build_mime_bundle("text/markdown", b"# Tides <img src=x>", "x")["text/html"]
    )
    assert "<h1>Tides &lt;img src=x&gt;</h1>" in shown["text/html"]
    assert "text/markdown" not in shown


@pytest.mark.parametrize("media_type", ['image/a"onerror="f()', "audio/a'b<c>"])
def test_a_media_type_is_no_markup(media_type: str) -> None:
    """Given a media type that a server made up, then it stays within its attribute."""
    shown = build_mime_bundle(media_type, b"a", "x")["text/html"]
    assert 'onerror="' not in shown
    assert "<c>" not in shown


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_lists_are_tables_of_other_libraries(shell: NotebookShell, library: str) -> None:
    """Given a library for tables, then a list is its table; without it, a line says what to do."""
    runs: Any = shell.ip.user_ns["client"].runs.list()
    method = {"polars": runs.to_polars, "pyarrow": runs.to_arrow}[library]
    try:
        importlib.import_module(library)
    except ModuleNotFoundError:
        with pytest.raises(ImportError, match=f"pip install {library}"):
            method()
        return
    table = method()
    assert table["id"].to_list() if library == "polars" else table["id"].to_pylist()
    again = importlib.import_module(library)
    read = again.DataFrame(runs) if library == "polars" else again.table(runs)
    assert read.shape == table.shape
