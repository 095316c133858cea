"""The compose file: no test starts the containers, so the names in it are checked."""

import re
import shlex
from typing import Any

import pytest
import yaml
from click import Command
from distributed.cli import dask_scheduler, dask_worker
from typer.main import get_command

from tests.support.code_blocks import ROOT, find_blocks
from toolkit.cli import app
from toolkit.server.serve import GRACE_S
from toolkit.settings import Settings

DEPLOY = ROOT / "docs" / "deploy"
PAGE = ROOT / "docs" / "deploy.md"
FILE = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(FILE)["services"]
ONE_IMAGE = "capability-toolkit"


def find_command(words: list[str]) -> tuple[Command, list[str]]:
    """Return the command that a line names, and its arguments."""
    if words[0] == "dask":
        dask_commands = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
        return dask_commands[words[1]], words[2:]
    assert words[0] == "toolkit"
    command: Any = get_command(app)
    arguments = words[1:]
    while hasattr(command, "commands"):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    return command, arguments


def find_typed() -> str:
    """Return the commands of the page that start all parts."""
    (typed,) = [block.code for block in find_blocks(PAGE, "bash") if " up --detach" in block.code]
    return typed


def list_lines() -> list[str]:
    """List the commands of the image, including the commands of the page's `exec`."""
    lines = [
        str(service["command"]) for service in SERVICES.values() if service["image"] == ONE_IMAGE
    ]
    return lines + re.findall(r" exec engine (toolkit .*)", find_typed())


def test_variables_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the variables of the engines, then each is a setting with a valid value."""
    variables = {
        name.removeprefix("TOOLKIT_").lower(): str(value)
        for name, value in SERVICES["engine"]["environment"].items()
        if name.startswith("TOOLKIT_")
    }
    assert set(variables) <= set(Settings.model_fields)
    for name, value in variables.items():
        monkeypatch.setenv(f"TOOLKIT_{name}", value)
    settings = Settings()
    # Callers outside cannot reach the store by its name inside.
    assert settings.artifact_endpoint_url == "http://objects:9000"
    assert settings.artifact_reads == "proxied"


@pytest.mark.parametrize("line", list_lines())
def test_commands_exist(line: str) -> None:
    """Given a command of the image, then it exists, and accepts its arguments."""
    command, words = find_command(shlex.split(line))
    with command.make_context(str(command.name), words) as context:
        assert context.params


def test_probes_the_database_by_tcp() -> None:
    """Given PostgreSQL's probe, then it uses TCP, which a server rejects during its setup."""
    probe = SERVICES["database"]["healthcheck"]["test"]
    assert probe[probe.index("--host") + 1] == "127.0.0.1"


def test_stop_allows_the_grace_period() -> None:
    """Given requests and calls of maximum duration, then no timeout kills the engine."""
    compose_s = int(SERVICES["engine"]["stop_grace_period"].removesuffix("s"))
    assert compose_s >= 2 * GRACE_S + 5, "requests end first, and then calls"


def test_uses_known_settings_and_options() -> None:
    """Given the compose file, then all its settings, options and variables exist."""
    settings = {f"TOOLKIT_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"TOOLKIT_\w+", FILE)) <= settings
    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    options = {name for param in serve.params for name in (*param.opts, *param.secondary_opts)}
    words = shlex.split(str(SERVICES["engine"]["command"]))
    assert words[:2] == ["toolkit", "serve"]
    assert {word for word in words if word.startswith("--")} <= options
    page = PAGE.read_text(encoding="utf-8")
    loop = re.search(r"for name in ([A-Z_ ]+); do echo \"\$\{name\}_PASSWORD", page)
    assert loop is not None
    documented = {f"{name}_PASSWORD" for name in loop[1].split()}
    assert set(re.findall(r"(?<!\$)\$\{(\w+)", FILE)) == documented


def test_restarts_all_servers() -> None:
    """Given the compose file, then one service builds the image, and all servers restart."""
    assert [name for name, service in SERVICES.items() if "build" in service] == ["scheduler"]
    lasting = {
        name for name, service in SERVICES.items() if service.get("restart") == "unless-stopped"
    }
    assert lasting == set(SERVICES) - {"bucket"}
