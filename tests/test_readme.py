"""The README without its code blocks, which `test_docs.py` runs."""

import tomllib

from tests.support.code_blocks import ROOT, find_blocks

PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")


def test_starts_with_the_demo_and_the_tests() -> None:
    """Given the README's first screen, then its two bash blocks have one line each."""
    demo, tests = [block.code for block in find_blocks(PAGE, "bash")][:2]
    assert demo.strip().endswith("toolkit demo")
    assert tests.strip().endswith("pytest")
    assert demo.count("\n") == tests.count("\n") == 1
    assert README.index(tests) < 1500  # in the first screen
    assert len(README) <= 7000


def test_changelog_has_the_version() -> None:
    """Given the changelog and the project file, then they name the same version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()
