"""Every section of the specification has tests, and every row of its tables is named in a test."""

import importlib
import re
from functools import cache
from pathlib import Path

import pytest

from tests.contract.specification.sections import SECTIONS

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent
# The specification is not part of the repository; these tests compare with it if it is there.
SPECIFICATION = ROOT.parent / "shared" / "spec" / "service-v1.md"
MODULES = [
    HERE.parent / "test_specification.py",
    HERE.parent / "test_decisions.py",
    *(path for path in sorted(HERE.glob("test_*.py")) if path != Path(__file__)),
]
# Rows whose first cell is prose, and the words of the tests for the same.
REWORDED = {
    "V4 (default provider for LLM and voice)": '"V4"',
    "V6 (cloud with managed LLM hosting; id `aws`)": '"V6"',
    "V7 (GPU cloud)": '"V7"',
    "(start)": "being_planned",
    "workflow done": '"reviewing"',
    "review retries": "at_most_twice",
}


@cache
def find_tested_sections() -> frozenset[str]:
    """Find the sections that tests are marked with."""
    sections: set[str] = set()
    for path in MODULES:
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        tests = [value for name, value in vars(module).items() if name.startswith("test_")]
        for value in (module, *tests):
            marks = getattr(value, "pytestmark", None) or []
            sections.update(mark.args[0] for mark in marks if mark.name == "section")
    return frozenset(sections)


def list_headings(text: str) -> list[str]:
    """List the headings of a page, each below the heading of its section."""
    headings, section = [], ""
    for marks, words in re.findall(r"^(##|###) (.+)$", text, re.M):
        section = words if marks == "##" else section
        headings.append(words if marks == "##" else f"{section} > {words}")
    return headings


def list_first_cells(text: str) -> list[str]:
    """List the first cell of every row of the tables of a page, without the table heads."""
    cells = []
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        cells += [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    return cells


def is_named(cell: str, tests: str) -> bool:
    """Return whether tests name the subject of a row: its code, or its words."""
    if cell in REWORDED:
        return REWORDED[cell] in tests
    words = re.findall(r"`([^`]+)`", cell) or [cell]
    return all(re.sub(r"^nodes\[\]\.?", "", word).strip("[]") in tests for word in words)


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_has_tests(name: str) -> None:
    """Given a section, then a test is marked with it, or with a part of it."""
    assert any(
        marked == name or marked.startswith(f"{name} > ") for marked in find_tested_sections()
    )


@pytest.mark.skipif(not SPECIFICATION.exists(), reason="the specification is not at hand")
def test_tests_name_all_sections_and_rows() -> None:
    """Given the specification, then our list of its sections is whole, and each row has a test."""
    text = SPECIFICATION.read_text(encoding="utf-8")
    tests = "\n".join(path.read_text(encoding="utf-8") for path in MODULES)
    assert list_headings(text) == list(SECTIONS)
    assert [cell for cell in list_first_cells(text) if not is_named(cell, tests)] == []
