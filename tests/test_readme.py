"""The README beside its blocks of code, which `test_docs.py` runs."""

import re
import tomllib

from tests.support.code_blocks import ROOT, find_blocks
from toolkit import Client
from toolkit.engine import Registry
from toolkit.settings import Settings

PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")


def test_the_first_two_commands_are_the_demo_and_the_tests() -> None:
    """Given the README's first screen, then its two bash blocks are one line each."""
    demo, tests = [block.code for block in find_blocks(PAGE, "bash")][:2]
    assert demo.strip().endswith("toolkit demo")
    assert tests.strip().endswith("pytest")
    assert demo.count("\n") == tests.count("\n") == 1
    assert README.index(tests) < 1500


def test_the_capability_of_the_readme_runs(settings: Settings) -> None:
    """Given the README's own capability, when it is registered, then it can be run and chained."""
    names: dict[str, object] = {}
    (code,) = [block.code for block in find_blocks(PAGE, "python") if "SHOUT" in block.code]
    exec(compile(code, "README.md", "exec"), names)
    registry = Registry.load(extra=[names["SHOUT"]])  # type: ignore[list-item]
    with Client.local(settings=settings, registry=registry) as client:
        run = client.runs.create("text.shout", {"text": "tea"}).wait()
        assert run.output == {"text": "TEA"}
        assert client.artifacts.get(run.artifact_id).text() == "TEA"


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
