"""The first commands of a new user."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import Server
from tests.support.commands import run_toolkit, say
from toolkit import Client
from toolkit.cli import app
from toolkit.cli.errors import report_error
from toolkit.contract.errors import RequestError


def test_saves_an_artifact_into_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a folder, then an artifact is saved in it under its own name."""
    monkeypatch.chdir(tmp_path)
    with Client.local("work", sandbox=True) as client:
        artifact = client.artifacts.upload(b"tea leaves", filename="tea.txt")
    (tmp_path / "here").mkdir()
    output = say("artifacts", "save", artifact.id, "here", "--sandbox", "--data-dir", "work")
    (saved,) = (tmp_path / "here").iterdir()
    assert saved.read_bytes() == b"tea leaves"
    assert output.strip() == str(Path("here") / saved.name)


def test_checks_the_output_folder_before_any_payment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an output folder that cannot be created, then no task starts."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").touch()
    line = ("task", "A card about tea", "--out", "taken", "--sandbox", "--data-dir", "work")
    result = run_toolkit(*line)
    assert (result.exit_code, "--out" in result.output) == (2, True)
    with Client.local("work", sandbox=True) as client:
        assert len(client.tasks.list()) == 0


def test_discovers_and_connects_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a variable with a key, then it is found and connected, and the key is never printed."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-to-be-shown")
    discover = ["connections", "discover", "--data-dir", tmp_path]
    result = run_toolkit(*discover)
    assert "toolkit connections discover --connect openai" in result.stderr
    rows = json.loads(say(*discover, "--connect", "all", "--json"))
    assert [row["provider"] for row in rows if row["connected"]] == ["openai"]
    assert "not-to-be-shown" not in result.stdout + json.dumps(rows)


def test_hints_lead_to_a_run(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Given a new account, when the user follows the printed commands, then a run works."""
    with Client(server.url) as client:
        key = client.account.create("ada@example.org").api_key
    environment = {"TOOLKIT_BASE_URL": server.url, "TOOLKIT_API_KEY": key}

    def toolkit(*line: str) -> str:
        result = CliRunner().invoke(app, list(line), env=environment)
        if isinstance(result.exception, RequestError):
            report_error(result.exception, as_json=False)
            return capsys.readouterr().err
        assert result.exit_code == 0, result.output
        return result.stderr

    run = ("run", "llm.generate", "objective=Tea", "-q")
    for line in (run, ("connections", "discover")):
        output = toolkit(*line)
        command = output.partition("Next: toolkit ")[2].split("\n")[0]
        assert command.startswith("connections")
    toolkit(*command.split())
    toolkit(*run)
