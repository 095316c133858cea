"""Commands of the shell show facts and tables, never the text of a Python object."""

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
from tests.display.test_record_views import PYTHON
from toolkit import Client, Workflow
from toolkit.cli import app
from toolkit.settings import Settings

AREAS = (
    "agents", "artifacts", "compute", "connections", "endpoints", "jobs", "plans", "runs",
    "storage", "tasks", "templates", "workflows",
)  # fmt: skip


@pytest.fixture
def client(
    server: Server, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    """A caller of a sandbox with records of each kind, completed and failed."""
    monkeypatch.chdir(tmp_path)
    Path(".toolkit").symlink_to(settings.data_dir)  # for the commands of its operator
    with sign_up_client(server.url) as client:
        monkeypatch.setenv("TOOLKIT_BASE_URL", server.url)
        monkeypatch.setenv("TOOLKIT_API_KEY", read_key(client))
        for provider in client.providers.list():
            variable = provider.record.conventional_variable
            client.connections.create(provider.record.id, "environment", variable)
        create_records(client)
        yield client


def create_records(client: Client) -> None:
    """Create records of each kind."""
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


def test_commands_show_views_and_raw_json(client: Client) -> None:
    """Given records of each kind, then each command shows no Python object, and `--json` is raw."""
    areas = set()
    for path, command in list_reading_commands(get_command(app)):
        for line in list_command_lines(client, path, command):
            result = CliRunner().invoke(app, line, catch_exceptions=False)
            assert result.exit_code == 0, line
            assert not any(mark in result.stdout for mark in PYTHON), (line, result.stdout)
            raw = CliRunner().invoke(app, [*line, "--json"], catch_exceptions=False)
            assert json.loads(raw.stdout) is not None
            areas.add(path[0])
    assert set(AREAS) <= areas


def list_reading_commands(
    command: Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield each command that shows records and changes nothing."""
    if isinstance(command, TyperGroup):
        for name, subcommand in command.commands.items():
            if not subcommand.hidden:
                yield from list_reading_commands(subcommand, (*path, name))
    elif path[-1] in {"list", "show", "health", "models", "gpus", "get", "lineage"}:
        yield path, command


def list_command_lines(
    client: Client, path: tuple[str, ...], command: Command
) -> Iterator[list[str]]:
    """Yield the command, for each record if it requires an id."""
    if any(param.required and param.param_type_name == "argument" for param in command.params):
        area = "api_keys" if path[0] == "keys" else path[0]
        yield from ([*path, record.id] for record in getattr(client, area).list())
    else:
        yield list(path)
        if path == ("account", "show"):
            yield [*path, "ada@example.org"]


def test_capability_view_describes_each_field(client: Client) -> None:
    """Given a capability, then each field has its type, default, bounds and meaning."""
    text = CliRunner().invoke(app, ["capabilities", "show", "llm.generate"]).stdout
    properties = client.capabilities.get("llm.generate").record.input_schema["properties"]
    lines = reversed(text.splitlines())  # the input stands before the output
    rows = {line.split()[0]: line for line in lines if line.split()[:1]}
    for name, field in properties.items():  # type: ignore[attr-defined]
        assert field["description"] in rows[name]
    assert "yes" in rows["objective"]
    assert str(properties["max_tokens"]["default"]) in rows["max_tokens"]  # type: ignore[index, call-overload]


def test_run_view_explains_each_candidate(client: Client) -> None:
    """Given a run, then each candidate has a row with the decision and its reason."""
    routed = ((run.id, run.record.routing) for run in client.runs.list())
    run_id, routing = next((run_id, routing) for run_id, routing in routed if routing is not None)
    text = CliRunner().invoke(app, ["runs", "show", run_id]).stdout
    assert len(routing.candidates) > 10
    for candidate in routing.candidates:
        verdict = "no" if candidate.excluded else "yes"
        assert any(
            candidate.reason in line
            and f" {verdict} " in line
            and line.startswith(candidate.provider)
            for line in text.splitlines()
        )
