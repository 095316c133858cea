"""The shape of a workflow."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.workflows import NodeCreate
from toolkit.engine.execution.node_states import find_dependents, find_descendants
from toolkit.engine.execution.workflow_graph import check_graph


def nodes(edges: dict[str, list[str]]) -> list[NodeCreate]:
    """Nodes of some capability."""
    return [NodeCreate(id=i, capability="x", depends_on=d) for i, d in edges.items()]


def test_all_faults_are_named_at_once() -> None:
    """Given a graph with several faults, then each is reported with the path of its node."""
    with pytest.raises(RequestError) as refused:
        check_graph(
            nodes({"a": ["b"], "b": ["a"], "c": ["c"], "d": ["ghost"], "e": ["a", "a"]}),
            max_nodes=10,
            max_edges=10,
        )
    assert refused.value.code is ErrorCode.INVALID_WORKFLOW
    paths = {detail.path for detail in refused.value.details}
    assert paths == {
        "nodes.0.depends_on",
        "nodes.2.depends_on.0",
        "nodes.3.depends_on.0",
        "nodes.4.depends_on.1",
    }


@pytest.mark.parametrize(("max_nodes", "max_edges"), [(2, 10), (10, 1)])
def test_limits_are_kept(max_nodes: int, max_edges: int) -> None:
    """Given more nodes or edges than allowed, then the graph is refused."""
    with pytest.raises(RequestError):
        check_graph(
            nodes({"a": [], "b": ["a"], "c": ["a", "b"]}), max_nodes=max_nodes, max_edges=max_edges
        )


def test_a_dense_knot_is_refused_at_once() -> None:
    """Given 30 nodes that all depend on each other, then one cycle is named, quickly."""
    names = [f"n{i}" for i in range(30)]
    started = time.thread_time()
    with pytest.raises(RequestError) as refused:
        check_graph(
            nodes({n: [m for m in names if m != n] for n in names}), max_nodes=50, max_edges=1000
        )
    assert time.thread_time() - started < 1
    assert len(refused.value.details) == 1


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=30))
def test_acyclic_graphs_are_accepted(raw: list[list[int]]) -> None:
    """Given dependencies on earlier nodes only, then the graph is accepted."""
    edges = {
        f"n{i}": sorted({f"n{up % i}" for up in ups}) if i else [] for i, ups in enumerate(raw)
    }
    graph = nodes(edges)
    check_graph(graph, max_nodes=100, max_edges=1000)
    dependents = find_dependents(graph)
    for node in edges:
        assert {node, *edges[node]}.isdisjoint(find_descendants(node, dependents))
