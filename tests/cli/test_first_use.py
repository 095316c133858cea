"""Help, imports, node files and first use of the command line."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from click import Command
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

import toolkit
from tests.conftest import Server
from tests.contract.execution.test_node_ids import IDS
from tests.support.commands import run_toolkit, say
from toolkit import Client
from toolkit.cli import app
from toolkit.cli.errors import report_error
from toolkit.contract.errors import RequestError
from toolkit.notebook.code_export import render_python


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


def list_commands(
    command: Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield each command and group, with the words that name it."""
    yield path, command
    if isinstance(command, TyperGroup):
        for name, subcommand in command.commands.items():
            yield from list_commands(subcommand, (*path, name))


def strip_frame(text: str) -> str:
    """Remove the frame and all white space from a text."""
    return re.sub(r"[\s│╭╮╰╯─]+", "", text)


COMMANDS = dict(list_commands(get_command(app)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_shows_every_text_whole(path: tuple[str, ...]) -> None:
    """Given any command, then its help shows each text: none is rendered as markup."""
    command = COMMANDS[path]
    environment = {"COLUMNS": "3000", "TERMINAL_WIDTH": "3000", "NO_COLOR": "1", "TERM": "dumb"}
    page = strip_frame(CliRunner().invoke(app, [*path, "--help"], env=environment).output)
    texts = [getattr(parameter, "help", None) or "" for parameter in command.params]
    texts += (command.help or "").split("\n\n")
    assert any(texts)
    for text in texts:
        assert strip_frame(text) in page


def test_prints_the_version() -> None:
    """Given `--version`, then the command prints the installed version, as the module has it."""
    result = CliRunner().invoke(app, ["--version"])
    assert result.stdout.split() == ["capability-toolkit", version("capability-toolkit")]
    assert toolkit.__version__ == version("capability-toolkit")


# Modules that an engine, a notebook or a picture needs, and modules with a slow import.
HEAVY = {
    "IPython", "alembic", "click", "fastapi", "ipywidgets", "matplotlib", "networkx", "numpy",
    "pandas", "papermill", "pydantic", "pydantic_settings", "rich", "sqlalchemy", "starlette",
    "structlog", "uvicorn", "yaml",
}  # fmt: skip

FLOORS = {f"toolkit.{name}" for name in ("engine", "local", "server", "settings", "store")}

# Runs a command as the installed script does, then prints the imported modules.
PROGRAM = """
import json, sys
from toolkit.cli import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)))
"""


def list_imports(*line: str, **environment: str) -> set[str]:
    """Return the modules that a command imports, in a separate process."""
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *line],
        env={**os.environ, **environment}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert process.stderr.strip() in ("", "There are none."), process.stderr
    return set(json.loads(process.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "line", ["--version", "runs", "capabilities list", "whoami", "account show --json"]
)
def test_command_to_a_server_imports_no_engine(service: Server, key: str, line: str) -> None:
    """Given a server, when a command asks it, then no module that only an engine needs is loaded.

    A time would depend on the machine; the imports do not, and take nearly all of the time.
    """
    modules = list_imports(*line.split(), TOOLKIT_BASE_URL=service.url, TOOLKIT_API_KEY=key)
    assert modules & (HEAVY | FLOORS) == set()
    areas = {name for name in modules if name.startswith("toolkit.cli.resources.")}
    assert areas <= {f"toolkit.cli.resources.{line.split()[0]}"}


BODY = {
    "name": "files",
    "nodes": [
        {"id": node_id, "capability": "research.gather@1", "input": {"topic": "Tea"}}
        for node_id in (*IDS.values(), "a/b", "a_b", "A_B", "x²", "ﬁ", "fi", "import", "wf")
    ],
}


def test_saves_a_file_for_each_node(tmp_path: Path) -> None:
    """Given nodes of any ids, when a run is saved, then each node has a file in the folder."""
    body, out = tmp_path / "body.json", tmp_path / "deep" / "out"
    body.write_text(json.dumps(BODY))
    command = ["workflows", "run", str(body), "--out", str(out), "--quiet", "--json"]
    say(*command, "--sandbox", "--data-dir", tmp_path / "data")
    files = sorted(out.iterdir())
    assert len({path.name.lower() for path in files}) == len(BODY["nodes"])
    assert all(path.is_file() and path.stat().st_size > 100 for path in files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["body.json", "data", "deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_exports_a_variable_for_each_node() -> None:
    """Given nodes of any ids, when exported as Python, then each node has a variable."""
    tree = ast.parse(render_python(BODY))
    names = [
        target.id
        for line in tree.body
        if isinstance(line, ast.Assign)
        for target in line.targets
        if isinstance(target, ast.Name)
    ]
    assert len(set(names)) == len(names) == len(BODY["nodes"]) + 3  # and `client`, `wf`, `run`
