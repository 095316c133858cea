"""The graph of a workflow, as a `networkx.DiGraph`: checked before anything is stored."""

from collections.abc import Collection, Mapping, Sequence

import networkx as nx

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.workflows import NodeCreate


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
    faults = _find_size_faults(nodes, max_nodes, max_edges)
    graph: nx.DiGraph[str] = nx.DiGraph()
    if not faults:
        known = {node.id for node in nodes}
        faults = _find_reference_faults(nodes, known)
        graph.add_nodes_from(node.id for node in nodes)
        graph.add_edges_from(
            (upstream, node.id)
            for node in nodes
            for upstream in node.depends_on
            if upstream in known and upstream != node.id
        )
        faults += _find_cycle_faults(graph, nodes)
    if faults:
        raise RequestError(
            ErrorCode.INVALID_WORKFLOW, "The graph cannot be run as it is.", details=faults
        )
    return graph


def _find_size_faults(nodes: Sequence[NodeCreate], max_nodes: int, max_edges: int) -> list[Detail]:
    if not nodes:
        return [Detail("nodes", "a workflow needs at least one node")]
    if len(nodes) > max_nodes:
        return [Detail("nodes", f"{len(nodes)} nodes, and at most {max_nodes} are allowed")]
    edges = sum(len(node.depends_on) for node in nodes)
    if edges > max_edges:
        return [Detail("nodes", f"{edges} dependencies, and at most {max_edges} are allowed")]
    return []


def _find_reference_faults(nodes: Sequence[NodeCreate], known: Collection[str]) -> list[Detail]:
    faults = []
    seen: set[str] = set()
    for i, node in enumerate(nodes):
        if node.id in seen:
            faults.append(Detail(f"nodes.{i}.id", f"`{node.id}` is the id of an earlier node"))
        seen.add(node.id)
        named: set[str] = set()
        for j, upstream in enumerate(node.depends_on):
            where = f"nodes.{i}.depends_on.{j}"
            if upstream == node.id:
                faults.append(Detail(where, f"`{node.id}` depends on itself"))
            elif upstream not in known:
                faults.append(Detail(where, f"`{node.id}` depends on an unknown node"))
            elif upstream in named:
                faults.append(Detail(where, f"`{node.id}` names `{upstream}` twice"))
            named.add(upstream)
    return faults


def _find_cycle_faults(graph: "nx.DiGraph[str]", nodes: Sequence[NodeCreate]) -> list[Detail]:
    """Find one cycle in each strongly connected component; to list all could take forever."""
    if nx.is_directed_acyclic_graph(graph):
        return []
    index = {node.id: i for i, node in enumerate(nodes)}
    faults = []
    for knot in nx.strongly_connected_components(graph):
        if len(knot) > 1:
            cycle = [edge[0] for edge in nx.find_cycle(graph.subgraph(knot))]
            path = " → ".join([*cycle, cycle[0]])
            first = min(cycle, key=lambda node_id: index[node_id])
            faults.append(Detail(f"nodes.{index[first]}.depends_on", f"a cycle: {path}"))
    return faults


def find_descendants(node_id: str, depends_on: Mapping[str, Collection[str]]) -> set[str]:
    """Find every node that depends on `node_id`, directly or through others."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(depends_on)
    graph.add_edges_from((up, node) for node, ups in depends_on.items() for up in ups)
    return set(nx.descendants(graph, node_id))
