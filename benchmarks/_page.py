"""Write the tables and the chart of `docs/benchmarks.md`; `--check` only compares.

`python -m benchmarks --keep` writes its figures to `figures.jsonl`; `page.toml` lists the tables
and a label for each figure that the page shows. The rest of the page is written by hand; each table
is between two comments. It is an error if the page has no place for a table. A figure outside its
limit that no table shows is listed by name.
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

from benchmarks._chart import Line, describe_bars, draw_bars, is_drawn, list_bars

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
CHART = HERE.parent / "docs" / "pictures" / "benchmarks.svg"
FIGURES, TABLES = HERE / "figures.jsonl", HERE / "page.toml"
HEAD = ("figure", "value", "floor", "peer", "limit")


def describe_run(name: str, load: float, took_s: float) -> Line:
    """Describe the run of a benchmark and its machine, as a line before its figures.

    Args:
        name: name of the benchmark.
        load: load average of the machine in the minute before.
        took_s: duration of the run.
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
    """Read the figures file: a line for each benchmark, followed by the lines of its figures."""
    return [json.loads(text) for text in FIGURES.read_text("utf-8").splitlines()]


def keep_figures(name: str, lines: Sequence[Line]) -> None:
    """Replace the lines of a benchmark in the figures file."""
    groups = {**_group_lines(read_figures() if FIGURES.exists() else []), name: lines}
    rows = [json.dumps(line, ensure_ascii=False) for key in sorted(groups) for line in groups[key]]
    FIGURES.write_text("\n".join(rows) + "\n", "utf-8")


def _group_lines(lines: Iterable[Line]) -> dict[str, list[Line]]:
    groups: dict[str, list[Line]] = {}
    name = ""
    for line in lines:
        name = line.get("benchmark", name)
        groups.setdefault(name, []).append(line)
    return groups


def read_tables() -> dict[str, Any]:
    """Read the tables of the page, by name."""
    return tomllib.loads(TABLES.read_text("utf-8"))


def list_benchmarks() -> set[str]:
    """List the benchmarks whose figures are stored, or will be: those of the page's tables."""
    names = {line["benchmark"] for line in read_figures() if "benchmark" in line}
    return names | {name for table in read_tables().values() for name in table["benchmarks"]}


def write_page(*, check: bool = False) -> list[str]:
    """Write all tables and the chart, and return the errors.

    Args:
        check: True leaves the files as they are, and reports an error if one is not up to date.
    """
    lines = read_figures()
    figures = {line["figure"]: line for line in lines if "figure" in line}
    runs = {line["benchmark"]: line for line in lines if "benchmark" in line}
    tables = read_tables()
    labels = {name: text for table in tables.values() for name, text in table["figures"].items()}
    bars = list_bars(labels, figures)
    blocks = {
        f"figures of {name}": "\n".join(render_figures(table, figures, runs))
        for name, table in tables.items()
    }
    blocks["chart"] = f"![{describe_bars(bars)}](pictures/{CHART.name})"
    blocks["missed limits"] = "\n".join(render_missed_limits(figures, labels))
    old = new = PAGE.read_text("utf-8")
    errors = []
    for name, text in blocks.items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        pattern = f"{re.escape(begin)}.*?{re.escape(end)}"
        block = f"{begin}\n{text}\n{end}".replace("\\", r"\\")
        new, places = re.subn(pattern, block, new, flags=re.DOTALL)
        if places != 1:
            errors.append(f"{PAGE.name} lacks the comments {begin} and {end}")
    if check and new != old:
        errors.append(f"{PAGE.name} differs from {FIGURES.name}; run python -m benchmarks._page")
    elif not check:
        PAGE.write_text(new, "utf-8")
    if not is_drawn(bars, CHART):
        if check:
            errors.append(
                f"{CHART.name} differs from {FIGURES.name}; run python -m benchmarks._page"
            )
        else:
            draw_bars(bars, CHART)
    return errors


def render_missed_limits(figures: Mapping[str, Line], labels: Mapping[str, str]) -> Iterator[str]:
    """Render a list of the figures that miss their limits and that no table shows.

    Args:
        figures: lines of all figures, by name.
        labels: labels of the figures that the tables show, by name.
    """
    for name, line in figures.items():
        if not line["kept"] and name not in labels:
            value, limit = (_render_figure_cell(column, line) for column in ("value", "limit"))
            yield f"- `{name}`: {value}, limit {limit.removesuffix(', missed')}"


def render_figures(
    table: Mapping[str, Any], figures: Mapping[str, Line], runs: Mapping[str, Line]
) -> Iterator[str]:
    """Render a table without its empty columns, and the command, date and machine of its figures.

    Args:
        table: names of its benchmarks, and the label of each figure.
        figures: lines of all figures, by name.
        runs: line of each benchmark's run, by name.
    """
    rows = []
    for name, label in table["figures"].items():
        line = figures.get(name, {})
        rows.append({column: _render_figure_cell(column, line) for column in HEAD})
        rows[-1]["figure"] = label
    columns = [column for column in HEAD if any(row[column] for row in rows)]
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield f"| {' | '.join(row[column] for column in columns)} |"
    if measured := [runs[name] for name in table["benchmarks"] if name in runs]:
        yield ""
        yield _describe_runs(table["benchmarks"], measured)


def _render_figure_cell(column: str, line: Line) -> str:
    unit = str(line.get("unit", ""))
    value, bound = line.get(column), line.get("limit", line.get("at_least"))
    if column == "value":
        if not line:
            return "not measured"
        cell = f"{render_number(line['value'])} {unit}"
        if line.get("rounds", 1) > 1 and "min" in line:
            cell += f" ({render_number(line['min'])}–{render_number(line['max'])})"
        return cell
    if column == "peer" and value is not None:
        return f"{render_number(value)} ({line['peer_name']})"
    if column == "limit" and bound is not None:
        limit = ("≥ " if line.get("at_least") is not None else "") + render_number(bound)
        return limit if line["kept"] else f"{limit}, missed"
    return render_number(value) if column == "floor" and value is not None else ""


def render_number(value: float) -> str:
    """Render a number with three digits, or with all digits before its point.

    >>> render_number(0.12345), render_number(12.0), render_number(14553.6)
    ('0.123', '12', '14,554')
    """
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _describe_runs(benchmarks: Sequence[str], runs: Sequence[Line]) -> str:
    def join(key: str) -> str:
        return " and ".join(sorted({str(run[key]) for run in runs}))

    loads = sorted(run["load_before"] for run in runs)
    load = f"{loads[0]}" if loads[0] == loads[-1] else f"{loads[0]}–{loads[-1]}"
    return (
        f"`python -m benchmarks {' '.join(benchmarks)}`, {join('measured_on')}: "
        f"Python {join('python')}, SQLite {join('sqlite')}, {join('cores')} cores, "
        f"load {load}."
    )


if __name__ == "__main__":
    errors = write_page(check="--check" in sys.argv)
    print(*errors, sep="\n", file=sys.stderr, end="\n" if errors else "")
    sys.exit(1 if errors else 0)
