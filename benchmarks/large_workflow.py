"""One workflow of 10,000 and of 50,000 nodes: its peak memory, and time that is linear in nodes.

Run `python -m benchmarks.large_workflow`; `--small` only shows that it works. Every size of every
shape is a process of its own, so that peaks are its own; sizes take turns, so that what else the
machine does meets all of them. Linear means that a node of either costs at most 1.1 times what a
node of 1,000 does, by the medians of such ratios. 10,000 nodes may take 400 MB. A process first
carries out a small workflow, as what is done first is imported first, which is not to be taken for
the cost of few nodes.

The floor of the time, run in the same process after the engine's peak was read, is that of
`dag_overhead`: bare asyncio with one row per transition in SQLite. The floor of the memory is the
same process with an engine that has been opened and has run nothing. A node may depend on 1,000
others at most, so what fans out to more is gathered in groups before the last node.
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
    """One node, all others behind it, and a last one that gathers them, by groups if need be."""
    first, *others, last = [f"n{i}" for i in range(nodes)]
    groups = -(-len(others) // MOST_UPSTREAM) if len(others) > MOST_UPSTREAM else 0
    gatherers, wide = others[:groups], others[groups:]
    edges: dict[str, list[str]] = {first: [], **{node: [first] for node in wide}}
    for i, gatherer in enumerate(gatherers):
        edges[gatherer] = wide[i::groups]
    edges[last] = gatherers or wide
    return edges


async def measure(shape: str, nodes: int, clock: Clock = time.monotonic) -> dict[str, float]:
    """What one workflow takes in this process: ms/node by a clock, its floor, and megabytes."""
    edges = fan(nodes) if shape == "fan" else shapes(nodes)[shape]
    with tempfile.TemporaryDirectory() as folder:
        most = max(nodes, WARMING)
        limits = {"max_nodes": most, "max_edges": 4 * most, "max_values": 50 * most}
        async with open_noop_engine(Path(folder) / "data", **limits) as engine:
            account, _ = await engine.accounts.open_local_account()
            context = RequestContext(account.id)
            await run(engine, context, graph(shapes(WARMING)[shape]))
            before = peak_mb()
            _, took = await run(engine, context, graph(edges), clock)
            peak = peak_mb()
        least = await floor(edges, Path(folder), clock)
    return {
        "ms": 1000 * took / nodes,
        "floor_ms": 1000 * least / nodes,
        "peak_mb": peak,
        "floor_mb": before,
    }


def measured(shape: str, nodes: int) -> dict[str, float]:
    """The same, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.large_workflow", shape, str(nodes)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def main(names: Sequence[str] = SHAPES, sizes: Sequence[int] = SIZES, rounds: int = ROUNDS) -> int:
    """Measure every shape and size in turns; exit code 1 if a limit is not kept."""
    kept = True
    for name in names:
        found: dict[int, list[dict[str, float]]] = {nodes: [] for nodes in sizes}
        for _ in range(rounds):
            for nodes in sizes:
                found[nodes].append(measured(name, nodes))
        ms = {nodes: [row["ms"] for row in rows] for nodes, rows in found.items()}
        least = {nodes: [row["floor_ms"] for row in rows] for nodes, rows in found.items()}
        for nodes, rows in found.items():
            figure = f"large_workflow.{name}.{nodes}"
            report_rounds(figure, ms[nodes], "ms/node", floors=least[nodes], limit=None)
            peaks = [row["peak_mb"] for row in rows]
            kept &= report(
                f"{figure}.memory",
                max(peaks),
                "MB",
                floor=statistics.median(row["floor_mb"] for row in rows),
                limit=MOST_MB.get(nodes),
                **spread(peaks, 1),
            )
        few, *more = sizes
        for nodes in more:
            kept &= report_rounds(
                f"large_workflow.{name}.{nodes}.growth",
                [many / one for many, one in zip(ms[nodes], ms[few], strict=True)],
                f"x ms/node of {few:,}",
                floors=[many / one for many, one in zip(least[nodes], least[few], strict=True)],
                limit=MOST_GROWTH,
            )
    return 0 if kept else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--small"]:
            sys.exit(main(("fan",), (20, 40), 1))
        case [shape, nodes]:
            print(json.dumps(asyncio.run(measure(shape, int(nodes)))))
        case _:
            sys.exit(main())
