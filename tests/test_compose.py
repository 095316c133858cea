"""The file for containers: nothing here runs it, so that what it names is looked up."""

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
    """The command that a line names, and what it is given."""
    if words[0] == "dask":
        known = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
        return known[words[1]], words[2:]
    assert words[0] == "toolkit"
    command: Any = get_command(app)
    rest = words[1:]
    while hasattr(command, "commands"):
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


def find_typed() -> str:
    """What the page has typed to start all parts."""
    (typed,) = [block.code for block in find_blocks(PAGE, "bash") if " up --detach" in block.code]
    return typed


def list_lines() -> list[str]:
    """The commands of the image, those of the page's `exec` included."""
    lines = [str(each["command"]) for each in SERVICES.values() if each["image"] == ONE_IMAGE]
    return lines + re.findall(r" exec engine (toolkit .*)", find_typed())


def test_each_variable_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the variables of the engines, then each is a setting, and has a value that it takes."""
    variables = {
        name.removeprefix("TOOLKIT_").lower(): str(value)
        for name, value in SERVICES["engine"]["environment"].items()
        if name.startswith("TOOLKIT_")
    }
    assert set(variables) <= set(Settings.model_fields)
    for name, value in variables.items():
        monkeypatch.setenv(f"TOOLKIT_{name}", value)
    settings = Settings()
    # No caller outside reaches the store by the name that it has in here.
    assert settings.artifact_endpoint_url == "http://objects:9000"
    assert settings.artifact_reads == "proxied"


@pytest.mark.parametrize("line", list_lines())
def test_each_command_is_one(line: str) -> None:
    """Given a command of the image, then it is there, and takes what it is given."""
    command, words = find_command(shlex.split(line))
    with command.make_context(str(command.name), words) as context:
        assert context.params


def test_the_database_is_asked_where_engines_ask_it() -> None:
    """Given PostgreSQL's probe, then it is by TCP, which a server that is set up does not have."""
    probe = SERVICES["database"]["healthcheck"]["test"]
    assert probe[probe.index("--host") + 1] == "127.0.0.1"


def test_a_stop_has_the_time_that_it_takes() -> None:
    """Given requests and calls that take as long as they may, then nothing kills the engine."""
    compose_s = int(SERVICES["engine"]["stop_grace_period"].removesuffix("s"))
    assert compose_s >= 2 * GRACE_S + 5, "requests end first, and then calls"


def test_the_containers_are_set_up_by_what_there_is() -> None:
    """Given the compose file, then its settings, options and variables are known ones."""
    settings = {f"TOOLKIT_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"TOOLKIT_\w+", FILE)) <= settings
    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    options = {name for param in serve.params for name in (*param.opts, *param.secondary_opts)}
    words = shlex.split(str(SERVICES["engine"]["command"]))
    assert words[:2] == ["toolkit", "serve"]
    assert {word for word in words if word.startswith("--")} <= options
    page = PAGE.read_text(encoding="utf-8")
    made = re.search(r"for name in ([A-Z_ ]+); do echo \"\$\{name\}_PASSWORD", page)
    assert made is not None
    documented = {f"{name}_PASSWORD" for name in made[1].split()}
    assert set(re.findall(r"(?<!\$)\$\{(\w+)", FILE)) == documented


def test_containers_that_end_are_started_again() -> None:
    """Given the compose file, then one service builds the image, and all servers restart."""
    assert [name for name, each in SERVICES.items() if "build" in each] == ["scheduler"]
    lasting = {name for name, each in SERVICES.items() if each.get("restart") == "unless-stopped"}
    assert lasting == set(SERVICES) - {"bucket"}
