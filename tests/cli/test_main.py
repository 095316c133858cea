"""The command line, in this process."""

import json
from pathlib import Path

import pytest

from tests.support.commands import run_toolkit, say
from toolkit.contract.errors import ToolkitError


def test_capabilities_are_listed() -> None:
    """When asked what there is, then the seven capabilities of the specification are listed."""
    assert [record["id"] for record in json.loads(say("capabilities", "--json"))][:7] == [
        *("image.generate", "research.gather", "composition.layout", "llm.generate"),
        *("text.generate", "speech.generate", "voice.clone"),
    ]
    assert "composition.layout@1" in say("capabilities")


def test_a_run_prints_its_output_and_saves_its_artifact(tmp_path: Path) -> None:
    """Given a capability and its input, when run, then output is printed and the artifact saved."""
    card = tmp_path / "card.svg"
    given = ["composition.layout", "title=Tea", "format=svg", "width:=600", "height:=400"]
    where = ["--sandbox", "--data-dir", tmp_path / "data", "--save", card]
    assert json.loads(say("run", *given, *where))["width"] == 600
    assert card.read_text().lstrip().startswith(("<svg", "<?xml"))


def test_a_task_saves_what_it_made(tmp_path: Path) -> None:
    """Given an objective, when it is a task, then its artifacts are in the folder."""
    where = ["--sandbox", "--data-dir", tmp_path / "data", "--out", tmp_path / "out"]
    shown = say("task", "A social card about tea", *where)
    paths = [Path(line) for line in shown.split("\n") if line.endswith(".png")]
    assert [path.is_file() for path in paths] == [True]


def test_variables_are_discovered_and_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a variable that is set, then it is found, and connected when picked; never shown."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-to-be-shown")
    discover = ["connections", "discover", "--data-dir", tmp_path]
    shown = run_toolkit(*discover)
    assert "toolkit connections discover --connect openai" in shown.stderr
    rows = json.loads(say(*discover, "--connect", "all", "--json"))
    assert [row["provider"] for row in rows if row["connected"]] == ["openai"]
    assert "not-to-be-shown" not in shown.stdout + json.dumps(rows)


def test_a_connection_is_tried(tmp_path: Path) -> None:
    """Given the sandbox, then a connected vendor works, and one that is not there is named."""
    where = ["--sandbox", "--data-dir", tmp_path]
    assert "works" in say("connections", "test", "openai", *where)
    missed = run_toolkit("connections", "test", "nobody", *where).exception
    assert isinstance(missed, ToolkitError)
    assert "not connected" in str(missed)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [("--faults", "storm.toml", "colour"), ("--cors-origin", "*", "exact origin")],
)
def test_a_server_that_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, value: str, says: str
) -> None:
    """Given a script of faults or an origin that is none, then a line says so, and it ends."""
    monkeypatch.chdir(tmp_path)
    script = "[[fault]]\nvendor = 'openai'\ncolour = 1\n"
    (tmp_path / "storm.toml").write_text(script, encoding="utf-8")
    given = ["serve", option, value, "--data-dir", "data", "--log-format", "text"]
    refused = run_toolkit(*given).exception
    assert isinstance(refused, ToolkitError)
    assert says in str(refused)
    assert "\n" not in str(refused)
