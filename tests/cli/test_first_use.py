"""The first day of a command line: a folder to save to, the sandbox's server."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import Server
from tests.support.commands import run_toolkit, say
from toolkit import Client
from toolkit.cli import app
from toolkit.cli.errors import report_error
from toolkit.contract.errors import RequestError


def test_an_artifact_is_saved_into_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a folder, then an artifact is written into it under its own name."""
    monkeypatch.chdir(tmp_path)
    where = ["--sandbox", "--data-dir", "work"]
    with Client.local("work", sandbox=True) as client:
        artifact = client.artifacts.upload(b"tea leaves", filename="tea.txt")
    (tmp_path / "here").mkdir()
    shown = say("artifacts", "save", artifact.id, "here", *where)
    (made,) = (tmp_path / "here").iterdir()
    assert made.read_bytes() == b"tea leaves"
    assert shown.strip() == str(Path("here") / made.name)


def test_where_results_go_is_looked_at_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a folder that cannot be made, then no task is begun."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").touch()
    where = ["--sandbox", "--data-dir", "work"]
    shown = run_toolkit("task", "A card about tea", "--out", "taken", *where)
    assert (shown.exit_code, "--out" in shown.output) == (2, True)
    with Client.local("work", sandbox=True) as client:
        assert len(client.tasks.list()) == 0


def test_the_first_run_on_a_sandbox_server(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a new account, then what is said leads to a run that works."""
    with Client(server.url) as nobody:
        key = nobody.account.create("ada@example.org").api_key
    environment = {"TOOLKIT_BASE_URL": server.url, "TOOLKIT_API_KEY": key}

    def toolkit(*line: str) -> str:
        shown = CliRunner().invoke(app, list(line), env=environment)
        if isinstance(shown.exception, RequestError):
            report_error(shown.exception, as_json=False)
            return capsys.readouterr().err
        assert shown.exit_code == 0, shown.output
        return shown.stderr

    run = ("run", "llm.generate", "objective=Tea", "-q")
    for line in (run, ("connections", "discover")):
        said = toolkit(*line)
        command = said.partition("Next: toolkit ")[2].split("\n")[0]
        assert command.startswith("connections")
    toolkit(*command.split())
    toolkit(*run)
