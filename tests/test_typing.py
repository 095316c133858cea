"""The public API as a type checker sees it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy is not installed: pip install -e '.[dev]'")

FOLDER = Path(__file__).parent / "typing"
ROOT = FOLDER.parent.parent


@pytest.fixture(scope="module")
def report() -> str:
    """Return the report of mypy strict on both files."""
    files = [str(FOLDER / name) for name in ("accepted.py", "refused.py")]
    command = [sys.executable, "-m", "mypy", "--strict", "--show-error-codes", *files]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert re.search(r"^(Found \d+ errors?|Success)", checked.stdout, re.M), checked.stderr
    return checked.stdout


def test_accepts_documented_calls(report: str) -> None:
    """Given calls as the guides show them, then they have no type errors."""
    assert [line for line in report.splitlines() if "accepted.py" in line] == []


def test_rejects_misspelled_names(report: str) -> None:
    """Given misspelled words and options, then each such line is an error of the expected kind."""
    lines = (FOLDER / "refused.py").read_text(encoding="utf-8").splitlines()
    expected = {
        (number, match[1])
        for number, line in enumerate(lines, 1)
        if (match := re.search(r"# error: (\S+)$", line))
    }
    errors = re.findall(r"refused\.py:(\d+): error: .*\[(\S+)\]$", report, re.M)
    assert {(int(number), code) for number, code in errors} == expected
