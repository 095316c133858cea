"""The validator of plans of any planner, which reports every fault at once; the engine calls it.

`POST /v1/workflows` accepts a plan without faults, unless the account prevents it: the engine
checks the connections, the stored artifacts and the budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from toolkit.contract.errors import Detail
from toolkit.contract.plans import PlanNode
from toolkit.contract.suggestions import ask_meant
from toolkit.contract.workflows import NodeId
from toolkit.planning.graph_faults import find_fillable_fields, find_graph_faults, find_input_faults
from toolkit.plugins import Capability

MAX_NODES = 50
# A graph beyond these limits is not checked further.
MAX_CHECKED_NODES = 1_000
MAX_CHECKED_EDGES = 10_000

_NODE_ID: TypeAdapter[str] = TypeAdapter(NodeId)


@dataclass(frozen=True, slots=True)
class PlanRules:
    """The rules that a plan is validated against.

    Attributes:
        capabilities: all capabilities, by id (the newest version) and by `id@version`.
        allowed: ids of the capabilities that a plan may use; None, the default, allows all.
    """

    capabilities: Mapping[str, Capability]
    allowed: frozenset[str] | None = None


def find_plan_faults(
    nodes: Sequence[PlanNode], deliverables: Sequence[str], rules: PlanRules
) -> list[Detail]:
    """Find every fault of a plan; a plan without faults can run.

    Args:
        deliverables: ids of the nodes whose results were requested.

    Returns:
        the path of each fault (`nodes.3.input.width`), and a sentence.

    >>> find_plan_faults([PlanNode(id="a", capability="a.b")], ["b"], PlanRules({}))[0]
    Detail(path='nodes.0.capability', message='`a.b` is no capability here')
    """
    if len(nodes) > MAX_CHECKED_NODES:
        return find_graph_faults(nodes, max_nodes=MAX_NODES, max_edges=MAX_CHECKED_EDGES)
    faults = _find_size_faults(nodes)
    faults += _find_id_faults(nodes)
    faults += _find_capability_faults(nodes, rules)
    faults += find_graph_faults(nodes, max_nodes=MAX_CHECKED_NODES, max_edges=MAX_CHECKED_EDGES)
    faults += _find_edge_faults(nodes, rules)
    return faults + _find_delivery_faults(nodes, deliverables)


def _find_size_faults(nodes: Sequence[PlanNode]) -> list[Detail]:
    if len(nodes) <= MAX_NODES:
        return []
    return [Detail("nodes", f"{len(nodes)} nodes, and a plan has at most {MAX_NODES}")]


def _find_id_faults(nodes: Sequence[PlanNode]) -> list[Detail]:
    faults = []
    for i, node in enumerate(nodes):
        try:
            _NODE_ID.validate_python(node.id)
        except ValidationError:
            reason = "an id has 1 to 255 characters, none of them a control character"
            faults.append(Detail(f"nodes.{i}.id", reason))
    return faults


def _find_capability_faults(nodes: Sequence[PlanNode], rules: PlanRules) -> list[Detail]:
    reasons = ((i, _explain_unusable(node.capability, rules)) for i, node in enumerate(nodes))
    return [Detail(f"nodes.{i}.capability", why) for i, why in reasons if why is not None]


def _explain_unusable(name: str, rules: PlanRules) -> str | None:
    """Explain why a plan may not use a capability; returns None if it may."""
    capability = rules.capabilities.get(name)
    if capability is None:
        newest = rules.capabilities.get(name.partition("@")[0])
        if newest is None:
            hint = ask_meant(name, dict.fromkeys(c.id for c in rules.capabilities.values()))
            return f"`{name}` is no capability here. {hint}".removesuffix(". ")
        version = name.partition("@")[2]
        return f"`{newest.id}` has no version `{version}`; its newest is `{newest.version}`"
    if capability.status != "available":
        return f"`{capability.name}` is planned, not available"
    if rules.allowed is not None and capability.id not in rules.allowed:
        return f"`{capability.id}` is not among the capabilities that the constraints allow"
    return None


def _find_delivery_faults(nodes: Sequence[PlanNode], deliverables: Sequence[str]) -> list[Detail]:
    """Find unknown or repeated deliverables, and nodes that neither deliver nor feed a node."""
    ids = {node.id for node in nodes}
    faults = []
    for i, node_id in enumerate(deliverables):
        if node_id not in ids:
            faults.append(Detail(f"deliverables.{i}", f"no node has the id `{node_id}`"))
        elif node_id in deliverables[:i]:
            faults.append(Detail(f"deliverables.{i}", f"`{node_id}` is named twice"))
    sources = {up for node in nodes for up in node.depends_on} | set(deliverables)
    for i, node in enumerate(nodes):
        if node.id not in sources:
            reason = (
                f"`{node.id}` delivers nothing: no node depends on it, and it was not asked for"
            )
            faults.append(Detail(f"nodes.{i}", reason))
    return faults


def _find_edge_faults(nodes: Sequence[PlanNode], rules: PlanRules) -> list[Detail]:
    """Find the edges that feed nothing, and the inputs that their schemas reject."""
    capabilities = {
        node.id: entry
        for node in nodes
        if (entry := rules.capabilities.get(node.capability)) is not None
    }
    optional = {node.id for node in nodes if node.optional}
    faults = []
    for i, node in enumerate(nodes):
        capability = capabilities.get(node.id)
        if capability is None:
            continue
        ids = [up for up in node.depends_on if up != node.id and up in capabilities]
        ups = {up: capabilities[up] for up in ids}
        # An optional node may give no result, so it does not complete an input.
        producers = [producer for up, producer in ups.items() if up not in optional]
        fillable = find_fillable_fields(capability, producers)
        uncertain_fields = find_fillable_fields(capability, ups.values()) - fillable
        faults += find_input_faults(
            capability, node.input, fillable, f"nodes.{i}.input", uncertain_fields
        )
        for j, up in enumerate(node.depends_on):
            why = explain_idle_edge(node, capability, ups, up) if up in ups else None
            if why is not None:
                faults.append(Detail(f"nodes.{i}.depends_on.{j}", why))
    return faults


def explain_idle_edge(
    node: PlanNode, capability: Capability, producers: Mapping[str, Capability], upstream: str
) -> str | None:
    """Explain why a node uses nothing of an upstream node; returns None if it uses a result.

    Args:
        producers: capabilities of all its upstream nodes, by node id, in `depends_on` order.
    """
    producer = producers[upstream]
    takers = {
        name: binding
        for name, binding in capability.accepts.items()
        if producer.can_fill(capability, name)
    }
    if not takers:
        return f"`{upstream}` makes {producer.produces}, which no field of `{capability.id}` takes"
    free = {name: binding for name, binding in takers.items() if name not in node.input}
    if not free:
        names = ", ".join(f"`{name}`" for name in takers)
        return f"`{upstream}` feeds nothing: {names} of `{node.id}` is given already"
    ids = list(producers)
    later = [producers[node_id] for node_id in ids[ids.index(upstream) + 1 :]]
    for name, binding in free.items():
        # Texts and lists take all; of other fields, only the last artifact is used.
        if binding.mode in ("text", "artifacts") or not any(
            source.can_fill(capability, name) for source in later
        ):
            return None
    names = ", ".join(f"`{name}`" for name in free)
    return f"`{upstream}` feeds nothing: {names} of `{node.id}` is filled by a later node"
