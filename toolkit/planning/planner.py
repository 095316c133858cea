"""The rule-based planner: turns an objective into a graph of capabilities; `Plans` calls it."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from toolkit.contract.base import JsonObject, to_canonical_json
from toolkit.contract.plans import Constraints, Missing, PlanNode, PlanReading
from toolkit.planning.capability_graph import CapabilityGraph, find_role_field
from toolkit.planning.node_inputs import NodeInputBuilder, Unplannable
from toolkit.planning.objective import MentionedOutput, ParsedObjective, parse_objective
from toolkit.planning.plan_validator import MAX_NODES
from toolkit.plugins import Capability

# A topic longer than this is a request and not the name of something to look up.
MAX_LOOKUP_WORDS = 8
_NODE_IDS = {
    "research.gather": "facts",
    "llm.generate": "copy",
    "text.generate": "copy",
    "speech.generate": "narration",
    "image.generate": "illustration",
    "composition.layout": "card",
    "voice.clone": "voice",
}


@dataclass(frozen=True)
class PlannerView:
    """The facts about an account that the planner may use.

    Attributes:
        capabilities: the newest available version of each id, in registry order.
        connected: provider ids the account has connections for.
        providers: by capability id, the provider ids that can serve it; empty where it runs on this
            machine's CPU.
    """

    capabilities: Sequence[Capability]
    connected: frozenset[str]
    providers: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class PlanDraft:
    """A plan before it has an id and a price.

    Attributes:
        nodes: dependencies before dependents; the last sink is the main deliverable.
        missing_capabilities: what was requested and no capability makes.
        missing_connections: provider ids any of which would help, the default one first.
        missing: each capability that is unavailable, with the provider ids that would enable it.
        rationale: why the plan is as it is, in a few sentences.
        deliverables: the requested nodes, in the order they were named.
        question: what a person has to be asked first; none where nothing has.
        reading: how much of the objective was understood.
        banned: the ids of the capabilities that the objective says not to use.
    """

    nodes: list[PlanNode]
    missing_capabilities: tuple[str, ...] = ()
    missing_connections: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    rationale: str = ""
    deliverables: tuple[str, ...] = ()
    question: str | None = None
    reading: PlanReading = dataclasses.field(default_factory=PlanReading)
    banned: frozenset[str] = frozenset()


def make_plan(
    objective: str,
    constraints: Constraints,
    view: PlannerView,
    *,
    without: frozenset[str] = frozenset(),  # noqa: ARG001 - the passes follow
) -> PlanDraft:
    """Plan an objective; the same arguments always give the same plan.

    Args:
        objective: what is wanted, in a person's words.
        constraints: with a `max_cost_usd` of 0, nothing is planned that a vendor bills for where
            this machine's CPU can stand in.
        view: the capabilities and connections to plan with.

    >>> make_plan("a video about tides", Constraints(), PlannerView((), frozenset(), {})).missing
    (Missing(capability='video.generate', any_of=[]),)
    """
    graph = CapabilityGraph(
        view.capabilities, view.connected, view.providers, constraints.max_cost_usd == 0
    )
    parsed = parse_objective(objective, graph.vocabulary, graph.can_fill, graph.requires)
    return _Planner(objective, parsed, graph).plan()


class _Planner:
    """Builder of one plan: plans each request together with the nodes that it needs before it."""

    def __init__(self, objective: str, parsed: ParsedObjective, graph: CapabilityGraph) -> None:
        self._parsed = parsed
        self._graph = graph
        self._inputs = NodeInputBuilder(objective, parsed, graph)
        self._nodes: dict[str, PlanNode] = {}
        self._node_ids_by_content: dict[str, str] = {}
        self._missing: dict[str, None] = {}
        self._missing_providers: dict[str, list[str]] = {}
        self._notes: dict[str, None] = {}

    def plan(self) -> PlanDraft:
        """Plan every request, the main one last: the last sink is the final artifact."""
        requests = [m for m in self._parsed.mentions if m.delivered] or [
            self._make_default_request()
        ]
        made: dict[int, str] = {}
        for i in reversed(range(len(requests))):
            node_id = self._plan_request(requests[i])
            if node_id is not None:
                made[i] = node_id
        deliverables = tuple(dict.fromkeys(made[i] for i in sorted(made)))
        self._explain(deliverables)
        return PlanDraft(
            nodes=list(self._nodes.values()),
            missing_capabilities=tuple(self._missing),
            missing_connections=tuple(dict.fromkeys(chain(*self._missing_providers.values()))),
            missing=(
                *(Missing(capability=one) for one in self._missing),
                *(
                    Missing(capability=one, any_of=ids)
                    for one, ids in self._missing_providers.items()
                ),
            ),
            rationale=" ".join(self._notes),
            deliverables=deliverables,
        )

    def _make_default_request(self) -> MentionedOutput:
        """Return a request for text, for an objective that names no deliverable."""
        writer = self._graph.find_writer()
        self._add_note("No deliverable is named, so the objective is answered in text.")
        return MentionedOutput(
            id=writer.id if writer else "llm.generate",
            phrase="",
            start=0,
            end=0,
            topic=self._parsed.topic,
        )

    def _plan_request(self, mention: MentionedOutput) -> str | None:
        """Plan one deliverable; note as missing what cannot be planned."""
        before = dict(self._nodes), dict(self._node_ids_by_content)
        try:
            capability = self._choose_capability(mention)
            node_id = self._plan_node(capability, mention, purpose="deliver")
        except Unplannable as reason:
            self._nodes, self._node_ids_by_content = before
            self._add_note(str(reason))
            return None
        if len(self._nodes) > MAX_NODES:
            self._nodes, self._node_ids_by_content = before
            self._add_note(f"A plan has at most {MAX_NODES} nodes; `{mention.phrase}` is left out.")
            return None
        return node_id

    def _choose_capability(self, mention: MentionedOutput) -> Capability:
        """Choose the capability that makes a mention, or one that can replace it."""
        capability = self._graph.get(mention.id)
        if capability is None:
            self._missing[mention.id] = None
            raise Unplannable(f"Nothing here makes `{mention.id}`.")
        if self._graph.is_usable(capability) or mention.is_creative:
            return capability
        digest = self._graph.find_researcher() if self._can_look_up(mention.topic) else None
        written = find_role_field(capability, "objective") is not None
        feeders = any(m.input_of is not None for m in self._parsed.mentions)
        if written and digest is not None and self._graph.is_usable(digest) and not feeders:
            self._add_note(
                f"No connection serves `{capability.id}`, so the digest of `{digest.id}`, made on "
                "this machine's CPU, stands in for written text."
            )
            return digest
        return capability

    def _can_look_up(self, topic: str) -> bool:
        return bool(topic) and (
            self._parsed.explicit_topic or len(topic.split()) <= MAX_LOOKUP_WORDS
        )

    # One node, and everything before it.

    def _plan_node(
        self,
        capability: Capability,
        mention: MentionedOutput,
        purpose: str,
        path: tuple[str, ...] = (),
    ) -> str:
        if capability.id in path or len(path) > MAX_NODES:
            raise Unplannable(f"`{capability.id}` would need its own result.")
        path = (*path, capability.id)
        given = self._inputs.fill_from_objective(capability, mention, purpose)
        upstream: dict[str, None] = {}
        filled: set[str] = set()
        for field, binding in capability.accepts.items():
            if field in given:
                continue
            for producer, what, why in self._choose_producers(capability, field, mention, purpose):
                if producer.id in path:
                    continue
                upstream[self._plan_node(producer, what, why, path)] = None
                filled.add(field)
            required = capability.input_model.model_fields[field].is_required()
            if required and field not in filled:
                self._reject_missing_input(capability, field, binding.media[0])
        try:
            valid = self._inputs.drop_invalid_fields(capability, given, filled)
        except Unplannable:
            self._missing[capability.id] = None
            raise
        self._note_missing_connection(capability)
        return self._add_node(capability, valid, list(upstream), mention, purpose)

    def _reject_missing_input(self, capability: Capability, field: str, media: str) -> None:
        need = f"{media.partition('/')[0]}.upload"
        self._missing[need] = None
        raise Unplannable(
            f"`{capability.id}` needs `{field}`: upload an artifact and name its id in the "
            "objective."
        )

    def _choose_producers(
        self, capability: Capability, field: str, mention: MentionedOutput, purpose: str
    ) -> list[tuple[Capability, MentionedOutput, str]]:
        """Choose what fills a field from upstream, with the purpose it is made for."""
        asked = self._find_requested_parts(capability, field, mention, purpose)
        if asked:
            return asked
        binding = capability.accepts[field]
        required = capability.input_model.model_fields[field].is_required()
        if not required and (purpose == "part" or not mention.topic):
            return []
        if binding.mode == "artifact":
            found = self._graph.find_cheapest_producer(capability, field) if required else None
            return [(found, _make_part_request(mention, found), "part")] if found else []
        digest = self._graph.find_researcher(binding) if self._can_look_up(mention.topic) else None
        if find_role_field(capability, "objective") is not None and not required:
            return [(digest, mention, "ground")] if digest else []
        writer = self._graph.find_writer(binding)
        if writer is not None and (self._graph.is_usable(writer) or (required and digest is None)):
            return [
                (writer, _make_part_request(mention, writer), _choose_purpose(capability, field))
            ]
        if digest is not None:
            self._add_note(f"`{digest.id}` stands in for written text in `{capability.id}`.")
            return [(digest, mention, "ground")]
        found = self._graph.find_cheapest_producer(capability, field) if required else None
        return [(found, _make_part_request(mention, found), "part")] if found else []

    def _find_requested_parts(
        self, capability: Capability, field: str, mention: MentionedOutput, purpose: str
    ) -> list[tuple[Capability, MentionedOutput, str]]:
        """Find the parts that the objective itself names for this request."""
        mentions = self._parsed.mentions
        if purpose not in {"deliver", "asked"} or mention not in mentions:
            return []
        here = mentions.index(mention)
        parts = []
        for part in mentions:
            producer = self._graph.get(part.id) if part.input_of == here else None
            if producer is None or not capability.accepts[field].matches(producer.produces):
                continue
            written = find_role_field(producer, "objective") is not None
            why = "asked"
            if written and not part.delivered:
                why = _choose_purpose(capability, field)
                producer = self._choose_stand_in(producer, part, capability, field)
            parts.append((producer, part, why))
        return parts

    def _choose_stand_in(
        self, producer: Capability, part: MentionedOutput, consumer: Capability, field: str
    ) -> Capability:
        if self._graph.is_usable(producer) or part.is_creative:
            return producer
        digest = self._graph.find_researcher(consumer.accepts[field])
        if digest is None or not self._can_look_up(part.topic):
            return producer
        self._add_note(f"`{digest.id}` stands in for written text in `{consumer.id}`.")
        return digest

    def _note_missing_connection(self, capability: Capability) -> None:
        if not capability.needs_connection or self._graph.is_connected(capability):
            return
        wanted = self._graph.list_missing_providers(capability)
        if not wanted:
            self._missing[capability.id] = None
            self._add_note(f"No vendor here serves `{capability.id}`.")
            return
        self._missing_providers[capability.id] = list(wanted)
        self._add_note(f"`{capability.id}` needs a connection: {' or '.join(wanted)}.")

    def _add_node(
        self, capability: Capability, given: JsonObject, upstream: list[str],
        mention: MentionedOutput, purpose: str,
    ) -> str:  # fmt: skip
        same = to_canonical_json([capability.id, given, upstream])
        if same in self._node_ids_by_content:
            return self._node_ids_by_content[same]
        base = "script" if purpose == "speak" and find_role_field(capability, "objective") else None
        base = base or _NODE_IDS.get(capability.id) or capability.id.rpartition(".")[2]
        base = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in base)
        base = base.lstrip("-_")[:48] or "node"
        node_id, n = base, 2
        while node_id in self._nodes:
            node_id, n = f"{base}-{n}", n + 1
        named = f" ({mention.phrase})" if mention.phrase else ""
        reasons = {
            "deliver": f"The objective asks for it{named}.",
            "asked": f"The objective asks for it{named}.",
            "ground": "Gives what is written a source.",
            "speak": "Writes what is spoken.",
            "show": "Writes what stands on it.",
            "part": "Makes what the next node takes.",
        }
        self._nodes[node_id] = PlanNode(
            id=node_id,
            capability=capability.id,
            input=given,
            depends_on=upstream,
            reason=reasons[purpose],
        )
        self._node_ids_by_content[same] = node_id
        return node_id

    def _add_note(self, sentence: str) -> None:
        self._notes[sentence] = None

    def _explain(self, deliverables: Sequence[str]) -> None:
        if not deliverables:
            return
        topic = self._parsed.topic
        about = f" about {topic}" if topic else ""
        first = f"Delivers {', '.join(deliverables)}{about}."
        self._notes = {first: None, **self._notes}


def _choose_purpose(consumer: Capability, field: str) -> str:
    """Return the purpose of a text, by the capability that takes it."""
    if find_role_field(consumer, "text") == field and consumer.produces.startswith("audio/"):
        return "speak"
    return "show" if find_role_field(consumer, "title") is not None else "asked"


def _make_part_request(mention: MentionedOutput, producer: Capability) -> MentionedOutput:
    """Make a request for something that the objective needs without naming it."""
    keep = find_role_field(producer, "objective") is None
    return replace(mention, id=producer.id, phrase="", words=None if keep else mention.words)
