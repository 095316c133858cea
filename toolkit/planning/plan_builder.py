"""The builder of a plan from what was read: requests become nodes, and joins their edges."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from toolkit.contract.plans import Missing, PlanReading
from toolkit.planning.capability_graph import CapabilityGraph, is_writer
from toolkit.planning.capability_kinds import KINDS, find_role_field
from toolkit.planning.field_values import takes
from toolkit.planning.node_inputs import NodeInputBuilder, Unplannable
from toolkit.planning.plan_draft import PlanDraft
from toolkit.planning.plan_nodes import PlanNodes
from toolkit.planning.plan_parts import choose_purpose, has_words, make_part
from toolkit.planning.plan_validator import MAX_NODES
from toolkit.planning.prompts import Purpose
from toolkit.planning.reading.objective_reading import ObjectiveReading, RequestedOutput
from toolkit.planning.reading.words.lexicon import load_lexicon
from toolkit.plugins import Capability

# A topic longer than this is a request and not the name of something to look up.
MAX_LOOKUP_WORDS = 8
_OF_SOMETHING = frozenset({"card", "speech", "research"})


class PlanBuilder:
    """Builder of one plan: plans each request together with the nodes that it needs before it."""

    def __init__(self, objective: str, reading: ObjectiveReading, graph: CapabilityGraph) -> None:
        self._reading, self._questions = reading, load_lexicon(reading.language).questions
        self._graph = graph
        self._inputs = NodeInputBuilder(objective, reading, graph)
        self._notes = self._inputs.notes
        self._requests = self._collect_requests()
        self._nodes = PlanNodes(graph)
        self._missing: dict[str, None] = {}
        self._missing_providers: dict[str, list[str]] = {}

    def _collect_requests(self) -> list[RequestedOutput]:
        """Collect what is asked for, with what only a capability of a stranger offers."""
        offered = [
            RequestedOutput(act.capability, act.phrase, wording=act.phrase)
            for act in self._reading.unavailable
            if self._graph.find_maker(act.capability) is not None
        ]
        requests = [*self._reading.requests, *offered]
        for i, request in enumerate(requests):
            for part in request.inputs:
                requests[i], requests[part] = self._move_size(requests[i], requests[part])
        return requests

    def _move_size(
        self, whole: RequestedOutput, part: RequestedOutput
    ) -> tuple[RequestedOutput, RequestedOutput]:
        """Move a size that a part cannot have to the whole that can: it was said of that one."""
        maker, part_maker = map(self._graph.find_maker, (whole.kind, part.kind))
        size = [m for m in part.measures if m.name in {"width", "height"}]
        if maker is None or part_maker is None or part.is_delivered or not size:
            return whole, part
        if any(m.name == size[0].name for m in whole.measures) or takes(part_maker, size):
            return whole, part
        if not takes(maker, size):
            return whole, part
        rest = tuple(m for m in part.measures if m not in size)
        return replace(whole, measures=(*whole.measures, *size)), replace(part, measures=rest)

    def plan(self) -> PlanDraft:
        """Plan every request, or say what is missing, or what a person has to be asked."""
        for act in self._reading.unavailable:
            if self._graph.find_maker(act.capability) is None:
                self._missing[act.capability] = None
                self._add_note(f"Nothing here can do “{act.phrase}” (`{act.capability}`).")
        question = None if self._missing else self._reading.question
        if question is not None:
            return self._ask(question)
        delivered = [
            i
            for i, request in enumerate(self._requests)
            if request.is_delivered and request.kind not in self._reading.banned
        ]
        if not (delivered or self._missing):
            return self._ask(self._questions["form"])
        unsaid = [i for i in delivered if self._lacks_subject(self._requests[i])]
        if unsaid and unsaid == delivered and not self._missing:
            phrase = self._requests[unsaid[0]].phrase
            return self._ask(self._questions["subject"].format(phrase=phrase))
        for i in delivered:
            self._plan_request(i)
        self._note_unused_artifacts(delivered)
        self._nodes.drop_idle_edges()
        made = self._nodes.ids_by_request
        deliverables = tuple(dict.fromkeys(made[i] for i in delivered if i in made))
        return PlanDraft(
            nodes=self._nodes.list_in_order(deliverables),
            missing=(
                *(Missing(capability=one) for one in self._missing),
                *(
                    Missing(capability=one, any_of=ids)
                    for one, ids in self._missing_providers.items()
                ),
            ),
            rationale=self._explain(deliverables),
            deliverables=deliverables,
            reading=self._report_reading(),
            banned=self._list_banned(),
        )

    def _ask(self, question: str) -> PlanDraft:
        banned = self._list_banned()
        return PlanDraft([], question=question, reading=self._report_reading(), banned=banned)

    def _lacks_subject(self, request: RequestedOutput) -> bool:
        """Tell whether nothing says what is to be shown or spoken; a poem can be of anything."""
        maker = self._graph.find_maker(request.kind)
        if maker is None or request.kind not in _OF_SOMETHING:
            return False
        given = request.literal or request.inputs or request.artifact_ids or request.measures
        return not given and not self._inputs.has_topic(request)

    def _list_banned(self) -> frozenset[str]:
        makers = map(self._graph.find_maker, self._reading.banned)
        return frozenset(maker.id for maker in makers if maker is not None)

    def _note_unused_artifacts(self, delivered: Iterable[int]) -> None:
        """Note artifacts that something is asked of and that no capability here can take."""
        used = self._nodes.collect_texts()
        for i in delivered:
            for artifact_id in self._requests[i].artifact_ids:
                if i in self._nodes.ids_by_request and artifact_id not in used:
                    self._missing["artifact.read"] = None
                    self._add_note(f"Nothing here reads `{artifact_id}` for what is asked of it.")

    def _plan_request(self, index: int) -> None:
        """Plan one deliverable; note as missing what cannot be planned."""
        before = self._nodes.copy()
        request = self._requests[index]
        try:
            self._make_request(index, ())
        except Unplannable as reason:
            note = str(reason)
        else:
            if len(self._nodes) <= MAX_NODES:
                return
            note = f"A plan has at most {MAX_NODES} nodes; “{request.phrase}” is left out."
        self._nodes = before
        self._add_note(note)

    # One request, and everything before it.

    def _make_request(self, index: int, path: tuple[int, ...]) -> str:
        """Make the node of a request, once."""
        if index in path:
            raise Unplannable(f"“{self._requests[index].phrase}” would need its own result.")
        made = self._nodes.ids_by_request
        if index not in made:
            request = self._requests[index]
            capability = self._choose_capability(request)
            upstream = self._make_inputs(index, capability, (*path, index))
            purpose: Purpose = "deliver" if request.is_delivered else "asked"
            made[index] = self._make_node(capability, request, purpose, upstream, index=index)
        return made[index]

    def _make_inputs(self, index: int, capability: Capability, path: tuple[int, ...]) -> list[str]:
        """Make what the objective itself says a request is made from."""
        made = []
        for i in self._requests[index].inputs:
            if self._requests[i].kind in self._reading.banned:
                continue
            node_id = self._make_request(i, path)
            producer = self._nodes.find_maker(node_id)
            fits = producer and any(self._graph.find_filled(producer, capability))
            # Facts are written up before they are spoken or shown.
            raw = self._requests[i].kind == "research" and not is_writer(capability)
            bridge = self._bridge(node_id, index, capability) if raw or not fits else None
            made.append(bridge or (node_id if fits else None))
        return [node_id for node_id in made if node_id is not None]

    def _bridge(self, node_id: str, index: int, consumer: Capability) -> str | None:
        """Make the text through which one node's result reaches another, if a text can."""
        writer = self._graph.find_maker("text")
        producer = self._nodes.find_maker(node_id)
        if writer is None or producer is None or "text" in self._banned:
            return None
        if not self._graph.is_usable(writer) and any(self._graph.find_filled(producer, consumer)):
            return None
        if any(self._graph.find_filled(producer, writer)) and any(
            self._graph.find_filled(writer, consumer)
        ):
            part = make_part(self._requests[index], "text")
            return self._make_node(writer, part, choose_purpose(consumer), [node_id])
        return None

    def _choose_capability(self, request: RequestedOutput) -> Capability:
        """Choose the capability that makes a request, or one that can replace it."""
        capability = self._graph.find_maker(request.kind)
        if capability is None:
            shape = KINDS.get(request.kind)
            name = shape.conventional_id if shape else request.kind
            self._missing[name] = None
            raise Unplannable(f"Nothing here makes `{name}`.")
        if is_writer(capability) and not request.inputs:
            return self._find_stand_in(capability, request) or capability
        return capability

    def _find_stand_in(
        self, writer: Capability, request: RequestedOutput, consumer: Capability | None = None
    ) -> Capability | None:
        """Find who gives facts where nothing that is connected writes, if facts can do."""
        digest = self._graph.find_maker("research")
        topic = request.topic or self._reading.topic
        if self._graph.is_usable(writer) or request.is_creative or "research" in self._banned:
            return None
        if digest is None or not self._graph.is_usable(digest):
            return None
        if not topic or len(topic.split()) > MAX_LOOKUP_WORDS:
            return None
        if consumer is not None and not any(self._graph.find_filled(digest, consumer)):
            return None
        self._add_note(
            f"No connection serves `{writer.id}`, so the digest of `{digest.id}`, made on this "
            "machine's CPU, stands in for written text."
        )
        return digest

    @property
    def _banned(self) -> frozenset[str]:
        return self._reading.banned

    # One node, and the parts that nobody named.

    def _make_node(
        self,
        capability: Capability,
        request: RequestedOutput,
        purpose: Purpose,
        upstream: Iterable[str] = (),
        path: tuple[str, ...] = (),
        index: int | None = None,
    ) -> str:
        if capability.id in path or len(path) > MAX_NODES:
            raise Unplannable(f"`{capability.id}` would need its own result.")
        path = (*path, capability.id)
        variant = "" if index is None else self._name_variant(index)
        filled_input = self._inputs.fill_from_request(capability, request, purpose, variant)
        given = filled_input.given
        needed = dict.fromkeys(upstream)
        filled = self._nodes.find_filled(capability, needed, given)
        part = replace(request, measures=filled_input.left)
        for name, binding in capability.accepts.items():
            if name in given or name in filled:
                continue
            made = self._make_part_for(capability, name, part, path)
            if made is not None:
                needed[made] = None
                filled.add(name)
            elif capability.input_model.model_fields[name].is_required():
                self._reject_missing_input(capability, name, binding.media[0])
        try:
            valid = self._inputs.drop_invalid_fields(capability, given, filled)
        except Unplannable:
            self._missing[capability.id] = None
            raise
        self._note_missing_connection(capability)
        return self._nodes.add(capability, valid, list(needed), request, purpose, index)

    def _name_variant(self, index: int) -> str:
        """Name which one of several alike a request is, such as `2/3`; nothing for only one."""
        alike = [i for i, other in enumerate(self._requests) if other == self._requests[index]]
        return f"{alike.index(index) + 1}/{len(alike)}" if len(alike) > 1 else ""

    def _reject_missing_input(self, capability: Capability, name: str, media: str) -> None:
        need = f"{media.partition('/')[0]}.upload"
        self._missing[need] = None
        raise Unplannable(
            f"`{capability.id}` needs `{name}`: upload an artifact and name its id in the "
            "objective."
        )

    def _make_part_for(
        self,
        capability: Capability,
        name: str,
        request: RequestedOutput,
        path: tuple[str, ...],
    ) -> str | None:
        """Make what fills a field and nobody named: a card's text, facts that are asked for."""
        required = capability.input_model.model_fields[name].is_required()
        binding = capability.accepts[name]
        if is_writer(capability) and not required:
            return self._make_facts(capability, name, request, path)
        if binding.mode == "text" and (required or self._needs_words(capability, request)):
            writer = self._graph.find_maker("text")
            if writer is not None and name in self._graph.find_filled(writer, capability):
                part = make_part(request, "text")
                chosen = self._find_stand_in(writer, part, capability) or writer
                return self._make_node(chosen, part, choose_purpose(capability), path=path)
        if not required:
            return None
        producer = self._graph.find_cheapest_producer(capability, name)
        if producer is None or producer.id in path:
            return None
        part = make_part(request, self._graph.find_kind(producer))
        return self._make_node(producer, part, "part", path=path)

    def _needs_words(self, capability: Capability, request: RequestedOutput) -> bool:
        """Tell whether a thing with a headline lacks the words under it."""
        return (
            find_role_field(capability, "title") is not None
            and request.literal is None
            and "text" not in self._banned
            and self._inputs.has_topic(request)
            and not has_words(request)
        )

    def _make_facts(
        self, capability: Capability, name: str, request: RequestedOutput, path: tuple[str, ...]
    ) -> str | None:
        """Make the facts that a text is asked to rest on; it is written without them if it must."""
        researcher = self._graph.find_maker("research")
        if researcher is None or not request.needs_facts or "research" in self._banned:
            return None
        if researcher.id in path or name not in self._graph.find_filled(researcher, capability):
            return None
        part = make_part(request, "research")
        return self._make_node(researcher, part, "part", path=path)

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

    # What the plan says of itself.

    def _report_reading(self) -> PlanReading:
        return PlanReading(
            understood=self._reading.understood, words=list(self._reading.unknown_words)
        )

    def _add_note(self, sentence: str) -> None:
        self._notes[sentence] = None

    def _explain(self, deliverables: Sequence[str]) -> str:
        topic = self._reading.topic
        about = f" about {topic}" if topic else ""
        first = [f"Delivers {', '.join(deliverables)}{about}."] if deliverables else []
        return " ".join([*first, *self._notes])
