"""Latency-bound DAGs: wall time against the critical path, and against bare asyncio.

Run `python -m benchmarks.critical_path`. `even` is 10 layers of 50 nodes, 20 ms each; `skewed` is
50 independent chains of 10 nodes of 1 to 50 ms, where an engine with level barriers waits for the
slowest node of every level. The floor is a bare asyncio loop that sleeps the same graph, in turns
with the engine; `over_floor` is the engine's time over the floor's.
"""

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._noop import graph, open_noop_engine, run
from benchmarks._process import Clock
from benchmarks._report import report_rounds
from toolkit.engine.request_context import RequestContext

WIDTH, DEPTH, ROUNDS, LIMIT = 50, 10, 5, 1.15
MOST_OVER_FLOOR = {"even": 1.06, "skewed": 1.04}


def even() -> tuple[dict[str, list[str]], dict[str, float]]:
    """Build layers in which every node depends on a node of the layer above."""
    rng = random.Random(3)
    edges: dict[str, list[str]] = {}
    for layer in range(DEPTH):
        for i in range(WIDTH):
            above = [f"n{layer - 1}-{rng.randrange(WIDTH)}"] if layer else []
            edges[f"n{layer}-{i}"] = above
    return edges, dict.fromkeys(edges, 0.02)


def skewed() -> tuple[dict[str, list[str]], dict[str, float]]:
    """Build independent chains with uneven node times."""
    rng = random.Random(5)
    edges = {
        f"c{i}-{step}": [f"c{i}-{step - 1}"] if step else []
        for i in range(WIDTH)
        for step in range(DEPTH)
    }
    return edges, {node: rng.uniform(0.001, 0.05) for node in edges}


def critical_path(edges: dict[str, list[str]], seconds: dict[str, float]) -> float:
    """Return the longest sum of node times along dependencies, in seconds."""
    ends: dict[str, float] = {}
    for node, upstream in edges.items():
        ends[node] = seconds[node] + max((ends[up] for up in upstream), default=0.0)
    return max(ends.values())


async def floor(
    edges: dict[str, list[str]],
    seconds: dict[str, float],
    clock: Clock = time.monotonic,
) -> float:
    """Measure the seconds that bare asyncio takes to sleep the graph."""
    started = clock()
    tasks: dict[str, asyncio.Task[None]] = {}

    async def run_node(node: str) -> None:
        for up in edges[node]:
            await tasks[up]
        await asyncio.sleep(seconds[node])

    for node in edges:
        tasks[node] = asyncio.create_task(run_node(node))
    await asyncio.gather(*tasks.values())
    return clock() - started


async def main(rounds: int = ROUNDS, clock: Clock = time.monotonic) -> int:
    """Measure both shapes; the exit code is 1 if a figure misses its limit."""
    are_kept = True
    for name, shape in {"even": even, "skewed": skewed}.items():
        edges, seconds = shape()
        path = critical_path(edges, seconds)
        ratios, floors = [], []
        for _ in range(rounds):
            floors.append(await floor(edges, seconds, clock) / path)
            with tempfile.TemporaryDirectory() as folder:
                async with open_noop_engine(Path(folder)) as engine:
                    account, _ = await engine.accounts.open_local_account()
                    context = RequestContext(account.id)
                    _, took = await run(engine, context, graph(edges, seconds), clock)
                    ratios.append(took / path)
        are_kept &= report_rounds(
            f"critical_path.{name}", ratios, "x critical path", floors=floors, limit=LIMIT,
            critical_path_ms=round(path * 1000, 1),
        )  # fmt: skip
        are_kept &= report_rounds(
            f"critical_path.{name}.over_floor",
            [ours / bare for ours, bare in zip(ratios, floors, strict=True)],
            "x bare asyncio",
            floors=[1.0],
            limit=MOST_OVER_FLOOR[name],
        )
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
