"""The graph of a workflow."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.workflows import NodeCreate
from toolkit.engine.execution.node_states import find_dependents, find_descendants
from toolkit.engine.execution.workflow_graph import check_graph


def build_nodes(edges: dict[str, list[str]]) -> list[NodeCreate]:
    """Build nodes from the dependencies of each node."""
    return [NodeCreate(id=i, capability="x", depends_on=d) for i, d in edges.items()]


def test_reports_all_faults_at_once() -> None:
    """Given a graph with several faults, then each is reported with the path of its node."""
    edges = {"a": ["b"], "b": ["a"], "c": ["c"], "d": ["ghost"], "e": ["a", "a"]}
    with pytest.raises(RequestError) as caught:
        check_graph(build_nodes(edges), max_nodes=10, max_edges=10)
    assert caught.value.code is ErrorCode.INVALID_WORKFLOW
    assert {detail.path for detail in caught.value.details} == {
        "nodes.0.depends_on",
        "nodes.2.depends_on.0",
        "nodes.3.depends_on.0",
        "nodes.4.depends_on.1",
    }


@pytest.mark.parametrize(("max_nodes", "max_edges"), [(2, 10), (10, 1)])
def test_rejects_a_graph_above_the_limits(max_nodes: int, max_edges: int) -> None:
    """Given more nodes or edges than allowed, then the graph is rejected."""
    nodes = build_nodes({"a": [], "b": ["a"], "c": ["a", "b"]})
    with pytest.raises(RequestError):
        check_graph(nodes, max_nodes=max_nodes, max_edges=max_edges)


def test_rejects_a_dense_cycle_quickly() -> None:
    """Given 30 nodes that all depend on each other, then one cycle is named, quickly."""
    names = [f"n{i}" for i in range(30)]
    nodes = build_nodes({n: [m for m in names if m != n] for n in names})
    began = time.thread_time()
    with pytest.raises(RequestError) as caught:
        check_graph(nodes, max_nodes=50, max_edges=1000)
    assert time.thread_time() - began < 1
    assert len(caught.value.details) == 1


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=30))
def test_accepts_acyclic_graphs(raw: list[list[int]]) -> None:
    """Given dependencies on earlier nodes only, then the graph is accepted."""
    edges = {
        f"n{i}": sorted({f"n{up % i}" for up in ups}) if i else [] for i, ups in enumerate(raw)
    }
    nodes = build_nodes(edges)
    check_graph(nodes, max_nodes=100, max_edges=1000)
    dependents = find_dependents(nodes)
    for node in edges:
        assert {node, *edges[node]}.isdisjoint(find_descendants(node, dependents))
