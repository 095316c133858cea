"""Completion in a shell after the Tab key, by the protocol that shells speak."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.models import TyperPath
from typer.testing import CliRunner

from tests.cli.conftest import EMAIL
from tests.cli.test_help import commands
from tests.conftest import Server
from toolkit import Client
from toolkit.cli import app
from toolkit.cli.lazy import LazyGroup

# What a person makes up, and nobody can offer: by the name of the parameter.
FREE = {
    "allow_env", "allow_secret", "answer", "artifact_url", "artifacts", "base_url", "cors_origin",
    "dask", "data_center", "database", "dispatch", "email", "executor", "fields", "first",
    "from_endpoint_url", "from_profile", "host",
    "image", "issue", "last", "member", "members", "metrics_host",
    "month", "name", "node_id", "note", "objective", "older_than", "otel_endpoint", "preload", "q",
    "secret_ref", "since", "tag", "target", "topic", "trust_proxy", "until", "url", "version",
}  # fmt: skip


def get_completions(line: str, shell: str = "bash") -> list[str]:
    """The words that a shell is told for the end of a line, as `toolkit` gives them."""
    words = ["toolkit", *line.split(" ")]
    asked = {
        "bash": {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": " ".join(words)},
        "fish": {
            "_TYPER_COMPLETE_ARGS": " ".join(words),
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
    }[shell]
    environment = {"_TOOLKIT_COMPLETE": f"complete_{shell}", **asked}
    told = CliRunner().invoke(app, [], prog_name="toolkit", env=environment)
    assert told.exception is None or isinstance(told.exception, SystemExit), told.exception
    assert told.stderr == ""
    return [word for word in told.stdout.splitlines() if word]


def parameters() -> Iterator[tuple[str, Any]]:
    """Each parameter that takes a value, with the line on which it comes next."""
    for path, command in commands(get_command(app)):
        if not path or hasattr(command, "commands"):
            continue
        before = list(path)
        for each in command.params:
            if each.param_type_name == "argument":
                yield " ".join([*before, ""]), each
                before.append("x")
            elif not each.is_flag and not each.hidden:
                yield " ".join([*path, each.opts[0], ""]), each


def test_every_parameter_offers_what_it_takes() -> None:
    """Given any parameter, then a closed set is offered whole, and what is not closed is known."""
    free = set()
    for line, parameter in parameters():
        kind = parameter.type
        if hasattr(kind, "choices"):
            assert get_completions(line) == [str(choice) for choice in kind.choices], line
        elif isinstance(kind, TyperPath):
            assert get_completions(line) == [], line  # the shell offers its files
        elif kind.name in ("str", "text") and parameter._custom_shell_complete is None:
            free.add(parameter.name)
    assert free == FREE, f"Give a type that completes, or a place in FREE, to {free ^ FREE}."


@pytest.fixture(scope="module")
def made(service: Server, key: str) -> dict[str, str]:
    """The ids of what an account has."""
    with Client(service.url, key) as client:
        agent = client.agents.create("card-maker", "A card about {topic}")
        plan = client.plans.create("A card about tea")
        return {
            "agent": agent.id,
            "plan": plan.id,
            "work": client.runs.create("composition.layout", {"title": "Tea"}).id,
            "account_key": client.api_keys.list()[0].record.id,
        }


@pytest.mark.parametrize("where", ["server", "directory"])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ru", "runs"),
        ("runs ", "show"),
        ("runs --li", "--limit"),
        ("runs list --ba", "--base-url"),
        ("work", "workflows"),
        ("run image.", "image.generate"),
        ("run image.generate@", "image.generate@1"),
        ("run llm.generate obj", "objective="),
        ("run llm.generate --optimize-for q", "quality"),
        ("run llm.generate --provider mini", "minimax"),
        ("route text", "text.generate"),
        ("connections create ", "openai"),
        ("connections test e", "elevenlabs"),
        ("connections discover --connect a", "all"),
        ("usage --by ", "capability"),
        ("keys create --scope ", "admin"),
        ("agents show ", "agent"),
        ("agents run card", "card-maker"),
        ("plans show pln_", "plan"),
        ("compare ", "work"),
        (f"compare run_{'0' * 26} ", "work"),
        ("keys revoke ", "account_key"),
        ("runs --api-key-env HO", "HOME"),
    ],
)
def test_a_value_is_offered(
    service: Server,
    key: str,
    made: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    where: str,
    line: str,
    expected: str,
) -> None:
    """Given the beginning of a value, then it is offered, from where the line would ask."""
    monkeypatch.chdir(tmp_path)
    if where == "server":
        monkeypatch.setenv("TOOLKIT_BASE_URL", service.url)
        monkeypatch.setenv("TOOLKIT_API_KEY", key)
    else:
        folder = service.thread.engine.settings.data_dir
        monkeypatch.setenv("TOOLKIT_DATA_DIR", str(folder))
    found = get_completions(line)
    assert made.get(expected, expected) in found
    assert all(word.startswith(line.rpartition(" ")[2]) for word in found)


@pytest.mark.usefixtures("key")
def test_an_operator_is_offered_accounts(service: Server) -> None:
    """Given a data directory, then its accounts are offered to whoever limits one."""
    folder = service.thread.engine.settings.data_dir
    for command in ("limit", "show", "disable"):
        assert get_completions(f"account {command} --data-dir {folder} ada") == [EMAIL]


@pytest.mark.parametrize("trouble", ["away", "no directory", "no profile", "refused"])
def test_what_fails_offers_nothing(
    service: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trouble: str
) -> None:
    """Given a server that is away, or nothing to look at, then nothing is offered or said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLKIT_CONFIG_DIR", str(tmp_path))
    options = {
        "away": "--base-url http://127.0.0.1:9",
        "no directory": "--data-dir nowhere",
        "no profile": "--profile nobody",
        "refused": f"--base-url {service.url}",
    }
    assert get_completions(f"runs show {options[trouble]} ") == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_is_served(shell: str) -> None:
    """Given a shell, then it gets a script, and words in the way that it reads them."""
    environment = {"_TOOLKIT_COMPLETE": f"source_{shell}"}
    script = CliRunner().invoke(app, [], prog_name="toolkit", env=environment)
    assert f"complete_{shell}" in script.stdout
    assert "quality" in "".join(get_completions("run llm.generate --optimize-for ", shell))
    assert "cancel" in json.dumps(get_completions("runs ", shell))


def test_a_lazy_group_is_what_the_command_is() -> None:
    """Given the command line, then its commands are loaded one by one, as each is looked at."""
    assert isinstance(get_command(app), LazyGroup)
