"""The arithmetic of the page on scale, repeated from the stored figures and the settings."""

import inspect
import math
import re
from collections.abc import Iterator

import pytest
from sqlalchemy.pool import QueuePool

from benchmarks._page import read_figures, render_number
from tests.support.code_blocks import ROOT
from toolkit.settings import Settings
from toolkit.store.postgres.database import POOL_SIZE
from toolkit.store.postgres.reads import MAX_CONNECTIONS

PAGE = ROOT / "docs" / "scale.md"
RATES = (10, 1_000, 100_000)
# A figure, or a member of its line: `postgres.run_cpu`, `postgres.run_cpu.floor`.
FIGURE = re.compile(r"[a-z_]+(?:\.\w+)+")
NAME = re.compile(r"\b[a-z]\w*_\w+\b(?!\()")
FIGURES = {line["figure"]: line for line in read_figures() if "figure" in line}


def find_figure(match: re.Match[str]) -> str:
    """Return the number that a name in an expression stands for."""
    name = match[0]
    if name in FIGURES:
        return repr(FIGURES[name]["value"])
    figure, _, member = name.rpartition(".")
    return repr(FIGURES[figure][member])


def count_connections() -> int:
    """Count the connections of an engine: a writer, reads, small changes, and a listener."""
    overflow = inspect.signature(QueuePool).parameters["max_overflow"].default
    return int(1 + MAX_CONNECTIONS + POOL_SIZE + overflow + 1)


def find_setting(match: re.Match[str]) -> str:
    """Return the default of a setting, or the connections of an engine."""
    if match[0] == "engine_connections":
        return str(count_connections())
    return repr(Settings.model_fields[match[0]].default)


def compute(expression: str, names: dict[str, float]) -> float:
    """Compute an expression of the page."""
    numbers = NAME.sub(find_setting, FIGURE.sub(find_figure, expression))
    assert re.fullmatch(r"[\w\s.+*/()-]+", numbers), numbers
    return float(eval(numbers, {"ceil": math.ceil, "__builtins__": {}}, names))


def list_rows() -> Iterator[tuple[str, str, list[str]]]:
    """List the rows with arithmetic: the first cell, the expression, and the cells of values."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        places = [i for i, cell in enumerate(cells) if re.fullmatch(r"`[^`]+`", cell)]
        if line.startswith("|") and places:
            yield cells[0], cells[places[0]].strip("`"), cells[places[0] + 1 :]


def test_arithmetic_of_the_page_is_right() -> None:
    """Given the stored figures and the settings, then each computed value of the page is theirs."""
    names: dict[str, float] = {}
    rows = list(list_rows())
    for label, expression, values in rows:
        rates = RATES if len(values) == len(RATES) else (None,)
        for rate, cell in zip(rates, values, strict=True):
            value = compute(expression, names if rate is None else {**names, "r": rate})
            assert cell.split()[0] == render_number(value), f"{label}: {expression}"
            if re.fullmatch("[A-Z]", label):
                names[label] = value
    assert len(rows) > 20
    assert set(names) == set("ABCDEFGHIJK")


@pytest.mark.parametrize(
    ("name", "member", "text"),
    [
        ("postgres.runs.1", "value", "one engine 1,152 runs"),
        ("postgres.runs.2", "value", "engines 1,395"),
        ("postgres.runs.1", "peer", "DBOS ended 241 workflows"),
    ],
)
def test_sentences_have_the_stored_figures(name: str, member: str, text: str) -> None:
    """Given a figure in a sentence of the page, then it is the stored figure."""
    assert render_number(FIGURES[name][member]) in text
    assert text in " ".join(PAGE.read_text(encoding="utf-8").split())
