"""Grids: how they are read, and what is refused before anything runs."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from toolkit.batch.grid import load_rows, read_defaults
from toolkit.contract.errors import RequestError

KNOWN = {"alpha": 0.1, "steps": 10, "city": "Rome", "tags": [], "deep": None}


def cell(source: str, *tags: str) -> dict[str, Any]:
    """A code cell."""
    return {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)}}


def test_parameters_are_what_the_tagged_cell_assigns() -> None:
    """Given assignments of every form, then names and plain defaults are known, others not."""
    cells = [
        cell("hidden = 1"),
        cell("a = 1\nb: str | None = None  # help\nc: float\nd = open\n%time\n", "parameters"),
        cell("not python at all", "parameters"),
    ]
    assert read_defaults({"cells": cells}) == {"a": 1, "b": None, "c": None, "d": None}


def test_a_csv_keeps_types(tmp_path: Path) -> None:
    """Given a CSV, then numbers are numbers, text stays text, and empty cells are left out."""
    path = tmp_path / "grid.csv"
    path.write_text(
        '\ufeffalpha,steps,city,tags,deep\n0.5,3,007,"[1, 2]",True\n1e3,,Bonn,,plain words\n'
    )
    assert load_rows(path, KNOWN) == [
        {"alpha": 0.5, "steps": 3, "city": "007", "tags": [1, 2], "deep": True},
        {"alpha": 1000.0, "city": "Bonn", "deep": "plain words"},
    ]


def test_a_mapping_is_combined_and_a_list_is_not(tmp_path: Path) -> None:
    """Given YAML, then lists in a mapping are combined, each with each; rows are taken as given."""
    path = tmp_path / "grid.yaml"
    path.write_text("alpha: [1, 2.5]\ncity: [Rome, Bonn]\nsteps: 7\n")
    assert load_rows(path, KNOWN) == [
        {"alpha": alpha, "city": city, "steps": 7}
        for alpha in (1, 2.5)
        for city in ("Rome", "Bonn")
    ]
    path.write_text("- {alpha: 1, tags: [a, b]}\n- {steps: 2}\n")
    assert load_rows(path, KNOWN) == [{"alpha": 1, "tags": ["a", "b"]}, {"steps": 2}]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("grid.csv", "alpha,beta\n1,2\n", "no parameter `beta`; it has alpha, steps"),
        ("grid.csv", "alpha,steps\n1\n", "Row 1 of the grid"),
        ("grid.csv", "alpha\n", "no rows"),
        ("grid.yaml", "alpha: [1", "not YAML"),
        ("grid.yaml", "7", "a list of rows"),
        ("grid.yaml", "{}", "no rows"),
        ("grid.json", "{}", "use .csv or .yaml"),
        ("grid.yaml", "- {alpha: 1}\n- {alpha: 2}\n- {alpha: 1}", "Rows 1 and 3 are equal"),
        ("grid.yaml", "deep: [{inner: 2026-01-01}]", "is of type date: write it as text"),
        ("grid.yaml", "deep: [[{k: sk-abcdefghijklmnop}]]", "`rows.1.deep` looks like a key"),
    ],
)
def test_a_grid_is_refused(tmp_path: Path, name: str, text: str, says: str) -> None:
    """Given a grid that cannot be used, then the sentence says where and why, never the value."""
    (tmp_path / name).write_text(text)
    with pytest.raises(RequestError) as refused:
        load_rows(tmp_path / name, KNOWN)
    assert says in refused.value.message
    assert "sk-abc" not in str(refused.value)


def test_a_long_path_is_no_key(tmp_path: Path) -> None:
    """Given a long path whose folder is there, then it is taken; without its folder it is not."""
    folder = tmp_path / ("long" * 12)
    folder.mkdir()
    assert load_rows([{"city": str(folder / "file")}], KNOWN)
    with pytest.raises(RequestError, match="looks like a key"):
        load_rows([{"city": "x" * 30 + "/" + "y" * 30}], KNOWN)
    with pytest.raises(RequestError, match="is of type date"):
        load_rows([{"city": date(2026, 1, 1)}], KNOWN)
