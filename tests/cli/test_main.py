"""The command line, in this process."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolkit.cli import app
from toolkit.contract.errors import ToolkitError

runner = CliRunner()


def test_capabilities_are_listed() -> None:
    """When asked what there is, then the seven capabilities of the specification are listed."""
    shown = runner.invoke(app, ["capabilities", "--json"])
    assert [record["id"] for record in json.loads(shown.stdout)][:7] == [
        "image.generate",
        "research.gather",
        "composition.layout",
        "llm.generate",
        "text.generate",
        "speech.generate",
        "voice.clone",
    ]
    assert "composition.layout@1" in runner.invoke(app, ["capabilities"]).stdout


def test_a_run_prints_its_output_and_saves_its_artifact(tmp_path: Path) -> None:
    """Given a capability and its input, when run, then output is printed and the artifact saved."""
    card = tmp_path / "card.svg"
    given = ["composition.layout", "title=Tea", "format=svg", "width:=600", "height:=400"]
    where = ["--sandbox", "--data-dir", str(tmp_path / "data"), "--save", str(card)]
    shown = runner.invoke(app, ["run", *given, *where], catch_exceptions=False)
    assert json.loads(shown.stdout)["width"] == 600
    assert card.read_text().lstrip().startswith(("<svg", "<?xml"))


def test_a_task_saves_what_it_made(tmp_path: Path) -> None:
    """Given an objective, when it is a task, then its artifacts are in the folder."""
    where = ["--sandbox", "--data-dir", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    shown = runner.invoke(app, ["task", "A social card about tea", *where], catch_exceptions=False)
    paths = [Path(line) for line in shown.stdout.split("\n") if line.endswith(".png")]
    assert [path.is_file() for path in paths] == [True]


@pytest.mark.parametrize("field", ["nonsense", "width:=wide"])
def test_a_field_that_is_none_is_said_in_one_line(tmp_path: Path, field: str) -> None:
    """Given an argument that is no field, then the error is one of ours, with what to do."""
    with pytest.raises(ToolkitError) as refused:
        runner.invoke(
            app,
            ["run", "composition.layout", field, "--data-dir", str(tmp_path)],
            catch_exceptions=False,
        )
    assert "\n" not in str(refused.value)


def test_variables_are_discovered_and_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a variable that is set, then it is found, and connected when picked; never shown."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-to-be-shown")
    where = ["--data-dir", str(tmp_path)]
    shown = runner.invoke(app, ["connections", "discover", *where], catch_exceptions=False)
    assert "toolkit connections discover --connect openai" in shown.stderr
    picked = ["connections", "discover", "--connect", "all", "--json", *where]
    rows = json.loads(runner.invoke(app, picked, catch_exceptions=False).stdout)
    assert [row["provider"] for row in rows if row["connected"]] == ["openai"]
    assert "not-to-be-shown" not in shown.stdout + json.dumps(rows)


def test_a_connection_is_tried(tmp_path: Path) -> None:
    """Given the sandbox, then a connected vendor works, and one that is not there is named."""
    where = ["--sandbox", "--data-dir", str(tmp_path)]
    shown = runner.invoke(app, ["connections", "test", "openai", *where], catch_exceptions=False)
    assert (shown.exit_code, "works" in shown.stdout) == (0, True)
    with pytest.raises(ToolkitError, match="not connected"):
        runner.invoke(app, ["connections", "test", "nobody", *where], catch_exceptions=False)


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
    with pytest.raises(ToolkitError, match=says) as refused:
        runner.invoke(app, given, catch_exceptions=False)
    assert "\n" not in str(refused.value)
