"""The graph of a workflow, as a `networkx.DiGraph`: checked before anything is stored."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.workflows import NodeCreate
from toolkit.planning.graph_faults import build_digraph, find_graph_faults

if TYPE_CHECKING:
    import networkx as nx  # slow to import


def build_graph(
    nodes: Sequence[NodeCreate], *, max_nodes: int, max_edges: int
) -> "nx.DiGraph[str]":
    """Build the graph of a submitted workflow, edges pointing from a dependency to its dependent.

    Raises:
        RequestError: `INVALID_WORKFLOW`, with every fault at once, each with its node's id.

    >>> graph = build_graph([NodeCreate(id="a", capability="x")], max_nodes=10, max_edges=10)
    >>> list(graph)
    ['a']
    """
    faults = find_graph_faults(nodes, max_nodes=max_nodes, max_edges=max_edges)
    if faults:
        raise RequestError(
            ErrorCode.INVALID_WORKFLOW, "The graph cannot be run as it is.", details=faults
        )
    return build_digraph(nodes)


def find_descendants(node_id: str, depends_on: Mapping[str, Collection[str]]) -> set[str]:
    """Find every node that depends on `node_id`, directly or through others."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(depends_on)
    graph.add_edges_from((up, node) for node, ups in depends_on.items() for up in ups)
    return set(nx.descendants(graph, node_id))
