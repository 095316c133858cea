"""The graph of a workflow, checked before it is stored, and the options of its nodes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolkit.contract.base import JsonObject
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.jobs import Options
from toolkit.contract.suggestions import truncate_text
from toolkit.contract.workflows import FUNCTION_CAPABILITY, NodeCreate, WorkflowCreate
from toolkit.planning.graph_faults import find_graph_faults, make_count_fault
from toolkit.plugins import Capability

DEFAULT_OPTIONS = Options()
PLACE_FIELDS = frozenset({"endpoint_id", "compute_id"})  # where GPU work runs


def check_graph(nodes: Sequence[NodeCreate], *, max_nodes: int, max_edges: int) -> None:
    """Check the graph of a submitted workflow.

    Raises:
        RequestError: `INVALID_WORKFLOW`, with every fault at once, each with its node's id.
    """
    faults = find_graph_faults(nodes, max_nodes=max_nodes, max_edges=max_edges)
    if faults:
        raise _make_refusal(faults)


def check_node_count(count: int, max_nodes: int) -> None:
    """Check the number of a submitted workflow's nodes, before anything is known of them.

    Raises:
        RequestError: `INVALID_WORKFLOW`.
    """
    if count > max_nodes:
        raise _make_refusal([make_count_fault(count, max_nodes)])


def _make_refusal(faults: list[Detail]) -> RequestError:
    return RequestError(ErrorCode.INVALID_WORKFLOW, "The graph is invalid.", details=faults)


def find_node_capabilities(
    require: Callable[[str], Capability], nodes: Iterable[NodeCreate]
) -> dict[str, Capability]:
    """Find the capability of each node, by node id.

    Args:
        require: finds a capability by its name.
        nodes: the graph.

    Raises:
        RequestError: `NOT_FOUND` or `CAPABILITY_UNAVAILABLE`, which names the node.
    """
    capabilities: dict[str, Capability] = {}
    for i, node in enumerate(nodes):
        try:
            capabilities[node.id] = require(node.capability)
        except RequestError as error:
            raise name_refused_node(i, node.id, error, "capability") from None
    return capabilities


def name_node_faults(node_id: str, faults: Iterable[Detail]) -> list[Detail]:
    """Return the faults of a node with its id before each message."""
    prefix = f"node `{truncate_text(node_id, 100)}`: "
    return [Detail(fault.path, prefix + fault.message) for fault in faults]


def name_refused_node(
    index: int, node_id: str, error: RequestError, field: str = ""
) -> RequestError:
    """Return an error like another that names the node at fault in its message and its details.

    Args:
        index: the node's index in the graph.
        node_id: the node's id.
        error: the reason, as it is for a run.
        field: the field that is at fault; empty if not known.
    """
    path = f"nodes.{index}" + (f".{field}" if field else "")
    faults = [Detail(f"{path}.{detail.path}", detail.message) for detail in error.details]
    return RequestError(
        error.code,
        f"Node `{truncate_text(node_id, 100)}`: {error.message}",
        details=name_node_faults(node_id, faults)
        or [Detail(path, error.message.removesuffix("."))],
    )


def make_spec(options: Mapping[str, Options], kept_jobs: Mapping[str, str]) -> JsonObject:
    """Make the JSON that is stored with a workflow's record.

    Args:
        options: the options of each node, by node id; default options are left out.
        kept_jobs: the jobs of nodes that are taken over from another workflow, by node id.
    """
    documents = {
        node_id: node_options.model_dump(mode="json", exclude_defaults=True)
        for node_id, node_options in options.items()
        if node_options is not DEFAULT_OPTIONS
    }
    return {"options": documents, "kept": dict(kept_jobs)}


def merge_node_options(request: WorkflowCreate) -> dict[str, Options]:
    """Merge each node's options over the workflow's, by node id.

    The workflow's budget and deadline are not passed on to nodes, nor its provider to functions.
    """
    common = request.options.model_dump(
        exclude_defaults=True, exclude={"max_cost_usd", "deadline_s"}
    )
    # Work runs at one place, an endpoint or a compute; the more specific option decides.
    if request.endpoint_id is not None:
        common |= {"endpoint_id": request.endpoint_id, "compute_id": None}
    elif request.compute_id is not None:
        common |= {"compute_id": request.compute_id, "endpoint_id": None}
    everyones = Options(**common) if common else DEFAULT_OPTIONS
    node_options = {
        node.id: _merge_options(common, node.options)
        if node.options.model_fields_set
        else everyones
        for node in request.nodes
    }
    if "provider" in common:  # not meant for functions, which call no provider
        for node in request.nodes:
            if node.capability == FUNCTION_CAPABILITY and node.options.provider is None:
                node_options[node.id] = node_options[node.id].model_copy(update={"provider": None})
    return node_options


def _merge_options(common: Mapping[str, Any], node_options: Options) -> Options:
    """Merge a node's options over those common to all nodes.

    An endpoint or compute of the node replaces both of the common options.
    """
    overrides = node_options.model_dump(exclude_defaults=True)
    place_fields = PLACE_FIELDS if PLACE_FIELDS & overrides.keys() else frozenset()
    return Options(
        **{name: v for name, v in common.items() if name not in place_fields} | overrides
    )
