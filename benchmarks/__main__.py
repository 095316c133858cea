"""Run all benchmarks in turn, and print a table of all figures.

Run `python -m benchmarks`, or `python -m benchmarks gateway embedded` for some of them. Every
benchmark runs in its own process, and its JSON lines are printed as they arrive; the table follows
in Markdown. The exit code is 1 if any figure misses its limit.

With `--keep` the figures are written to `benchmarks/figures.jsonl`, and `docs/benchmarks.md` is
updated from them. `PEERS` names Python interpreters that have LangGraph, LiteLLM, DBOS and Prefect
(`_peers.py`).
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping

from benchmarks._page import describe_run, keep_figures, list_benchmarks, render_number, write_page

NAMES = (
    "gateway",
    "embedded",
    "map",
    "batches",
    "peer_tables",
    "cascade",
    "streaming",
    "dag_overhead",
    "critical_path",
    "startup",
    "install_size",
    "cpu_steps",
    "dispatch",
    "artifacts",
    "resilience",
    "budget_truth",
    "large_workflow",
    "many_workflows",
    "many_clients",
    "shared_limits",
    "workers",
    "postgres",
    "store_growth",
    "filtered_lists",
    "large_lists",
    "transfers",
    "object_storage",
    "long_day",
    "batch",
    "progress",
    "live_graph",
    "server_frameworks",
    "planning",
    "review",
)
HEAD = ("figure", "value", "unit", "floor", "peer", "limit", "kept")
Line = Mapping[str, object]


def run_benchmark(name: str) -> Iterator[Line]:
    """Run a benchmark; print the lines of its figures as they come, and yield them.

    A benchmark that ends with an error yields one more line, without a value.
    """
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    has_missed = False
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for text in process.stdout:
            if text.startswith("{"):
                print(text, end="", flush=True)
                line = json.loads(text)
                has_missed |= not line.get("kept", True)
                yield line
    if process.returncode != has_missed:  # an error also ends with exit code 1
        yield {"figure": f"{name} ended with {process.returncode}", "kept": False}


def render_table(lines: Iterable[Line]) -> str:
    """Render figures as a table in Markdown."""
    rows = [[_render_cell(name, line) for name in HEAD] for line in lines]
    rule = ["---", "---:", "---", "---:", "---:", "---:", "---"]
    return "\n".join(f"| {' | '.join(row)} |" for row in [list(HEAD), rule, *rows])


def _render_cell(name: str, line: Line) -> str:
    minimum = line.get("at_least")
    if name == "limit" and minimum is not None:
        return f"≥ {minimum}"
    if name == "kept":
        bound = line.get("limit", minimum)
        verdict = "yes" if line.get("kept") else "no"
        return verdict if bound is not None or not line.get("kept") else ""
    value = line.get(name)
    if isinstance(value, float):
        return render_number(value)
    return "" if value is None else str(value)


def main(arguments: list[str] | None = None) -> int:
    """Run benchmarks; the exit code is 1 if a figure misses its limit."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--keep", action="store_true", help="store the figures and update the page")
    options = parser.parse_args(arguments)
    names = options.names or NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}")
    figures: list[Line] = []
    stored = list_benchmarks() if options.keep else set()
    for name in names:
        load, began = os.getloadavg()[0], time.monotonic()
        lines = list(run_benchmark(name))
        if name in stored and all("value" in line for line in lines):
            keep_figures(name, [describe_run(name, load, time.monotonic() - began), *lines])
        figures += lines
    print()
    print(render_table(figures))
    wrong = write_page() if options.keep else []
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 0 if all(line["kept"] for line in figures) and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
