"""The keyword planner: plans an objective of which it knows every clause; `Plans` calls it.

It serves the sandbox, the demo, and accounts without a language model. The planner asks about
words that it does not know, and it never runs a guess.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from toolkit.contract.base import JsonObject
from toolkit.contract.plans import Constraints, Missing, PlanNode, PlanReading
from toolkit.planning.capability_index import CapabilityIndex
from toolkit.planning.capability_kinds import KINDS, find_role_field, is_caller_supplied
from toolkit.planning.keywords.clauses import Reading, Wish
from toolkit.planning.keywords.grammar import Run
from toolkit.planning.keywords.measures import read_expect
from toolkit.planning.keywords.words import fold
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.planning.plan_validator import PlanRules, find_plan_faults
from toolkit.plugins import Capability

MAX_COPIES: Final = 8  # of one picture
MAX_TITLE: Final = 80
MAX_NAMED_FIELDS: Final = 20
MAX_QUOTED: Final = 80  # characters of a clause that is not understood
_NODE_IDS: Final = {
    "research": "facts", "text": "copy", "speech": "narration", "image": "illustration",
    "card": "card", "clone": "voice",
}  # fmt: skip
_SIZE = re.compile(
    r"(?<!\d)(\d{3,4})\s*(?:px|pixels?)?\s*(?:x|×|by|mal|par|por|per)\s*(\d{3,4})(?!\d)"
)
_WORD = re.compile(r"\w+")
_EDGES = " \t\n,;:.!?、，。；：،؛-–—"


def make_plan(objective: str, constraints: Constraints, view: PlannerView) -> PlanDraft:
    """Plan an objective; the same arguments always give the same plan.

    Args:
        objective: the wishes of a person, in their own words.
        constraints: with a `max_cost_usd` of 0, no vendor's capability is planned if this machine's
            CPU can stand in.
        view: the capabilities and connections to plan with.

    >>> draft = make_plan("a video about tides", Constraints(), PlannerView((), frozenset(), {}))
    >>> draft.nodes, draft.missing_capabilities
    ([], ('video.generate',))
    """
    graph = CapabilityIndex(
        view.capabilities, view.connected, view.providers, constraints.max_cost_usd == 0
    )
    reading = Reading(objective, graph.list_keywords())
    unplaced = [*reading.unplaced, *_find_lost_artifacts(reading)]
    if not unplaced and not reading.missing:
        unplaced = [wish.clause.span for wish in _find_unclear(reading, graph)]
        is_answered = reading.questions and (reading.needs_facts or reading.is_answerable)
        if not reading.wishes and not is_answered:
            unplaced = [(0, len(objective))]
    summary = _summarize_reading(objective, unplaced)
    if unplaced:
        start, end = min(unplaced)
        words = objective[start:end].strip(_EDGES)
        return _ask(f"“{words[:MAX_QUOTED]}” is not understood", summary)
    missing = dict.fromkeys(name for name in reading.missing if graph.find_maker(name) is None)
    if missing:
        return _report_missing(missing, summary)
    return _PlanWriter(graph, reading, summary).write()


def _find_lost_artifacts(reading: Reading) -> list[tuple[int, int]]:
    used = {artifact for wish in reading.wishes for artifact in wish.artifacts}
    named = [term for term in reading.terms.terms if "artifact" in term.meanings]
    return [(term.start, term.end) for term in named if term.text not in used]


def _report_missing(names: Iterable[str], summary: PlanReading) -> PlanDraft:
    missing = tuple(Missing(capability=name) for name in names)
    rationale = " ".join(f"Nothing here makes `{name.capability}`." for name in missing)
    return PlanDraft([], missing=missing, rationale=rationale, reading=summary)


def _ask(reason: str, summary: PlanReading) -> PlanDraft:
    question = (
        f"Planned by keywords, and {reason}. Connect a text provider to have it planned by a"
        " language model, or say it in other words."
    )
    return PlanDraft([], question=question, reading=summary)


def _summarize_reading(objective: str, unplaced: Sequence[tuple[int, int]]) -> PlanReading:
    words = len(_WORD.findall(objective))
    unknown = [word for span in unplaced for word in _WORD.findall(objective, *span)]
    share = max(0, 1 - len(unknown) / words) if words else 1.0
    return PlanReading(understood=round(share, 3), words=list(dict.fromkeys(unknown))[:100])


def _find_unclear(reading: Reading, graph: CapabilityIndex) -> list[Wish]:
    """Find the wishes whose nodes are not clear."""
    wishes = {
        kind: [wish for wish in reading.wishes if wish.kind == kind]
        for kind in ("text", "image", "card", "speech")
    }
    texts = [
        wish
        for wish in wishes["text"]
        if not (wish.act == "rework" and wish.clause.has("refer", "definite"))
    ]
    unclear = [
        wish
        for wish in reading.wishes
        if wish.clause.has("each")
        or wish.kind in reading.banned - {"text"}
        or (wish.count > 1 and wish.lists and wish.kind != "image")
        or (wish.kind == "speech" and len(wish.literals) > 1)
        or (wish.kind in {"speech", "card"} and wish.count > 1)
        or (wish.artifacts and not _takes_artifact(graph.find_maker(wish.kind)))
    ]
    unclear += [*texts[1:], *wishes["card"][1:], *wishes["speech"][1:]]
    if len(wishes["image"]) > 1:
        unclear += [wish for wish in wishes["image"] if not wish.topic]
    if wishes["image"]:  # a card with a picture may have other words than a quotation
        unclear += [card for card in wishes["card"] if any(not label for _, label in card.literals)]
    return unclear


def _takes_artifact(maker: Capability | None) -> bool:
    fields = maker.input_model.model_fields.items() if maker is not None else ()
    return any(is_caller_supplied(name, info) for name, info in fields)


class _PlanWriter:
    """Writes the nodes of each wish of an objective, and the nodes that they depend on."""

    def __init__(self, graph: CapabilityIndex, reading: Reading, summary: PlanReading) -> None:
        self._graph = graph
        self._reading = reading
        self._summary = summary
        wishes = reading.wishes
        self._main = next((wish for wish in wishes if wish.topic), wishes[0] if wishes else None)
        details = [reading.text[start:end].strip(_EDGES) for start, end in reading.details]
        self._details = ", ".join(words for words in details if not _SIZE.search(words))
        self._nodes: dict[str, PlanNode] = {}
        self._makers: dict[str, Capability] = {}
        self._ids: dict[str, list[str]] = {}  # by kind, in the order of their making
        self._missing: dict[str, None] = {}

    def write(self) -> PlanDraft:
        """Write the plan, or ask for a field that it needs."""
        reading, kinds, deliverables = self._reading, self._reading.kinds, list[str]()
        objective = reading.text.strip()
        is_asked = (
            bool(reading.questions)
            or reading.mentions_text
            or any(
                wish.kind == "research" and (wish.count > 1 or wish.clause.has("question"))
                for wish in reading.wishes
            )
        )
        if (reading.needs_facts or "research" in kinds) and "research" not in reading.banned:
            facts = self._add("research", self._get_topic(self._main))
            if "text" not in kinds and is_asked | bool(kinds & {"speech", "card"}):
                text = self._add("text", objective, upstream=[facts])
                deliverables += [text] if is_asked else []
            elif not kinds - {"research"}:
                deliverables.append(facts)
        elif not reading.wishes:
            deliverables.append(self._add("text", objective))
        # A card comes last, because the results of all other nodes can stand on it.
        ordered = sorted(reading.wishes, key=lambda w: (w.kind == "card", w.kind != "clone"))
        made = {id(wish): self._add_wish(wish) for wish in ordered}
        deliverables += [node_id for wish in reading.wishes for node_id in made[id(wish)]]
        return self._finish(list(dict.fromkeys(filter(None, deliverables))))

    def _add_wish(self, wish: Wish) -> list[str]:
        """Add the nodes of a wish, and return the ids of its deliverables."""
        texts, facts = self._ids.get("text", []), self._ids.get("research", [])
        is_alone = len(self._reading.wishes) == 1
        words = self._reading.text.strip() if is_alone else self._write_brief(wish)
        measured = wish.clause if sum(w.kind == "text" for w in self._reading.wishes) > 1 else None
        quotation = " ".join(text for text, _ in wish.literals)
        if wish.kind == "research":
            return []
        if wish.kind == "text":
            before = texts[-1:] if wish.act == "rework" and not wish.literals else []
            return [self._add("text", words, upstream=before or facts, measured=measured)]
        if wish.kind == "image":
            unwanted = ", ".join(self._reading.unwanted)
            fields: JsonObject = {"negative_prompt": unwanted} if unwanted else {}
            copies = wish.count if wish.count <= MAX_COPIES else 1
            return [self._add("image", words, fields) for _ in range(copies)]
        if wish.kind == "clone":
            return [self._add("clone", wish.topic or "voice", artifacts=wish.artifacts)]
        needs_text = wish.kind == "speech" or (wish.kind == "card" and not self._graph.free_only)
        if needs_text and not quotation and not texts:
            texts = [self._add("text", words, upstream=facts)]
        if wish.kind == "speech":
            upstream = [*([] if quotation else texts[-1:]), *self._ids.get("clone", [])]
            return [self._add("speech", quotation, upstream=upstream)]
        if wish.kind == "card":
            labels: JsonObject = {label: text for text, label in wish.literals if label}
            title = str(labels.pop("title", "")) or quotation or _make_title(self._get_topic(wish))
            upstream = [*texts[-1:], *self._ids.get("image", [])[-1:]]
            return [self._add("card", title, labels, upstream)]
        before = [] if wish.topic else list(self._nodes)[-1:]
        return [self._add(wish.kind, quotation or words, upstream=before, topic=wish.topic)]

    def _write_brief(self, wish: Wish) -> str:
        """Write the prompt of a wish, in the person's own words and with the topic."""
        words = self._get_words(wish)
        if not (wish.topic or wish.literals) and self._main not in (None, wish):
            words = f"{words} {self._reading.joint}: {self._get_words(self._main)}"
        has_details = self._details and wish.kind != "image" and self._details not in words
        return f"{words}, {self._details}" if has_details else words

    def _get_words(self, wish: Wish | None) -> str:
        return "" if wish is None else self._reading.cut(wish.clause).strip(_EDGES)

    def _get_topic(self, wish: Wish | None) -> str:
        topics = [wanted.topic for wanted in (wish, self._main) if wanted is not None]
        return next(filter(None, topics), "") or self._get_words(wish)

    def _add(
        self,
        kind: str,
        value: str,
        fields: JsonObject | None = None,
        upstream: Sequence[str] = (),
        *,
        artifacts: Sequence[str] = (),
        topic: str = "",
        measured: Run | None = None,
    ) -> str:
        """Add a node for a kind, and return its id; the id is empty if no capability makes it.

        Args:
            kind: kind of the node.
            value: value of the field for the kind's role, unless an upstream node fills it.
            fields: values of other fields.
            upstream: ids of nodes whose results it takes, if it can.
            artifacts: ids of artifacts for its input.
            topic: value of a plugin's field for a topic.
            measured: terms that measure a text; without any, all terms do.
        """
        maker = self._graph.find_maker(kind)
        if maker is None:
            self._missing[KINDS[kind].conventional_id if kind in KINDS else kind] = None
            return ""
        model = maker.input_model.model_fields
        values = {name: entry for name, entry in (fields or {}).items() if name in model}
        values |= self._read_fields(maker)
        supplied = [name for name, info in model.items() if is_caller_supplied(name, info)]
        values |= dict(zip(supplied, artifacts, strict=False))
        roles: Sequence[str] = ("text", "topic", "objective", "prompt", "title")
        roles = (KINDS[kind].role, "title") if kind in KINDS else roles
        role = next((name for name in roles if find_role_field(maker, name)), "")
        name = find_role_field(maker, role) or ""
        inputs = [up for up in upstream if self._feeds(up, maker, values)]
        is_filled = name in maker.accepts and any(
            self._makers[up].can_fill(maker, name) for up in inputs
        )
        if name and value and not is_filled:
            values[name] = topic if role == "topic" and topic else value
        reason = f"For “{value[:MAX_QUOTED]}”." if value else ""
        node_id = self._choose_id(kind)
        self._nodes[node_id] = PlanNode(
            id=node_id, capability=maker.id, input=values, depends_on=inputs, reason=reason,
            expect=read_expect(measured or self._reading.terms) if kind == "text" else None,
        )  # fmt: skip
        self._makers[node_id] = maker
        produced = "text" if maker.produces.startswith("text/") else kind
        self._ids.setdefault(produced, []).append(node_id)
        return node_id

    def _feeds(self, up: str, maker: Capability, values: JsonObject) -> bool:
        producer = self._makers.get(up)
        free = (name for name in maker.accepts if name not in values)
        return producer is not None and any(producer.can_fill(maker, name) for name in free)

    def _choose_id(self, kind: str) -> str:
        base = _NODE_IDS.get(kind) or kind.rpartition(".")[2]
        alike = [f"{base}-{n}" for n in range(2, len(self._nodes) + 2)]
        return next(name for name in (base, *alike) if name not in self._nodes)

    def _read_fields(self, maker: Capability) -> JsonObject:
        """Read the numbers and choices that an objective gives for fields of a capability."""
        schema = maker.input_model.model_json_schema()["properties"]
        values: JsonObject = {}
        size = _SIZE.search(self._reading.text)
        is_sized = (maker is self._graph.find_maker("card")) == ("card" in self._reading.kinds)
        if size is not None and {"width", "height"} <= schema.keys() and is_sized:
            values |= {"width": int(size[1]), "height": int(size[2])}
        places = [i for i, term in enumerate(self._reading.terms.terms) if term["fields"] in schema]
        for i in places[:MAX_NAMED_FIELDS]:
            name = self._reading.terms.terms[i]["fields"]
            described = schema[name]
            kinds = {way.get("type") for way in (described, *described.get("anyOf", ()))}
            for term in self._reading.terms.terms[max(0, i - 2) : i + 3]:
                if term["number"] and kinds & {"integer", "number"}:
                    number = _read_decimal(term["number"])
                    values.setdefault(name, int(number) if number.is_integer() else number)
                elif fold(term.text) in described.get("enum", ()):
                    values.setdefault(name, fold(term.text))
        if "language" in schema and self._reading.language != "en":
            values["language"] = self._reading.language
        return values

    def _finish(self, deliverables: list[str]) -> PlanDraft:
        """Order the nodes, the first deliverable last, and validate the plan."""
        if self._missing:
            return _report_missing(self._missing, self._summary)
        for node in self._nodes.values():
            empty = _find_empty_field(self._makers[node.id], node)
            if empty:
                return _ask(
                    f"`{node.capability}` needs `{empty}`, the id of an artifact", self._summary
                )
        ordered: dict[str, PlanNode] = {}
        for node_id in [*reversed(deliverables), *self._nodes]:
            for up in (*self._nodes[node_id].depends_on, node_id):
                for source in (*self._nodes[up].depends_on, up):
                    ordered.setdefault(source, self._nodes[source])
        nodes = [self._mark_optional(node, deliverables) for node in ordered.values()]
        rules = PlanRules({maker.id: maker for maker in self._makers.values()})
        faults = find_plan_faults(nodes, deliverables, rules)
        if faults:
            return _ask(f"{faults[0].path} would be wrong ({faults[0].message})", self._summary)
        about = f" about {self._main.topic}" if self._main and self._main.topic else ""
        return PlanDraft(
            nodes=nodes,
            missing=tuple(self._graph.find_missing(self._makers.values())),
            rationale=f"Delivers {', '.join(deliverables)}{about}.",
            deliverables=tuple(deliverables),
            reading=self._summary,
        )

    def _mark_optional(self, node: PlanNode, deliverables: Sequence[str]) -> PlanNode:
        """Mark facts as optional that texts could do without."""
        users = [user for user in self._nodes.values() if node.id in user.depends_on]
        is_spared = node.id in self._ids.get("research", ()) and bool(users)
        is_spared &= all(find_role_field(self._makers[user.id], "objective") for user in users)
        return node.model_copy(update={"optional": is_spared and node.id not in deliverables})


def _find_empty_field(maker: Capability, node: PlanNode) -> str:
    """Find a required field that only a person can fill, and that is empty."""
    return next(
        (
            name
            for name, info in maker.input_model.model_fields.items()
            if info.is_required() and name not in node.input and is_caller_supplied(name, info)
        ),
        "",
    )


def _read_decimal(digits: str) -> float:
    """Read a number as people write it, or the first part of a time or a version."""
    decimal = re.match(r"\d+(?:[.,]\d+)?", digits)
    return float(decimal[0].replace(",", ".")) if decimal else 0.0


def _make_title(topic: str) -> str:
    """Make the title of a card from its topic.

    >>> _make_title("tidal power")
    'Tidal power'
    """
    title = topic[:1].upper() + topic[1:]
    return title if len(title) <= MAX_TITLE else title[:MAX_TITLE].rpartition(" ")[0] + "…"


def read_kinds(objective: str) -> frozenset[str]:
    """Read the kinds of things that an objective names, and cannot be a text.

    Returns:
        kinds such as `image`; none where a clause is not understood, or a text is named as well:
        "a caption for a picture" is no picture.

    >>> sorted(read_kinds("a picture of a flea market")), sorted(read_kinds("Frobnicate the gate."))
    (['image'], [])
    """
    reading = Reading(objective)
    named = {term["thing"] for term in reading.terms.terms}
    if reading.unplaced or reading.missing or reading.banned or "text" in named:
        return frozenset()
    return frozenset(named & reading.kinds)
