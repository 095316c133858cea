"""The faults of a graph of capabilities, for which plans and workflows are rejected."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Protocol

from pydantic import ValidationError

from toolkit.contract.errors import Detail
from toolkit.contract.jobs import FROM_ARTIFACTS
from toolkit.contract.model_faults import MAX_SUGGESTIONS, explain_fault
from toolkit.contract.suggestions import explain_unknown
from toolkit.plugins import Capability

if TYPE_CHECKING:
    import networkx as nx  # slow to import

UNSURE_FIELD = "Field required, and only an optional node could fill it"


class GraphNode(Protocol):
    """The members that nodes of plans and of workflows have in common."""

    @property
    def id(self) -> str:
        """The id of the node in the graph."""

    @property
    def depends_on(self) -> list[str]:
        """The ids of the nodes that must complete before this node starts."""


def find_graph_faults(
    nodes: Sequence[GraphNode], *, max_nodes: int, max_edges: int
) -> list[Detail]:
    """Find the faults of a graph's size or, if that is right, of its ids and edges.

    >>> from toolkit.contract.plans import PlanNode
    >>> loop = [PlanNode(id="a", capability="x", depends_on=["a"])]
    >>> find_graph_faults(loop, max_nodes=10, max_edges=10)
    [Detail(path='nodes.0.depends_on.0', message='`a` depends on itself')]
    """
    faults = _find_size_faults(nodes, max_nodes, max_edges)
    return faults or [*_find_reference_faults(nodes), *_find_cycle_faults(nodes)]


def _find_size_faults(nodes: Sequence[GraphNode], max_nodes: int, max_edges: int) -> list[Detail]:
    if not nodes:
        return [Detail("nodes", "a workflow needs at least one node")]
    if len(nodes) > max_nodes:
        return [make_count_fault(len(nodes), max_nodes)]
    edges = sum(len(node.depends_on) for node in nodes)
    if edges > max_edges:
        return [Detail("nodes", f"{edges} dependencies, and at most {max_edges} are allowed")]
    return []


def make_count_fault(count: int, max_nodes: int) -> Detail:
    """Make the fault of a graph of too many nodes."""
    return Detail("nodes", f"{count} nodes, and at most {max_nodes} are allowed")


def _find_reference_faults(nodes: Sequence[GraphNode]) -> list[Detail]:
    faults = []
    unknown = 0
    ids = dict.fromkeys(node.id for node in nodes)
    seen: set[str] = set()
    for i, node in enumerate(nodes):
        if node.id in seen:
            faults.append(Detail(f"nodes.{i}.id", f"`{node.id}` is the id of an earlier node"))
        seen.add(node.id)
        upstreams: set[str] = set()
        for j, upstream in enumerate(node.depends_on):
            path = f"nodes.{i}.depends_on.{j}"
            if upstream == node.id:
                faults.append(Detail(path, f"`{node.id}` depends on itself"))
            elif upstream not in ids:
                unknown += 1
                message = f"`{node.id}` depends on an unknown node"
                if unknown <= MAX_SUGGESTIONS:
                    message += f": {explain_unknown('node', upstream, ids)}"
                faults.append(Detail(path, message))
            elif upstream in upstreams:
                faults.append(Detail(path, f"`{node.id}` names `{upstream}` twice"))
            upstreams.add(upstream)
    return faults


def _find_cycle_faults(nodes: Sequence[GraphNode]) -> list[Detail]:
    """Find one cycle in each strongly connected component; listing all could take forever."""
    if _is_ordered(nodes):
        return []
    ids = {node.id for node in nodes}
    sorter = TopologicalSorter[str]()
    for node in nodes:
        sorter.add(node.id, *(up for up in node.depends_on if up in ids and up != node.id))
    with suppress(CycleError):
        sorter.prepare()
        return []
    import networkx as nx  # finds all components that have a cycle

    graph = build_digraph(nodes)
    index = {node.id: i for i, node in enumerate(nodes)}
    faults = []
    for knot in nx.strongly_connected_components(graph):
        if len(knot) > 1:
            cycle = [edge[0] for edge in nx.find_cycle(graph.subgraph(knot))]
            path = " → ".join([*cycle, cycle[0]])
            first = min(cycle, key=lambda node_id: index[node_id])
            faults.append(Detail(f"nodes.{index[first]}.depends_on", f"a cycle: {path}"))
    return faults


def _is_ordered(nodes: Sequence[GraphNode]) -> bool:
    """Check whether every node comes after all of its dependencies, as in most graphs."""
    seen: set[str] = set()
    for node in nodes:
        if not seen.issuperset(node.depends_on):
            return False
        seen.add(node.id)
    return True


def build_digraph(nodes: Sequence[GraphNode]) -> "nx.DiGraph[str]":
    """Build the graph of nodes, with edges from a dependency to its dependent.

    Dependencies on unknown nodes or on the node itself are left out.
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(node.id for node in nodes)
    graph.add_edges_from(
        (upstream, node.id)
        for node in nodes
        for upstream in node.depends_on
        if upstream in graph and upstream != node.id
    )
    return graph


def find_input_faults(
    capability: Capability,
    fields: Mapping[str, object],
    fillable: Collection[str],
    path: str,
    uncertain_fields: Collection[str] = (),
) -> list[Detail]:
    """Find where an input breaks a capability's schema; fields that upstream fills may be missing.

    Args:
        fillable: fields that upstream can fill.
        path: path of the input in the request.
        uncertain_fields: fields that only optional nodes can fill, which may fail.
    """
    if FROM_ARTIFACTS in fields:
        return [Detail(f"{path}.{FROM_ARTIFACTS}", "is set by the service alone")]
    try:
        capability.input_model.model_validate(fields, strict=True)
    except ValidationError as error:
        faults = [
            fault
            for fault in error.errors(include_url=False)
            if not (fault["type"] == "missing" and fault["loc"][0] in fillable)
        ]
        return [
            Detail(
                ".".join([path, *map(str, fault["loc"])]),
                UNSURE_FIELD
                if fault["type"] == "missing" and fault["loc"][0] in uncertain_fields
                else fault["msg"]
                if n >= MAX_SUGGESTIONS
                else explain_fault(capability.input_model, fault),
            )
            for n, fault in enumerate(faults)
        ]
    return []


def find_fillable_fields(capability: Capability, upstream: Iterable[Capability]) -> frozenset[str]:
    """Find the input fields that the artifacts of `upstream` capabilities can fill."""
    if not capability.accepts:
        return frozenset()
    producers = list(upstream)
    return frozenset(
        field
        for field in capability.accepts
        if any(producer.can_fill(capability, field) for producer in producers)
    )
