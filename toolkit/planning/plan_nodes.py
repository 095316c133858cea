"""The nodes of a plan while it is built: each once, by an id of its own, in the order they run."""

from collections.abc import Iterable, Sequence

from toolkit.contract.base import JsonObject, to_canonical_json
from toolkit.contract.plans import PlanNode
from toolkit.planning.capability_graph import CapabilityGraph, is_writer
from toolkit.planning.plan_parts import explain_node
from toolkit.planning.plan_validator import explain_idle_edge
from toolkit.planning.prompts import Purpose
from toolkit.planning.reading.objective_reading import RequestedOutput
from toolkit.plugins import Capability

_NODE_IDS = {
    "research": "facts",
    "text": "copy",
    "speech": "narration",
    "image": "illustration",
    "card": "card",
    "clone": "voice",
}


class PlanNodes:
    """The nodes that were made so far.

    Attributes:
        ids_by_request: the id of the node that was made for a request, by the request's index.
    """

    def __init__(self, graph: CapabilityGraph) -> None:
        self._graph = graph
        self._nodes: dict[str, PlanNode] = {}
        self._ids_by_content: dict[str, str] = {}
        self.ids_by_request: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def copy(self) -> "PlanNodes":
        """Copy the nodes, to go back to them if a request cannot be planned."""
        copied = PlanNodes(self._graph)
        copied._nodes = dict(self._nodes)
        copied._ids_by_content = dict(self._ids_by_content)
        copied.ids_by_request = dict(self.ids_by_request)
        return copied

    def find_maker(self, node_id: str) -> Capability | None:
        """Find the capability that a node calls."""
        return self._graph.find_maker(self._nodes[node_id].capability)

    def find_filled(
        self, capability: Capability, upstream: Iterable[str], given: JsonObject
    ) -> set[str]:
        """Find the fields that nodes fill for a capability and that are not given."""
        producers = [maker for up in upstream if (maker := self.find_maker(up)) is not None]
        found = (self._graph.find_filled(producer, capability) for producer in producers)
        return {name for names in found for name in names} - set(given)

    def collect_texts(self) -> set[str]:
        """Collect the texts that are inputs of nodes: ids of artifacts are among them."""
        inputs = (node.input.values() for node in self._nodes.values())
        return {value for values in inputs for value in values if isinstance(value, str)}

    def add(
        self,
        capability: Capability,
        given: JsonObject,
        upstream: list[str],
        request: RequestedOutput,
        purpose: Purpose,
        index: int | None,
    ) -> str:
        """Add a node, unless one of the same content is there and of no other request.

        Returns:
            The id of the node that does the work.
        """
        same = to_canonical_json([capability.id, given, upstream])
        known = self._ids_by_content.get(same)
        if known is not None and (index is None or known not in self.ids_by_request.values()):
            return known
        kind = self._graph.find_kind(capability)
        node_id = self._choose_id(capability, "script" if purpose == "speak" else kind)
        self._nodes[node_id] = PlanNode(
            id=node_id,
            capability=capability.id,
            input=given,
            depends_on=upstream,
            reason=explain_node(request, purpose),
        )
        self._ids_by_content[same] = node_id
        return node_id

    def _choose_id(self, capability: Capability, kind: str) -> str:
        base = _NODE_IDS.get(kind) or (kind if kind == "script" else None)
        base = base or capability.id.rpartition(".")[2]
        base = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in base)
        base = base.lstrip("-_")[:48] or "node"
        node_id, n = base, 2
        while node_id in self._nodes:
            node_id, n = f"{base}-{n}", n + 1
        return node_id

    def drop_idle_edges(self) -> None:
        """Drop the edges to nodes whose fields were given by the objective itself."""
        makers = self._find_makers()
        for node in list(self._nodes.values()):
            ups = {up: makers[up] for up in node.depends_on}
            used = [up for up in ups if explain_idle_edge(node, makers[node.id], ups, up) is None]
            self._nodes[node.id] = node.model_copy(update={"depends_on": used})

    def list_in_order(self, deliverables: Sequence[str]) -> list[PlanNode]:
        """List the nodes in order, with the look-ups marked that texts only rest on.

        Texts are written without those if they must.
        """
        makers = self._find_makers()
        needed = set(deliverables)
        for node in self._nodes.values():
            writer = makers.get(node.id)
            if writer is None or not is_writer(writer):
                needed.update(node.depends_on)
        kinds = {node_id: self._graph.find_kind(maker) for node_id, maker in makers.items()}
        return [
            node.model_copy(update={"optional": True})
            if kinds[node.id] == "research" and node.id not in needed
            else node
            for node in self._order(deliverables)
        ]

    def _find_makers(self) -> dict[str, Capability]:
        makers = {node_id: self.find_maker(node_id) for node_id in self._nodes}
        return {node_id: maker for node_id, maker in makers.items() if maker is not None}

    def _order(self, deliverables: Sequence[str]) -> list[PlanNode]:
        """Order nodes by what they need, and the main deliverable last: the final artifact."""
        ordered: dict[str, PlanNode] = {}

        def add(node_id: str) -> None:
            for up in self._nodes[node_id].depends_on:
                add(up)
            ordered.setdefault(node_id, self._nodes[node_id])

        for node_id in reversed(deliverables):
            add(node_id)
        return list(ordered.values())
