"""The end of commands: exit codes, errors on stderr, and what a shell is told."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from tests.conftest import Server
from toolkit import RequestError, ServiceError, WorkError, cli
from toolkit.cli import app, main
from toolkit.cli.errors import EXIT_CODES, find_exit_code
from toolkit.contract.errors import ErrorCode

CARD = ["composition.layout", "title=Tea", "width:=300", "height:=200", "--sandbox", "-q"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.yaml").write_text("[1, 2]", encoding="utf-8")
    (tmp_path / "broken.yaml").write_text("a: [\n", encoding="utf-8")


def get_exit_code(monkeypatch: pytest.MonkeyPatch, *line: str) -> int:
    """The exit code of a command."""
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
    ],
)
def test_an_exit_code_tells_why(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: list[str],
    code: int,
    says: str,
) -> None:
    """Given a command that cannot be done, then the code says whose turn it is, and stderr why."""
    monkeypatch.setattr("toolkit.client._wire.retries.compute_backoff_s", lambda *_: 0.0)
    assert get_exit_code(monkeypatch, *line) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert says in shown.err
    assert "Traceback" not in shown.err
    assert code != 3 or len(shown.err.splitlines()) == 1
    assert code in EXIT_CODES


def test_a_file_that_a_proxy_refuses_for_its_size(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a proxy that answers 413, when a file is uploaded, then the request is refused: 3."""
    answer = httpx.Response(413, html="<h1>413 Request Entity Too Large</h1>")
    monkeypatch.setattr("httpx.HTTPTransport.handle_request", lambda *_: answer)
    line = ("artifacts", "upload", "list.yaml", "--base-url", "http://x.test", "--json")
    monkeypatch.setenv("TOOLKIT_API_KEY", "sk_live_" + "c4nary" * 7)
    assert get_exit_code(monkeypatch, *line) == 3
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "PAYLOAD_TOO_LARGE"


def test_commands_end_by_the_codes_of_the_table() -> None:
    """Given the commands' source, then each exit code in it is one of the one table."""
    found = set()
    for path in Path(cli.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ("typer.Exit", "sys.exit"):
                found |= {each.value for each in call.args if isinstance(each, ast.Constant)}
    assert found == {1}
    kinds = (RequestError, ServiceError, WorkError)
    found |= {find_exit_code(kind(ErrorCode.INTERNAL)) for kind in kinds}
    assert found | {0, 2, 130} == set(EXIT_CODES)  # those are typer's own


def test_an_error_is_json_where_results_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given `--json`, then the error on stderr is the contract's, and stdout has the record."""
    assert get_exit_code(monkeypatch, "runs", "show", "run_x", "--sandbox", "--json") == 3
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "NOT_FOUND"
    line = ("run", "research.gather", "topic=qqqzzz", "--sandbox", "--json", "-q")
    assert get_exit_code(monkeypatch, *line) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.err)["error"]["code"] == "PROVIDER_REJECTED"
    assert json.loads(shown.out)["status"] == "failed"


def test_an_interrupt_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given Ctrl-C while waiting, then the code is 130 and the next command is named."""

    def interrupt(self: object, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("toolkit.client._sync.handle.Waitable.wait", interrupt)
    assert get_exit_code(monkeypatch, "run", "composition.layout", "title=Tea", "--sandbox") == 130
    assert re.search(r"toolkit runs wait run_\w{26}\n", capsys.readouterr().err)


def test_a_server_gets_the_key_of_the_variable_named(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a variable, then its key is sent, and none other; an account needs none yet."""
    where = ["--base-url", server.url, "--json"]
    runner = CliRunner()
    made = runner.invoke(app, ["account", "open", "ada@example.org", *where])
    monkeypatch.setenv("TEAM_KEY", json.loads(made.stdout)["api_key"])
    monkeypatch.setenv("TOOLKIT_API_KEY", "sk_live_" + "x" * 43)
    shown = runner.invoke(app, ["account", "show", *where, "--api-key-env", "TEAM_KEY"])
    assert json.loads(shown.stdout)["email"] == "ada@example.org"
    assert get_exit_code(monkeypatch, "account", "show", *where) == 3


def test_what_vendors_say_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Given a text with control characters, then they are shown and not sent, in every form."""
    from toolkit.cli.output import ClientOutput
    from toolkit.contract.health import Health

    record = Health(version="\x1b[2J\x9b2J[bold]")
    for as_json in (False, True):
        shell = ClientOutput(None, as_json)  # type: ignore[arg-type]
        shell.print_record(record)
        shell.print_table([record], ["version"])
    shell.print_note(record.version)
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "\x9b" not in shown.out + shown.err
    assert shown.out.count("[bold]") == 4


def test_help_imports_nothing_heavy() -> None:
    """Given a shell that waits for help, then no engine, client or display is imported for it."""
    heavy = "{'httpx', 'pydantic', 'fastapi', 'rich', 'sqlalchemy', 'yaml', 'asyncio'}"
    program = f"import sys, toolkit.cli; print({heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout == "set()\n"
