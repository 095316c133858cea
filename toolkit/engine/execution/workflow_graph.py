"""The graph of a workflow, as a `networkx.DiGraph`: checked before anything is stored."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.suggestions import truncate_text
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


def name_node_faults(node_id: str, faults: Iterable[Detail]) -> list[Detail]:
    """Open what is said of each place of a node with the node's id."""
    named = f"node `{truncate_text(node_id, 100)}`: "
    return [Detail(one.path, named + one.message) for one in faults]


def name_refused_node(
    index: int, node_id: str, error: RequestError, field: str = ""
) -> RequestError:
    """Name the node that a graph is refused for, in the error and in its details.

    Args:
        index: the node's place in the graph.
        node_id: its id.
        error: the reason, as it is for a run.
        field: the field that is at fault; none where that is not known.
    """
    path = f"nodes.{index}" + (f".{field}" if field else "")
    own = [Detail(f"{path}.{one.path}", one.message) for one in error.details]
    return RequestError(
        error.code,
        f"Node `{truncate_text(node_id, 100)}`: {error.message}",
        details=name_node_faults(node_id, own) or [Detail(path, error.message.removesuffix("."))],
    )


def find_descendants(node_id: str, depends_on: Mapping[str, Collection[str]]) -> set[str]:
    """Find every node that depends on `node_id`, directly or through others."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(depends_on)
    graph.add_edges_from((up, node) for node, ups in depends_on.items() for up in ups)
    return set(nx.descendants(graph, node_id))
