"""The tiers of the tests: the first by default, and each test in exactly one of them."""

import os
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from tests.support.tiers import EARLY, FIRST_TIER, NEEDS_DEV, OTHER_TIERS, STYLE, TOGETHER

ROOT = Path(__file__).parent.parent
BY_PARAMETER = """
import pytest

@pytest.mark.parametrize("name", ["00_start", "12_label_a_table"])
def test_nbval_passes_a_notebook(name): pass
"""
FILES = {
    "tests/contract/specification/test_new.py": "def test_first(): pass",
    "tests/test_circles.py": "def test_style(): pass",
    "tests/test_teapot.py": "def test_rest(): pass",
    "tests/notebooks/test_scenarios.py": BY_PARAMETER,
}
FIRST = {"test_first", "test_nbval_passes_a_notebook[00_start]"}
REST = {"test_rest", "test_nbval_passes_a_notebook[12_label_a_table]"}
ALL = {*FIRST, *REST, "test_style"}


def run_pytest(project: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a project, by a worker of xdist, as the tests are usually run."""
    command = ["-m", "pytest", "-p", "xdist", "-p", "tests.support.tiers", "-v", "-n", "1", *args]
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=project,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a test in each tier, and a test that is in two tiers by its parameters."""
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n", encoding="utf-8")
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], FIRST),
        (["--tier=rest"], REST),
        (["--tier=style"], {"test_style"}),
        (["tests"], ALL),
        (["-m", "not slow"], ALL - {name for name in ALL if "nbval" in name}),
        (["-k", "rest"], {"test_rest"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_selects_the_tests_of_a_tier(project: Path, args: list[str], expected: set[str]) -> None:
    """Given arguments, when the tests are run, then the tests of the selected tier run."""
    process = run_pytest(project, *args)
    assert process.returncode == 0, process.stdout
    assert set(re.findall(r"PASSED \S+::(\S+)", process.stdout)) == expected
    assert (process.stdout.splitlines()[-1] == OTHER_TIERS) == (args == [])


def test_tables_of_tiers_are_current() -> None:
    """Given the tables of tiers, then each row is a prefix of a file or folder name."""
    tables = {*FIRST_TIER, *STYLE, *EARLY, *NEEDS_DEV, *chain(*TOGETHER)}
    assert [row for row in tables if not list(ROOT.glob(f"{row.partition('::')[0]}*"))] == []
