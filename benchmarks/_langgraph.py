"""LangGraph without persistence, at the graphs of `dag_overhead`: the time a peer takes for a node.

Run as `PYTHON benchmarks/_langgraph.py < graphs`, by a Python that has langgraph and none of our
packages. It reads graphs as JSON (the id of each node with the ids it depends on), and prints the
milliseconds per node of each graph, by name.
"""

import asyncio
import json
import operator
import sys
import time
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    """The number of nodes that have run."""

    count: Annotated[int, operator.add]


async def do_nothing(_state: State) -> dict[str, int]:
    """Return at once, like the engine's no-op."""
    return {"count": 1}


def build_graph(edges: dict[str, list[str]]) -> Any:
    """Build a graph in which a node runs after all nodes that it depends on."""
    graph = StateGraph(State)
    for node in edges:
        graph.add_node(node, do_nothing)
    for node, upstream in edges.items():
        graph.add_edge(upstream or START, node)
    for last in set(edges).difference(*edges.values()):
        graph.add_edge(last, END)
    return graph.compile()


async def measure_ms(edges: dict[str, list[str]]) -> float:
    """Measure the time per node in ms, without the time to build the graph."""
    graph = build_graph(edges)
    config = {"recursion_limit": len(edges) + 10}
    started = time.perf_counter()
    state = await graph.ainvoke({"count": 0}, config)
    took = time.perf_counter() - started
    assert state["count"] == len(edges), state
    return 1000 * took / len(edges)


if __name__ == "__main__":
    graphs = json.load(sys.stdin)
    print(json.dumps({name: asyncio.run(measure_ms(edges)) for name, edges in graphs.items()}))
