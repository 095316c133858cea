"""What the README says, run."""

import re
import tomllib
from pathlib import Path

import pytest

from toolkit import Client
from toolkit.engine import Registry
from toolkit.settings import Settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def test_the_first_two_commands_are_the_demo_and_the_tests() -> None:
    """Given the README's first screen, then its two bash blocks are one line each."""
    demo, tests = blocks("bash")[:2]
    assert demo.strip().endswith("toolkit demo")
    assert tests.strip().endswith("pytest")
    assert demo.count("\n") == tests.count("\n") == 1
    assert README.index(tests) < 1500


def test_the_notebook_lines_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the README's first Python block, when it is run, then a card is on the disk."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in (*blocks("python")[:2], *blocks("python")[3:7]):
        exec(compile(block, "README.md", "exec"), names)
    assert names["route"].provider  # type: ignore[attr-defined]
    assert (tmp_path / "card.png").read_bytes().startswith(b"\x89PNG")
    client = names["client"]
    assert isinstance(client, Client)
    client.close()
    names["stormy"].close()  # type: ignore[attr-defined]


def test_the_capability_of_the_readme_runs(settings: Settings) -> None:
    """Given the README's own capability, when it is registered, then it can be run and chained."""
    names: dict[str, object] = {}
    exec(compile(blocks("python")[7], "README.md", "exec"), names)
    registry = Registry.load(extra=[names["SHOUT"]])  # type: ignore[list-item]
    with Client.local(settings=settings, registry=registry) as client:
        run = client.runs.create("text.shout", {"text": "tea"}).wait()
        assert run.output == {"text": "TEA"}
        assert client.artifacts.get(run.artifact_id).text() == "TEA"


def test_the_settings_of_the_readme_are_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given the README's `toolkit.toml`, then it is read as it says."""
    (tmp_path / "toolkit.toml").write_text(blocks("toml")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    openai = Settings().vendors["openai"]
    assert openai.models["text"] == "llama4"
    assert openai.timeouts.total_s == 300.0


def test_every_command_it_names_exists() -> None:
    """Given the commands in the README, then the command line has each of them."""
    from typer.main import get_command

    from toolkit.cli import app

    named = set(re.findall(r"(?:`|^|/|; )toolkit ([a-z]+)", README, re.M))
    assert named == set(get_command(app).commands)  # type: ignore[attr-defined]


def test_the_version_is_one() -> None:
    """Given the changelog and the project file, then they speak of the same version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()
