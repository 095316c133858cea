"""Completion in a real IPython shell, without the extension: calls, magics and YAML cells."""

import asyncio
import re
import timeit
from collections.abc import Iterator
from functools import partial

import pytest

from tests.notebooks.shells import NotebookShell, open_notebook_shell

MAX_SECONDS = 0.05
NO_BREAK = "\N{NO-BREAK SPACE}"
SETUP = """\
for number in range(3):
    asked = {"objective": f"Line {number} on tides"}
    run = client.runs.create("llm.generate", asked, tags=["tides"])
    run.wait(progress=False)
card = client.runs.create("composition.layout", {"title": "Tea"}).wait(progress=False)
draft = Workflow("tides")
facts = draft.add("facts", "research.gather", topic="tides")
draft.add("text", "llm.generate", objective="Tides", depends_on=[facts])
flow = client.workflows.submit(draft).wait(progress=False)
other = AsyncClient.local()
def clean(table, limit=1):
    return table[:limit]
"""
DRAFT = 'new = Workflow("new")\nnew.add("one", "llm.generate", objective="x")\n'
YAML = "%%workflow\nname: x\nnodes:\n  - id: facts\n    capability: research.gather\n"
ASK = 'client.runs.create("llm.generate", {"objective": "x"}'
LAYOUT = 'client.runs.create("composition.layout", {"title": "x", '

# Each row is a cell and its first completions in their order.
ROWS = [
    ('client.runs.create("', ["image.generate", "research.gather"]),
    ('client.runs.create("llm', ["llm.generate"]),
    ('client.runs.create("generate', ["image.generate", "llm.generate"]),
    ('client.runs.create("llm.generate", {"', ["objective", "context", "system", "max_tokens"]),
    ('client.runs.create("llm.generate", input={"sys', ["system"]),
    (LAYOUT + '"theme": "mi', ["mint", "midnight"]),
    (LAYOUT + '"format": ', ['"png"', '"svg"']),
    (f"{ASK}, prov", ["provider="]),
    (f'{ASK}, provider="', ["openai", "anthropic"]),
    (f"{ASK}, provider=", ['"openai"', '"anthropic"']),
    (f'{ASK}, provider="openai/gpt', ["openai/gpt-6-luna", "openai/gpt-6.1-terra"]),
    (f'{ASK}, only=["anth', ["anthropic"]),
    (f'{ASK}, only=["openai", "google/gem', ["google/gemini-3.8-flash"]),
    (f'{ASK}, ignore="openai/gpt-6-l', ["openai/gpt-6-luna"]),
    (f'{ASK}, optimize_for="', ["cost", "latency", "quality", "balanced"]),
    ('client.capabilities["im', ["image.generate"]),
    ("client.capabilities.llm_generate(", ["objective=", "context="]),
    ('client.capabilities.composition_layout(title="x", theme="li', ["lilac"]),
    ('client.capabilities.llm_generate(objective="x", options={"pro', ["provider"]),
    ('client.capabilities.llm_generate(objective="x", options={"provider": "go', ["google"]),
    ('draft.add("more", "llm', ["llm.generate"]),
    ('draft.add("more", "composition.layout", the', ["theme="]),
    ('draft.add("more", "llm.generate", depends_on=["', ["facts", "text"]),
    ('draft.add("text", "llm.generate", depends_on=["', ["facts"]),
    ('draft.add("more", clean, ', ["table=", "limit=", "depends_on="]),
    ('draft.add("more", clean, table=facts, li', ["limit="]),
    ('draft.add("more", cle', ["clean"]),
    ('draft["', ["facts", "text"]),
    (DRAFT + 'new.add("two", "speech.generate", depends_on=["', ["one"]),
    ('flow["', ["facts", "text"]),
    ('flow.fork("text", overrides={"', ["facts", "text"]),
    ('flow.fork("text", overrides={"text": {"obj', ["objective"]),
    ('client.connections.connect("el', ["elevenlabs"]),
    ('client.usage.list(["d', ["day"]),
    ('client.runs.list(status="comp', ["completed"]),
    ("client.runs.list(min", ["min_cost_usd="]),
    ('client.runs.list(provider="open', ["openai"]),
    ('client.workflows.list(capability="comp', ["composition.layout"]),
    ('client.maps.list(status="que', ["queued"]),
    ('client.runs.list(tag="ti', ["tides"]),
    (f'{ASK}, tags=["ti', ["tides"]),
    ('client.tasks.create("x", planner="', ["rules", "auto", "llm"]),
    ('other.runs.create("llm', ["llm.generate"]),
    ("%%run llm.generate --tag ti", ["tides"]),
    ("%%run ", ["image.generate", "research.gather"]),
    ("%%run llm.generate ", ["objective=", "context="]),
    ("%%run llm.generate --", ["--optimize-for", "--provider"]),
    ("%%run llm.generate --provider goo", ["google"]),
    ("%%run llm.generate --ignore openai/gpt-6-l", ["openai/gpt-6-luna"]),
    ("%%run composition.layout theme=li", ["lilac"]),
    ("%%task --planner r", ["rules"]),
    ("%connect op", ["openai"]),
    ("%connect --sand", ["--sandbox"]),
    ("%connect --client cl", ["client"]),
    ("%capabilities sp", ["speech.generate"]),
    ("%usage pro", ["provider"]),
    ("%%workflow\nna", ["name: "]),
    (YAML + "    in", ["input: "]),
    (YAML + "    input:\n      to", ["topic: "]),
    (YAML + "    input: {lan", ["language: "]),
    (YAML + "  - id: text\n    capability: llm", ["llm.generate"]),
    (YAML + "  - id: text\n    capability: llm.generate\n    depends_on: [", ["facts"]),
    (YAML + "  - id: text\n    depends_on:\n      - f", ["facts"]),
    (
        YAML + "  - id: card\n    capability: composition.layout\n    input:\n      theme: m",
        ["mint"],
    ),
    (YAML + "  - id: t\n    capability: llm.generate\n    options: {provider: anth", ["anthropic"]),
    (YAML + "  - {id: t, capability: voi", ["voice.clone"]),
]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookShell]:
    """A shell with completed work, without the extension."""
    with open_notebook_shell(tmp_path_factory.mktemp("completion")) as opened:
        assert opened.run(SETUP) == ""
        yield opened
        asyncio.run(opened.ip.user_ns["other"].aclose())


@pytest.mark.parametrize(("cell", "offered"), ROWS, ids=[cell[-50:] for cell, _ in ROWS])
def test_completes_a_cell(shell: NotebookShell, cell: str, offered: list[str]) -> None:
    """Given an unfinished cell, then its end is completed by fitting words, and nothing else."""
    texts = [completion.text for completion in shell.complete(cell)]
    assert texts[: len(offered)] == offered
    assert "%alias" not in texts


@pytest.mark.parametrize(
    ("cell", "newest", "about"),
    [
        ('client.runs["', "card", "composition.layout completed: Tea"),
        ('client.workflows.get("', "flow", "completed: tides"),
        ('client.events("', "card", "composition.layout completed: Tea"),
        ('other.runs.get("', "card", "composition.layout completed: Tea"),
    ],
)
def test_completes_ids_of_records(shell: NotebookShell, cell: str, newest: str, about: str) -> None:
    """Given completed work, then its ids are offered with a description, the newest first."""
    first = shell.complete(cell)[0]
    assert first.text == shell.ip.user_ns[newest].id
    assert first.type.replace(NO_BREAK, " ") == about


def test_completes_artifacts_for_a_field(shell: NotebookShell) -> None:
    """Given a field for an artifact, then the artifacts are offered with their kind and size."""
    completions = shell.complete(LAYOUT + '"image": "')
    assert all(completion.text.startswith("art_") for completion in completions)
    assert any(completion.type.startswith("image/png") for completion in completions)


def test_completions_of_fields_show_types_and_defaults(shell: NotebookShell) -> None:
    """Given the fields of an input, then each has its type and its default."""
    completions = shell.complete('client.runs.create("llm.generate", {"')
    types = {item.text: item.type.replace(NO_BREAK, " ") for item in completions}
    assert types["objective"] == "string, required"
    assert types["max_tokens"] == "integer = 1024"


def test_completes_models_of_the_capability(shell: NotebookShell) -> None:
    """Given a provider and a slash, then its models of this kind are offered with their prices."""
    texts = shell.complete(f'{ASK}, provider="runpod/')
    images = shell.complete('client.runs.create("image.generate", {}, provider="runpod/')
    assert {item.text for item in texts}.isdisjoint({item.text for item in images})
    assert texts
    assert images
    haiku = next(iter(shell.complete(f'{ASK}, only=["anthropic/claude-haiku-5')))
    about = haiku.type.replace(NO_BREAK, " ")
    assert re.match(r"[\d.]+/[\d.]+ USD per 1M tokens, batches, images, ", about)


def test_leaves_other_code_to_the_shell(shell: NotebookShell) -> None:
    """Given other code, then the shell's own completion is unchanged."""
    assert "lower" in [completion.text for completion in shell.complete("'x'.low")]
    shell.run("table = {'tides': 1}")
    assert "tides" in [completion.text for completion in shell.complete("table['")]
    assert shell.complete('open("')


def test_completes_without_delay(shell: NotebookShell) -> None:
    """Given each cell above, then it is completed in 50 ms, as the best of three times."""
    times = {
        cell: min(timeit.repeat(partial(shell.complete, cell), number=1, repeat=3))
        for cell in [*dict(ROWS), 'client.runs.get("']
    }
    assert {cell: seconds for cell, seconds in times.items() if seconds > MAX_SECONDS} == {}


def test_completes_without_a_reachable_service(shell: NotebookShell) -> None:
    """Given a client of a server that is down, then completion still returns."""
    shell.run("away = Client('http://127.0.0.1:9', 'sk_live_x')")
    assert timeit.timeit(lambda: shell.complete('away.runs.get("'), number=1) < 2
