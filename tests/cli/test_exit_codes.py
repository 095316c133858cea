"""Exit codes of commands, and their errors on stderr."""

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from tests.conftest import Server
from toolkit.cli import app, main
from toolkit.cli.errors import EXIT_CODES

CARD = ["composition.layout", "title=Tea", "width:=300", "height:=200", "--sandbox", "-q"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.yaml").write_text("[1, 2]", encoding="utf-8")
    (tmp_path / "broken.yaml").write_text("a: [\n", encoding="utf-8")
    faults = "[[fault]]\nvendor = 'openai'\ncolour = 1\n"
    (tmp_path / "faults.toml").write_text(faults, encoding="utf-8")


def get_exit_code(monkeypatch: pytest.MonkeyPatch, *line: str) -> int:
    """Run a command, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["toolkit", *line])
    with pytest.raises(SystemExit) as ending:
        main()
    assert isinstance(ending.value.code, int)
    return ending.value.code


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        (["run", "no.such", "--sandbox"], 3, "NOT_FOUND"),
        (["run", "composition.layout", "nonsense", "--sandbox"], 3, "name=value"),
        (["run", "composition.layout", "width:=wide", "--sandbox"], 3, "JSON"),
        (["plans", "create", " ", "--sandbox"], 3, "objective"),
        (["run", "llm.generate", "--input", "list.yaml", "--sandbox"], 3, "contain an object"),
        (["workflow", "run", "broken.yaml", "--sandbox"], 3, "neither JSON nor YAML"),
        (["workflow", "run", "no.yaml", "--sandbox"], 3, "no.yaml was not found"),
        (["run", "llm.generate", "--input", "no.yaml", "--sandbox"], 3, "NOT_FOUND"),
        (["run", "research.gather", "topic=qqqzzz", "--sandbox", "-q"], 1, "PROVIDER_REJECTED"),
        (["task", "Clone a voice from nothing", "--sandbox", "-q"], 1, "resume"),
        (["run", *CARD, "--save", "no/card.png"], 1, "No such file"),
        (["health", "--base-url", "http://127.0.0.1:9"], 4, "could not be reached"),
        (["runs", "--base-url", "http://127.0.0.1:9", "--max-wait", "0"], 4, "not be reached"),
        (["runs", "--base-url", "127.0.0.1:9"], 3, "has no scheme"),
        (["runs", "--base-url", "http://x.test", "--cacert", "no.pem"], 3, "cacert (no.pem)"),
        (["runs", "list", "--limit", "0"], 2, "--limit"),
        (["health", "--base-url", "http://x.test", "--sandbox"], 2, "--base-url"),
        (["health", "--base-url", "http://x.test", "--api-key-env", "UNSET"], 2, "UNSET"),
        (["serve", "--faults", "faults.toml", "--log-format", "text"], 3, "colour"),
        (["serve", "--cors-origin", "*", "--log-format", "text"], 3, "exact origin"),
    ],
)
def test_exits_with_the_code_of_the_error(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: list[str],
    code: int,
    says: str,
) -> None:
    """Given a command that fails, then the exit code names the kind of error."""
    monkeypatch.setattr("toolkit.client._wire.retries.compute_backoff_s", lambda *_: 0.0)
    assert get_exit_code(monkeypatch, *line) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert says in output.err
    assert "Traceback" not in output.err
    assert code != 3 or len(output.err.splitlines()) == 1
    assert code in EXIT_CODES


def test_upload_rejected_by_a_proxy_exits_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a proxy that answers 413, when a file is uploaded, then the exit code is 3."""
    answer = httpx.Response(413, html="<h1>413 Request Entity Too Large</h1>")
    monkeypatch.setattr("httpx.HTTPTransport.handle_request", lambda *_: answer)
    line = ("artifacts", "upload", "list.yaml", "--base-url", "http://x.test", "--json")
    monkeypatch.setenv("TOOLKIT_API_KEY", "sk_live_" + "c4nary" * 7)
    assert get_exit_code(monkeypatch, *line) == 3
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "PAYLOAD_TOO_LARGE"


def test_prints_an_error_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given `--json`, then stderr has the contract's error object, and stdout the record."""
    assert get_exit_code(monkeypatch, "runs", "show", "run_x", "--sandbox", "--json") == 3
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "NOT_FOUND"
    line = ("run", "research.gather", "topic=qqqzzz", "--sandbox", "--json", "-q")
    assert get_exit_code(monkeypatch, *line) == 1
    output = capsys.readouterr()
    assert json.loads(output.err)["error"]["code"] == "PROVIDER_REJECTED"
    assert json.loads(output.out)["status"] == "failed"


def test_interrupt_names_the_command_to_continue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given Ctrl-C during a wait, then the exit code is 130 and stderr names the next command."""

    def interrupt(self: object, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("toolkit.client._sync.handle.Waitable.wait", interrupt)
    assert get_exit_code(monkeypatch, "run", "composition.layout", "title=Tea", "--sandbox") == 130
    assert re.search(r"toolkit runs wait run_\w{26}\n", capsys.readouterr().err)


def test_sends_only_the_key_of_the_named_variable(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given `--api-key-env`, then only the key of that variable is sent."""
    options = ["--base-url", server.url, "--json"]
    runner = CliRunner()
    account = runner.invoke(app, ["account", "open", "ada@example.org", *options])
    monkeypatch.setenv("TEAM_KEY", json.loads(account.stdout)["api_key"])
    monkeypatch.setenv("TOOLKIT_API_KEY", "sk_live_" + "x" * 43)
    result = runner.invoke(app, ["account", "show", *options, "--api-key-env", "TEAM_KEY"])
    assert json.loads(result.stdout)["email"] == "ada@example.org"
    assert get_exit_code(monkeypatch, "account", "show", *options) == 3


def test_escapes_control_characters_of_vendors(capsys: pytest.CaptureFixture[str]) -> None:
    """Given a text with control characters, then every form of output escapes them."""
    from toolkit.cli.output import ClientOutput
    from toolkit.contract.health import Health

    record = Health(version="\x1b[2J\x9b2J[bold]")
    for as_json in (False, True):
        shell = ClientOutput(None, as_json)  # type: ignore[arg-type]
        shell.print_record(record)
        shell.print_table([record], ["version"])
    shell.print_note(record.version)
    output = capsys.readouterr()
    assert "\x1b" not in output.out + output.err
    assert "\x9b" not in output.out + output.err
    assert output.out.count("[bold]") == 4


def test_help_imports_no_heavy_module() -> None:
    """Given a request for help, then no engine, client or display module is imported."""
    heavy = "{'httpx', 'pydantic', 'fastapi', 'rich', 'sqlalchemy', 'yaml', 'asyncio'}"
    program = f"import sys, toolkit.cli; print({heavy} & set(sys.modules))"
    line = [sys.executable, "-c", program]
    assert subprocess.run(line, capture_output=True, text=True).stdout == "set()\n"
