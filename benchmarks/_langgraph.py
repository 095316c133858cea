"""LangGraph, without any persistence, at the graphs of `dag_overhead`: a peer's time for a node.

Run as `PYTHON benchmarks/_langgraph.py < graphs`, by a Python that has langgraph and nothing of
ours: it reads graphs as JSON, each node's id with those it depends on, and prints the milliseconds
that a node of each takes, by its name.
"""

import asyncio
import json
import operator
import sys
import time
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    """How many nodes have run."""

    done: Annotated[int, operator.add]


async def do_nothing(_state: State) -> dict[str, int]:
    """Do what the engine's no-op does."""
    return {"done": 1}


def build_graph(edges: dict[str, list[str]]) -> Any:
    """Build a graph in which a node runs once all that it depends on have."""
    graph = StateGraph(State)
    for node in edges:
        graph.add_node(node, do_nothing)
    for node, upstream in edges.items():
        graph.add_edge(upstream or START, node)
    for last in set(edges).difference(*edges.values()):
        graph.add_edge(last, END)
    return graph.compile()


async def measure_ms(edges: dict[str, list[str]]) -> float:
    """Measure the time that a node takes, in ms, once the graph is built."""
    graph = build_graph(edges)
    config = {"recursion_limit": len(edges) + 10}
    started = time.perf_counter()
    ended = await graph.ainvoke({"done": 0}, config)
    took = time.perf_counter() - started
    assert ended["done"] == len(edges), ended
    return 1000 * took / len(edges)


if __name__ == "__main__":
    graphs = json.load(sys.stdin)
    print(json.dumps({name: asyncio.run(measure_ms(edges)) for name, edges in graphs.items()}))
