"""Nothing of the specification is left out: every section has tests, every row is named in one."""

import importlib
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tests.contract.specification.sections import SECTIONS

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent
# It is not ours to publish: where it lies beside the repository, it is what counts.
SPECIFICATION = ROOT.parent / "shared" / "spec" / "service-v1.md"
MODULES = [
    HERE.parent / "test_specification.py",
    *(path for path in sorted(HERE.glob("test_*.py")) if path != Path(__file__)),
]
# Rows whose first cell is prose, and the words that say the same in the tests.
REWORDED = {
    "V4 (default provider for LLM and voice)": '"V4"',
    "V6 (cloud with managed LLM hosting; id `aws`)": '"V6"',
    "V7 (GPU cloud)": '"V7"',
    "(start)": "being_planned",
    "workflow done": '"reviewing"',
    "review retries": "at_most_twice",
}


def import_module_at(path: Path) -> ModuleType:
    """A module of tests."""
    return importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


@cache
def find_tested_sections() -> frozenset[str]:
    """The sections that tests are marked with."""
    found: set[str] = set()
    for path in MODULES:
        for name, value in vars(import_module_at(path)).items():
            if name.startswith("test_"):
                marks = getattr(value, "pytestmark", [])
                found.update(mark.args[0] for mark in marks if mark.name == "section")
    return frozenset(found)


def headings(text: str) -> list[str]:
    """Its headings, each below the one that it is part of."""
    found, above = [], ""
    for marks, words in re.findall(r"^(##|###) (.+)$", text, re.M):
        above = words if marks == "##" else above
        found.append(words if marks == "##" else f"{above} > {words}")
    return found


def rows(text: str) -> list[str]:
    """The first cell of every row of its tables, but for their heads."""
    cells = []
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        cells += [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    return cells


def is_named(cell: str, tests: str) -> bool:
    """Tell whether the tests name the subject of a row: its code, or its words."""
    if cell in REWORDED:
        return REWORDED[cell] in tests
    words = re.findall(r"`([^`]+)`", cell) or [cell]
    return all(re.sub(r"^nodes\[\]\.?", "", word).strip("[]") in tests for word in words)


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_has_tests(name: str) -> None:
    """Given a section, then some test is marked with it, or with one that is part of it."""
    assert any(
        marked == name or marked.startswith(f"{name} > ") for marked in find_tested_sections()
    )


def test_the_sections_are_the_specifications() -> None:
    """Given the specification, where it is at hand, then our list of its sections is whole."""
    text = SPECIFICATION.read_text(encoding="utf-8") if SPECIFICATION.exists() else None
    assert list(SECTIONS) == (list(SECTIONS) if text is None else headings(text))


def test_every_row_is_named_in_a_test() -> None:
    """Given the specification's tables, where they are at hand, then each row has its test."""
    text = SPECIFICATION.read_text(encoding="utf-8") if SPECIFICATION.exists() else ""
    tests = "\n".join(path.read_text(encoding="utf-8") for path in MODULES)
    assert [cell for cell in rows(text) if not is_named(cell, tests)] == []
