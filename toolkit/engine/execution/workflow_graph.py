"""The graph of a workflow: checked before it is stored, and followed where parts run again."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.workflows import NodeCreate
from toolkit.planning.graph_faults import find_graph_faults


def check_graph(nodes: Sequence[NodeCreate], *, max_nodes: int, max_edges: int) -> None:
    """Check the graph of a submitted workflow.

    Raises:
        RequestError: `INVALID_WORKFLOW`, with every fault at once, each with its node's id.
    """
    faults = find_graph_faults(nodes, max_nodes=max_nodes, max_edges=max_edges)
    if faults:
        raise RequestError(
            ErrorCode.INVALID_WORKFLOW, "The graph cannot be run as it is.", details=faults
        )


def find_descendants(node_id: str, depends_on: Mapping[str, Collection[str]]) -> set[str]:
    """Find every node that depends on `node_id`, directly or through others.

    >>> sorted(find_descendants("a", {"a": [], "b": ["a"], "c": ["b"], "d": []}))
    ['b', 'c']
    """
    dependents = defaultdict(list)
    for node, upstream in depends_on.items():
        for one in upstream:
            dependents[one].append(node)
    found: set[str] = set()
    waiting = [node_id]
    while waiting:
        new = set(dependents[waiting.pop()]) - found
        found |= new
        waiting += new
    return found
