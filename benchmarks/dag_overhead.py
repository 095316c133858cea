"""Durable no-op DAGs of 1,000 nodes: the engine's time per node (limit 1.0 ms).

Run `python -m benchmarks.dag_overhead`. The floor, measured in turns with each shape, is an asyncio
loop over the same graph that writes one row per transition to SQLite (WAL) in group commits: the
least work that durable execution needs in Python.

The peer is LangGraph without persistence (`_langgraph.py`), in turns with the engine, if `PEERS`
names a Python that has it (`_peers.py`); otherwise the peer is skipped with a message.
"""

import asyncio
import itertools
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._noop import graph, open_noop_engine, run
from benchmarks._peers import find_peer
from benchmarks._process import Clock
from benchmarks._report import report_rounds
from toolkit.engine.request_context import RequestContext

NODES = 1_000
ROUNDS = 5
LIMIT_MS = 1.0
MOST_OF_PEER = 0.5


def shapes(nodes: int = NODES) -> dict[str, dict[str, list[str]]]:
    """Return a chain, a fan-out with fan-in, and layers with about three edges per node."""
    names = [f"n{i}" for i in range(nodes)]
    chain = {name: names[max(0, i - 1) : i] for i, name in enumerate(names)}
    fan = {names[0]: [], **{n: [names[0]] for n in names[1:-1]}, names[-1]: names[1:-1]}
    rng = random.Random(7)
    layers = [names[i : i + 50] for i in range(0, nodes, 50)]
    layered: dict[str, list[str]] = {name: [] for name in layers[0]}
    for above, below in itertools.pairwise(layers):
        layered.update({name: rng.sample(above, min(3, len(above))) for name in below})
    return {"chain": chain, "fan": fan, "layered": layered}


async def floor(edges: dict[str, list[str]], folder: Path, clock: Clock = time.monotonic) -> float:
    """Measure the seconds of an asyncio loop with grouped SQLite commits for the same graph."""
    db = sqlite3.connect(folder / "floor.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    db.execute("CREATE TABLE IF NOT EXISTS event (node TEXT, state TEXT, doc TEXT)")
    loop = asyncio.get_running_loop()
    waiting = {node: len(upstream) for node, upstream in edges.items()}
    below: dict[str, list[str]] = {node: [] for node in edges}
    for node, upstream in edges.items():
        for up in upstream:
            below[up].append(node)
    pending: list[tuple[tuple[str, str, str], asyncio.Future[None]]] = []

    def flush() -> None:
        batch, pending[:] = list(pending), []
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO event VALUES (?, ?, ?)", [row for row, _ in batch])
        db.execute("COMMIT")
        for _, commit in batch:
            commit.set_result(None)

    def write(node: str, state: str) -> asyncio.Future[None]:
        if not pending:
            loop.call_soon(flush)
        pending.append(((node, state, "{}"), loop.create_future()))
        return pending[-1][1]

    async def node_runs(node: str) -> None:
        for state in ("queued", "running"):
            write(node, state)
        await write(node, "completed")
        for dependent in below[node]:
            waiting[dependent] -= 1
            if not waiting[dependent]:
                group.create_task(node_runs(dependent))

    started = clock()
    async with asyncio.TaskGroup() as group:
        for node in [n for n, count in waiting.items() if not count]:
            group.create_task(node_runs(node))
    took = clock() - started
    db.close()
    return took


def measure_peer(python: str, edges: dict[str, list[str]]) -> float:
    """Measure the milliseconds per node that LangGraph takes for a graph."""
    program = [python, str(Path(__file__).with_name("_langgraph.py"))]
    request = json.dumps({"graph": edges})
    process = subprocess.run(program, check=True, input=request, stdout=subprocess.PIPE, text=True)
    return float(json.loads(process.stdout)["graph"])


async def main(nodes: int = NODES, rounds: int = ROUNDS, clock: Clock = time.monotonic) -> int:
    """Measure every shape in turns with floor and peer; the exit code is 1 if a limit is missed."""
    are_kept = True
    langgraph = find_peer("langgraph")
    for name, edges in shapes(nodes).items():
        took, floors, peer = [], [], []
        for _ in range(rounds):
            if langgraph is not None:
                peer.append(measure_peer(langgraph, edges))
            with tempfile.TemporaryDirectory() as folder:
                floors.append(1000 * await floor(edges, Path(folder), clock) / nodes)
                async with open_noop_engine(Path(folder) / "data") as engine:
                    account, _ = await engine.accounts.open_local_account()
                    context = RequestContext(account.id)
                    _, seconds = await run(engine, context, graph(edges), clock)
                    took.append(1000 * seconds / nodes)
        are_kept &= report_rounds(
            f"dag_overhead.{name}", took, "ms/node", floors=floors, limit=LIMIT_MS,
            peers=peer, peer="LangGraph", edges=sum(map(len, edges.values())),
        )  # fmt: skip
        if peer:
            are_kept &= report_rounds(
                f"dag_overhead.{name}.of_langgraph",
                [ours / theirs for ours, theirs in zip(took, peer, strict=True)],
                "x LangGraph's time",
                floors=[ours / theirs for ours, theirs in zip(floors, peer, strict=True)],
                limit=MOST_OF_PEER,
            )
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
