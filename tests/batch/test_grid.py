"""Grids: how they are read, and which are rejected before anything runs."""

from pathlib import Path
from typing import Any

import pytest

from toolkit.batch.grid import load_rows, read_defaults
from toolkit.contract.errors import RequestError

DEFAULTS = {"alpha": 0.1, "steps": 10, "city": "Rome", "tags": [], "deep": None}


def cell(source: str, *tags: str) -> dict[str, Any]:
    """Build a code cell."""
    return {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)}}


def test_reads_parameters_of_the_tagged_cell() -> None:
    """Given assignments of every form, then their names and plain defaults are read."""
    cells = [
        cell("hidden = 1"),
        cell("a = 1\nb: str | None = None  # help\nc: float\nd = open\n%time\n", "parameters"),
        cell("not python at all", "parameters"),
    ]
    assert read_defaults({"cells": cells}) == {"a": 1, "b": None, "c": None, "d": None}


def test_reads_types_of_a_csv(tmp_path: Path) -> None:
    """Given a CSV, then numbers are numbers, text stays text, and empty cells are left out."""
    path = tmp_path / "grid.csv"
    path.write_text(
        '\ufeffalpha,steps,city,tags,deep\n0.5,3,007,"[1, 2]",True\n1e3,,Bonn,,plain words\n'
    )
    assert load_rows(path, DEFAULTS) == [
        {"alpha": 0.5, "steps": 3, "city": "007", "tags": [1, 2], "deep": True},
        {"alpha": 1000.0, "city": "Bonn", "deep": "plain words"},
    ]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("alpha: [1, 2.5]\ncity: [Rome, Bonn]\nsteps: 7\n",
         [{"alpha": 1, "city": "Rome", "steps": 7}, {"alpha": 1, "city": "Bonn", "steps": 7},
          {"alpha": 2.5, "city": "Rome", "steps": 7}, {"alpha": 2.5, "city": "Bonn", "steps": 7}]),
        ("- {alpha: 1, tags: [a, b]}\n- {steps: 2}\n",
         [{"alpha": 1, "tags": ["a", "b"]}, {"steps": 2}]),
    ],
    ids=["mapping", "list"],
)  # fmt: skip
def test_combines_a_mapping_but_not_a_list(
    tmp_path: Path, text: str, rows: list[dict[str, object]]
) -> None:
    """Given YAML, then a mapping of lists is their product, and a list holds the rows."""
    path = tmp_path / "grid.yaml"
    path.write_text(text)
    assert load_rows(path, DEFAULTS) == rows


@pytest.mark.parametrize(
    ("name", "text", "message"),
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
def test_rejects_an_unusable_grid(tmp_path: Path, name: str, text: str, message: str) -> None:
    """Given an unusable grid, then the error says where and why, without the value."""
    (tmp_path / name).write_text(text)
    with pytest.raises(RequestError) as caught:
        load_rows(tmp_path / name, DEFAULTS)
    assert message in caught.value.message
    assert "sk-abc" not in str(caught.value)


def test_accepts_a_long_path_of_an_existing_folder(tmp_path: Path) -> None:
    """Given a long path, then it is accepted if its folder exists, and looks like a key if not."""
    folder = tmp_path / ("long" * 12)
    folder.mkdir()
    assert load_rows([{"city": str(folder / "file")}], DEFAULTS)
    with pytest.raises(RequestError, match="looks like a key"):
        load_rows([{"city": "x" * 30 + "/" + "y" * 30}], DEFAULTS)
