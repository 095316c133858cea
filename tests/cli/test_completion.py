"""Completion of words in a shell after the Tab key, by the protocols of the shells."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.models import TyperPath
from typer.testing import CliRunner

from tests.cli.conftest import EMAIL
from tests.cli.test_first_use import list_commands
from tests.conftest import Server
from toolkit import Client
from toolkit.cli import app

# Parameters that no completion can offer, because the user invents the value.
FREE = {
    "allow_env", "allow_secret", "answer", "artifact_url", "artifacts", "base_url", "cors_origin",
    "dask", "data_center", "database", "dispatch", "email", "executor", "fields", "first",
    "from_endpoint_url", "from_profile", "host",
    "image", "issue", "last", "member", "members", "metrics_host",
    "month", "name", "node_id", "note", "objective", "older_than", "otel_endpoint", "preload", "q",
    "sealed", "secret_ref", "since", "tag", "target", "topic", "trust_proxy", "until", "url",
    "version",
}  # fmt: skip


def get_completions(line: str, shell: str = "bash") -> list[str]:
    """Return the words that `toolkit` offers a shell for the end of a line."""
    words = ["toolkit", *line.split(" ")]
    variables = {
        "bash": {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": " ".join(words)},
        "fish": {
            "_TYPER_COMPLETE_ARGS": " ".join(words),
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
    }[shell]
    environment = {"_TOOLKIT_COMPLETE": f"complete_{shell}", **variables}
    result = CliRunner().invoke(app, [], prog_name="toolkit", env=environment)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.stderr == ""
    return [word for word in result.stdout.splitlines() if word]


def list_parameters() -> Iterator[tuple[str, Any]]:
    """Yield each parameter that takes a value, with the line that ends before it."""
    for path, command in list_commands(get_command(app)):
        if not path or hasattr(command, "commands"):
            continue
        before = list(path)
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                yield " ".join([*before, ""]), parameter
                before.append("x")
            elif not parameter.is_flag and not parameter.hidden:
                yield " ".join([*path, parameter.opts[0], ""]), parameter


def test_every_parameter_offers_its_values() -> None:
    """Given any parameter, then all its choices are offered, or FREE lists it."""
    free = set()
    for line, parameter in list_parameters():
        kind = parameter.type
        if hasattr(kind, "choices"):
            assert get_completions(line) == [str(choice) for choice in kind.choices], line
        elif isinstance(kind, TyperPath):
            assert get_completions(line) == [], line  # the shell offers its files
        elif kind.name in ("str", "text") and parameter._custom_shell_complete is None:
            free.add(parameter.name)
    assert free == FREE, f"Give a type that completes, or a place in FREE, to {free ^ FREE}."


@pytest.fixture(scope="module")
def records(service: Server, key: str) -> dict[str, str]:
    """The ids of an account's records."""
    with Client(service.url, key) as client:
        agent = client.agents.create("card-maker", "A card about {topic}")
        plan = client.plans.create("A card about tea")
        return {
            "agent": agent.id,
            "plan": plan.id,
            "work": client.runs.create("composition.layout", {"title": "Tea"}).id,
            "account_key": client.api_keys.list()[0].record.id,
        }


@pytest.mark.parametrize("source", ["server", "directory"])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ru", "runs"),
        ("runs ", "show"),
        ("runs list --ba", "--base-url"),
        ("run image.", "image.generate"),
        ("run image.generate@", "image.generate@1"),
        ("run llm.generate obj", "objective="),
        ("run llm.generate --provider mini", "minimax"),
        ("connections create ", "openai"),
        ("connections test e", "elevenlabs"),
        ("connections discover --connect a", "all"),
        ("agents show ", "agent"),
        ("agents run card", "card-maker"),
        ("plans show pln_", "plan"),
        ("compare ", "work"),
        (f"compare run_{'0' * 26} ", "work"),
        ("keys revoke ", "account_key"),
        ("runs --api-key-env HO", "HOME"),
    ],
)
def test_offers_values(
    service: Server,
    key: str,
    records: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    source: str,
    line: str,
    expected: str,
) -> None:
    """Given the start of a value, then the value is offered, from a server or a data directory."""
    monkeypatch.chdir(tmp_path)
    if source == "server":
        monkeypatch.setenv("TOOLKIT_BASE_URL", service.url)
        monkeypatch.setenv("TOOLKIT_API_KEY", key)
    else:
        folder = service.thread.engine.settings.data_dir
        monkeypatch.setenv("TOOLKIT_DATA_DIR", str(folder))
    words = get_completions(line)
    assert records.get(expected, expected) in words
    assert all(word.startswith(line.rpartition(" ")[2]) for word in words)


@pytest.mark.usefixtures("key")
def test_offers_accounts_to_an_operator(service: Server) -> None:
    """Given a data directory, then its accounts are offered to the operator's commands."""
    folder = service.thread.engine.settings.data_dir
    for command in ("limit", "show", "disable"):
        assert get_completions(f"account {command} --data-dir {folder} ada") == [EMAIL]


@pytest.mark.parametrize("trouble", ["away", "no directory", "no profile", "refused"])
def test_offers_nothing_without_a_source(
    service: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trouble: str
) -> None:
    """Given an unreachable server or no directory, then nothing is offered or written."""
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
def test_serves_each_shell(shell: str) -> None:
    """Given a shell, then it gets a script, and words in its own format."""
    environment = {"_TOOLKIT_COMPLETE": f"source_{shell}"}
    script = CliRunner().invoke(app, [], prog_name="toolkit", env=environment)
    assert f"complete_{shell}" in script.stdout
    assert "quality" in "".join(get_completions("run llm.generate --optimize-for ", shell))
    assert "cancel" in json.dumps(get_completions("runs ", shell))
