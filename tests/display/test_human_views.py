"""Views of records for people in a shell: facts and tables, never the text of a Python object."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click import Command
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from tests.conftest import Server
from tests.contract.conftest import read_key, sign_up_client
from toolkit import Client, Workflow
from toolkit.cli import app
from toolkit.settings import Settings

# As `str` writes a dictionary, a list of them, and what stands for nothing.
PYTHON = ("{'", "[{", "['", "{}", "None", "True", "False")
AREAS = (
    "agents", "artifacts", "compute", "connections", "endpoints", "jobs", "plans", "runs",
    "storage", "tasks", "templates", "workflows",
)  # fmt: skip


@pytest.fixture
def client(
    server: Server, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    """A caller of a sandbox in which something of everything was made, well and badly."""
    monkeypatch.chdir(tmp_path)
    Path(".toolkit").symlink_to(settings.data_dir)  # for what its operator is shown
    with sign_up_client(server.url) as client:
        monkeypatch.setenv("TOOLKIT_BASE_URL", server.url)
        key = read_key(client)
        monkeypatch.setenv("TOOLKIT_API_KEY", key)
        for provider in client.providers.list():
            client.connections.create(
                provider.record.id, "environment", provider.record.conventional_variable
            )
        fill(client)
        yield client


def fill(client: Client) -> None:
    """Make something of everything."""
    client.runs.create("llm.generate", {"objective": "Tea"}, max_cost_usd=0.5).wait(progress=False)
    client.runs.create("research.gather", {"topic": "qqqzzz"}).wait(progress=False, check=False)
    flow = Workflow("w", max_retries=1)
    facts = flow.add("facts", "research.gather", topic="Tea")
    flow.add("card", "composition.layout", title="Tea", depends_on=[facts])
    flow.add("lost", "research.gather", topic="qqqzzz")
    client.workflows.submit(flow).wait(progress=False, check=False)
    client.tasks.create("A social card about tea").wait(progress=False)
    client.tasks.create("Clone a voice from nothing").wait(progress=False, check=False)
    client.plans.create("A social card about tea")
    client.agents.create("writer", "Write about {topic}", max_cost_usd=0.5)
    pod = client.compute.create("easel", "NVIDIA GeForce RTX 4090")
    client.jobs.create("image", pod.id, {"prompt": "a mill", "steps": 2}).wait(progress=False)
    weights = client.storage.create("weights", size_gb=20)
    worker = client.templates.create("worker", "example/sdxl:1")
    client.endpoints.create("e", gpu_ids="ADA_24", storage_id=weights.id, template_id=worker.id)


def is_for_people(text: str) -> bool:
    """Tell a view from the text of an object."""
    return not any(mark in text for mark in PYTHON)


def test_in_a_shell(client: Client) -> None:
    """Given something of everything, then each `list` and `show` is for people, `--json` raw."""
    shown = set()
    for path, command in leaves(get_command(app)):
        for line in lines(client, path, command):
            told = CliRunner().invoke(app, line, catch_exceptions=False)
            assert told.exit_code == 0, line
            assert is_for_people(told.stdout), (line, told.stdout)
            raw = CliRunner().invoke(app, [*line, "--json"], catch_exceptions=False)
            assert json.loads(raw.stdout) is not None
            shown.add(path[0])
    assert set(AREAS) <= shown


def leaves(
    command: Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Each command that shows something and changes nothing."""
    if not isinstance(command, TyperGroup):
        if path[-1] in {"list", "show", "health", "models", "gpus", "get", "lineage"}:
            yield path, command
        return
    for name, below in command.commands.items():
        if not below.hidden:
            yield from leaves(below, (*path, name))


def lines(client: Client, path: tuple[str, ...], command: Command) -> Iterator[list[str]]:
    """Type a command: once for each thing there is, where it takes one."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    names = [each.name for each in arguments if each.required]
    if not names:
        yield list(path)
        if path == ("account", "show"):
            yield [*path, "ada@example.org"]
    elif path[0] == "capabilities":
        for capability in client.capabilities.list():
            yield [*path, capability.id]
    elif path[0] == "keys":
        for key in list(client.api_keys.list(200)):
            yield [*path, key.id]
    else:
        for thing in getattr(client, path[0]).list():
            yield [*path, thing.id]


def test_a_schema_says_what_a_caller_needs(client: Client) -> None:
    """Given a capability, then each field stands with its type, default, bounds and meaning."""
    text = CliRunner().invoke(app, ["capabilities", "show", "llm.generate"]).stdout
    properties = client.capabilities.get("llm.generate").record.input_schema["properties"]
    rows = {line.split()[0]: line for line in text.splitlines() if line.split()[:1]}
    for name, field in properties.items():  # type: ignore[attr-defined]
        assert field["description"] in rows[name]
    assert "yes" in rows["objective"]
    assert str(properties["max_tokens"]["default"]) in rows["max_tokens"]  # type: ignore[index, call-overload]


def test_routing_says_who_was_dropped_and_why(client: Client) -> None:
    """Given a run, then each candidate stands in a row with whether it was kept, and why."""
    routed = ((run.id, run.record.routing) for run in client.runs.list())
    run_id, routing = next((run_id, routing) for run_id, routing in routed if routing is not None)
    text = CliRunner().invoke(app, ["runs", "show", run_id]).stdout
    assert len(routing.candidates) > 10
    for candidate in routing.candidates:
        kept = "no" if candidate.excluded else "yes"
        assert any(
            candidate.reason in line and f" {kept} " in line and line.startswith(candidate.provider)
            for line in text.splitlines()
        )
