"""One workflow of 10,000 and of 50,000 nodes: its peak memory, and time that is linear in nodes.

Run `python -m benchmarks.large_workflow`; `--small` only checks that it works. Every size of every
shape runs in its own process, because a peak is counted per process. Sizes take turns, so that
other load on the machine affects all of them. Linear means that a node of either size costs at most
1.1 times as much as a node of 1,000, by the medians of these ratios. 10,000 nodes may take 400 MB.
A process first runs a small workflow, so that imports are not counted as the cost of few nodes.

The floor of the time, measured in the same process after the engine's peak was read, is the floor
of `dag_overhead`: bare asyncio with one row per transition in SQLite. The floor of the memory is
the same process with an engine that has been opened and has run nothing. A node may depend on at
most 1,000 others, so a wider fan-out is gathered in groups before the last node.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks._noop import graph, open_noop_engine, run
from benchmarks._process import Clock, peak_mb, spread
from benchmarks._report import report, report_rounds
from benchmarks.dag_overhead import floor, shapes
from toolkit.engine.request_context import RequestContext

SIZES, ROUNDS, WARMING = (1_000, 10_000, 50_000), 5, 100
MOST_MB, MOST_GROWTH = {10_000: 400.0}, 1.1
MOST_UPSTREAM = 1_000
SHAPES = ("chain", "fan", "layered")


def fan(nodes: int) -> dict[str, list[str]]:
    """Build a fan-out of all nodes behind the first, gathered in groups by the last node."""
    first, *inner, last = [f"n{i}" for i in range(nodes)]
    groups = -(-len(inner) // MOST_UPSTREAM) if len(inner) > MOST_UPSTREAM else 0
    gatherers, wide = inner[:groups], inner[groups:]
    edges: dict[str, list[str]] = {first: [], **{node: [first] for node in wide}}
    for i, gatherer in enumerate(gatherers):
        edges[gatherer] = wide[i::groups]
    edges[last] = gatherers or wide
    return edges


async def measure(shape: str, nodes: int, clock: Clock = time.monotonic) -> dict[str, float]:
    """Measure one workflow in this process: ms per node by a clock, its floor, and megabytes."""
    edges = fan(nodes) if shape == "fan" else shapes(nodes)[shape]
    with tempfile.TemporaryDirectory() as folder:
        max_nodes = max(nodes, WARMING)
        limits = {"max_nodes": max_nodes, "max_edges": 4 * max_nodes, "max_values": 50 * max_nodes}
        async with open_noop_engine(Path(folder) / "data", **limits) as engine:
            account, _ = await engine.accounts.open_local_account()
            context = RequestContext(account.id)
            await run(engine, context, graph(shapes(WARMING)[shape]))
            before = peak_mb()
            _, took = await run(engine, context, graph(edges), clock)
            peak = peak_mb()
        floor_s = await floor(edges, Path(folder), clock)
    return {
        "ms": 1000 * took / nodes,
        "floor_ms": 1000 * floor_s / nodes,
        "peak_mb": peak,
        "floor_mb": before,
    }


def measured(shape: str, nodes: int) -> dict[str, float]:
    """Measure one workflow in a separate process."""
    command = [sys.executable, "-m", "benchmarks.large_workflow", shape, str(nodes)]
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, float] = json.loads(process.stdout)
    return answer


def main(names: Sequence[str] = SHAPES, sizes: Sequence[int] = SIZES, rounds: int = ROUNDS) -> int:
    """Measure every shape and size in turns; the exit code is 1 if a figure misses its limit."""
    are_kept = True
    for name in names:
        results: dict[int, list[dict[str, float]]] = {nodes: [] for nodes in sizes}
        for _ in range(rounds):
            for nodes in sizes:
                results[nodes].append(measured(name, nodes))
        ms = {nodes: [row["ms"] for row in rows] for nodes, rows in results.items()}
        floors = {nodes: [row["floor_ms"] for row in rows] for nodes, rows in results.items()}
        for nodes, rows in results.items():
            figure = f"large_workflow.{name}.{nodes}"
            report_rounds(figure, ms[nodes], "ms/node", floors=floors[nodes], limit=None)
            peaks = [row["peak_mb"] for row in rows]
            are_kept &= report(
                f"{figure}.memory",
                max(peaks),
                "MB",
                floor=statistics.median(row["floor_mb"] for row in rows),
                limit=MOST_MB.get(nodes),
                **spread(peaks, 1),
            )
        few, *larger = sizes
        for nodes in larger:
            are_kept &= report_rounds(
                f"large_workflow.{name}.{nodes}.growth",
                [large / small for large, small in zip(ms[nodes], ms[few], strict=True)],
                f"x ms/node of {few:,}",
                floors=[
                    large / small for large, small in zip(floors[nodes], floors[few], strict=True)
                ],
                limit=MOST_GROWTH,
            )
    return 0 if are_kept else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--small"]:
            sys.exit(main(("fan",), (20, 40), 1))
        case [shape, nodes]:
            print(json.dumps(asyncio.run(measure(shape, int(nodes)))))
        case _:
            sys.exit(main())
