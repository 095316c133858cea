"""Results in a notebook: the outputs of nodes, and readable records."""

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
    """A shell with completed work."""
    with open_notebook_shell(tmp_path_factory.mktemp("results")) as opened:
        assert opened.run(SETUP) == ""
        yield opened


def show(shell: NotebookShell, expression: str) -> dict[str, str]:
    """Return the display of an expression, by its media types."""
    shell.run(f"shown = {expression}")
    bundle, _ = shell.ip.display_formatter.format(shell.ip.user_ns["shown"])
    return dict(bundle)


def test_a_node_has_its_output_and_artifact(shell: NotebookShell) -> None:
    """Given a completed workflow, then each node has its output, text, artifact and job."""
    flow = shell.ip.user_ns["flow"]
    assert flow["copy"].text == flow["copy"].output["text"] == flow.artifact("copy").text()
    assert flow["facts"].text.startswith("Tidal power")
    assert flow["card"].text is None
    assert flow["card"].artifact.media_type == "image/png"
    assert flow["card"].job.node_id == "card"
    assert (flow["card"].status, flow["card"].depends_on) == ("completed", ["copy"])


async def test_awaits_the_output_of_an_async_node(shell: NotebookShell) -> None:
    """Given the async client, then a node's output and artifact are awaited."""
    client = AsyncClient.local(shell.ip.user_ns["client"].access.data_dir, sandbox=True)
    try:
        flow = await client.workflows.get(shell.ip.user_ns["flow"].id)
        assert await flow["copy"].text == (await flow["copy"].output)["text"]
        assert (await flow["copy"].artifact).media_type == "text/plain"
    finally:
        await client.aclose()


@pytest.mark.parametrize(
    ("expression", "parts"),
    [
        ("run.attempts", ["minimax", "✓ completed", "$"]),
        ("run.routing", ["candidates", "anthropic", "the default provider"]),
        ("run.events()", ["run.queued", "run.completed"]),
        ("flow.nodes", ["facts", "llm.generate@1", "✓ completed"]),
        ("flow['copy']", ["llm.generate@1", "depends on", "✓ completed"]),
        ("run.record", ["objective: Tides", "input tokens"]),
    ],
)
def test_shows_records_as_lines_and_tables(
    shell: NotebookShell, expression: str, parts: list[str]
) -> None:
    """Given a record or a list of records, then it is shown in lines and as a table."""
    bundle = show(shell, expression)
    for kind in ("text/plain", "text/html"):
        assert [words for words in parts if words not in bundle[kind]] == []
    assert "<table" in bundle["text/html"]
    assert max(map(len, bundle["text/plain"].splitlines())) <= 125


def test_lists_show_inputs_and_fields(shell: NotebookShell) -> None:
    """Given lists, then runs have their input, capabilities their fields, and both fit the cell."""
    runs, offered = show(shell, "client.runs.list()"), show(shell, "client.capabilities.list()")
    assert "Tides, max tokens: 60" in runs["text/html"]
    assert "objective, context?, system?" in offered["text/html"]
    for bundle in (runs, offered):
        assert bundle["text/html"].startswith('<div style="overflow-x:auto')


def test_shows_markdown_as_safe_html(shell: NotebookShell) -> None:
    """Given a text of a model or a file, then its Markdown is shown as HTML that loads nothing."""
    bundle = show(shell, "type(run.text)('# Tides <img src=x>')")
    file = build_mime_bundle("text/markdown", b"# Tides <img src=x>", "x")
    assert bundle["text/html"] == file["text/html"]
    assert "<h1>Tides &lt;img src=x&gt;</h1>" in bundle["text/html"]
    assert "text/markdown" not in bundle


@pytest.mark.parametrize("media_type", ['image/a"onerror="f()', "audio/a'b<c>"])
def test_escapes_a_media_type(media_type: str) -> None:
    """Given a hostile media type of a server, then it stays within its attribute."""
    html = build_mime_bundle(media_type, b"a", "x")["text/html"]
    assert 'onerror="' not in html
    assert "<c>" not in html


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_lists_convert_to_tables_of_other_libraries(shell: NotebookShell, library: str) -> None:
    """Given a library for tables, then a list is its table; otherwise the error names it."""
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
