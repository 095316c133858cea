"""Makes the tables of `docs/benchmarks.md` from figures that were kept; `--check` only compares.

`python -m benchmarks --keep` writes what it found to `figures.jsonl`; `page.toml` says which tables
there are and calls each figure by a name that a reader understands. The page is written by hand
around the tables, each of which stands between two comments. A figure that was kept and stands in
no table is an error, and so is a table that the page has no place for.
"""

import json
import os
import platform
import re
import sqlite3
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Line = Mapping[str, Any]
HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
FIGURES, TABLES = HERE / "figures.jsonl", HERE / "page.toml"
HEAD = ("figure", "before", "value", "floor", "peer", "limit", "kept")


def describe_run(name: str, load: float, took_s: float) -> Line:
    """Describe what a benchmark was run on, as a line before its figures.

    Args:
        name: of the benchmark.
        load: of the machine in the minute before.
        took_s: how long it took.
    """
    return {
        "benchmark": name,
        "measured_on": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "load_before": round(load, 1),
        "took_s": round(took_s),
    }


def read_figures() -> list[Line]:
    """Read what was kept: a line of each benchmark, and those of its figures behind it."""
    return [json.loads(text) for text in FIGURES.read_text("utf-8").splitlines()]


def keep_figures(name: str, found: Sequence[Line]) -> None:
    """Keep the lines of a benchmark, in place of those that it had; the others' stay."""
    kept = {**_group_lines(read_figures() if FIGURES.exists() else []), name: found}
    lines = [json.dumps(line, ensure_ascii=False) for each in sorted(kept) for line in kept[each]]
    FIGURES.write_text("\n".join(lines) + "\n", "utf-8")


def _group_lines(lines: Iterable[Line]) -> dict[str, list[Line]]:
    groups: dict[str, list[Line]] = {}
    name = ""
    for line in lines:
        name = line.get("benchmark", name)
        groups.setdefault(name, []).append(line)
    return groups


def list_benchmarks() -> set[str]:
    """List the benchmarks that the page has figures of."""
    tables = tomllib.loads(TABLES.read_text("utf-8"))
    return {name for table in tables.values() for name in table["benchmarks"]}


def write_page(*, check: bool = False) -> list[str]:
    """Write all tables into the page, and return what is wrong.

    Args:
        check: true to leave the page as it is, and to say if it is not what it would be.
    """
    lines = read_figures()
    figures = {line["figure"]: line for line in lines if "figure" in line}
    runs = {line["benchmark"]: line for line in lines if "benchmark" in line}
    tables = tomllib.loads(TABLES.read_text("utf-8"))
    old = new = PAGE.read_text("utf-8")
    wrong = []
    for name, table in tables.items():
        begin, end = f"<!-- begin: figures of {name} -->", f"<!-- end: figures of {name} -->"
        made = "\n".join([begin, *render_figures(table, figures, runs), end])
        new, places = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", made, new, flags=re.DOTALL)
        if places != 1:
            wrong.append(f"{PAGE.name} has no place for the table {name}")
    named = {figure for table in tables.values() for figure in table["figures"]}
    wrong += [f"no table of {TABLES.name} has {name}" for name in sorted(set(figures) - named)]
    if check and new != old:
        wrong.append(f"{PAGE.name} is not what {FIGURES.name} says: python -m benchmarks._page")
    elif not check:
        PAGE.write_text(new, "utf-8")
    return wrong


def render_figures(
    table: Mapping[str, Any], figures: Mapping[str, Line], runs: Mapping[str, Line]
) -> Iterator[str]:
    """Render a table, with the columns that any of its figures fills, and what it was run on.

    Args:
        table: its figures by name, each with what it `says` and, where there is one, `before`.
        figures: the lines of all figures, by name.
        runs: what benchmarks were run on, by name.
    """
    rows = []
    for name, said in table["figures"].items():
        line = figures.get(name, {})
        cells = {column: _render_figure_cell(column, line) for column in HEAD}
        rows.append({**cells, "figure": said["says"], "before": said.get("before", "")})
    shown = [column for column in HEAD if any(row[column] for row in rows)]
    yield f"| {' | '.join(shown)} |"
    yield "|" + "---|" * len(shown)
    for row in rows:
        yield f"| {' | '.join(row[column] for column in shown)} |"
    if told := _describe_runs([runs[name] for name in table["benchmarks"] if name in runs]):
        yield ""
        yield told


def _render_figure_cell(column: str, line: Line) -> str:
    unit = str(line.get("unit", ""))
    value, bound = line.get(column), line.get("limit", line.get("at_least"))
    if column == "value":
        if not line:
            return "not measured"
        noise = ""
        if line.get("rounds", 1) > 1 and "min" in line:
            noise = f" ({render_number(line['min'])} to {render_number(line['max'])})"
        return f"{render_number(line['value'])}{noise} {unit}"
    if column == "peer" and value is not None:
        return f"{render_number(value)} ({line['peer_name']})"
    if column == "limit" and bound is not None:
        return ("≥ " if line.get("at_least") is not None else "") + render_number(bound)
    if column == "kept" and bound is not None:
        return "yes" if line["kept"] else "no"
    return render_number(value) if column == "floor" and value is not None else ""


def render_number(value: float) -> str:
    """Render a number by three digits, or by all that stand before its point.

    >>> render_number(0.12345), render_number(12.0), render_number(14553.6)
    ('0.123', '12', '14,554')
    """
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _describe_runs(runs: Sequence[Line]) -> str:
    if not runs:
        return ""

    def join(key: str) -> str:
        return " and ".join(sorted({str(run[key]) for run in runs}))

    loads = sorted(run["load_before"] for run in runs)
    load = f"{loads[0]}" if loads[0] == loads[-1] else f"{loads[0]} to {loads[-1]}"
    return (
        f"Measured on {join('measured_on')}: Python {join('python')}, SQLite {join('sqlite')}, "
        f"{join('cores')} cores, whose load was {load} in the minute before."
    )


if __name__ == "__main__":
    found_wrong = write_page(check="--check" in sys.argv)
    print(*found_wrong, sep="\n", file=sys.stderr, end="\n" if found_wrong else "")
    sys.exit(1 if found_wrong else 0)
