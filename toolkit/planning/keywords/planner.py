"""The keyword planner: plans an objective of which it knows every clause; `Plans` calls it.

It serves the sandbox, the demo, and accounts without a language model. What it does not know it
asks about, and it never runs a guess.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from toolkit.contract.base import JsonObject
from toolkit.contract.plans import Constraints, Missing, PlanNode, PlanReading
from toolkit.planning.capability_index import CapabilityIndex
from toolkit.planning.capability_kinds import KINDS, find_role_field, is_caller_supplied
from toolkit.planning.keywords.clauses import Reading, Wish, read_clauses
from toolkit.planning.keywords.words import (
    Term,
    Vocabulary,
    add_keywords,
    find_language,
    fold,
    load_vocabulary,
    read_terms,
)
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.planning.plan_validator import PlanRules, find_plan_faults
from toolkit.plugins import Capability

MAX_COPIES: Final = 8  # of one picture
MAX_TITLE: Final = 80
MAX_NAMED_FIELDS: Final = 20
MAX_TOLD: Final = 80  # characters of a clause that is not understood
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
        objective: what is wanted, in a person's words.
        constraints: with a `max_cost_usd` of 0, nothing is planned that a vendor bills for if this
            machine's CPU can stand in.
        view: the capabilities and connections to plan with.

    >>> draft = make_plan("a video about tides", Constraints(), PlannerView((), frozenset(), {}))
    >>> draft.nodes, draft.missing_capabilities
    ([], ('video.generate',))
    """
    graph = CapabilityIndex(
        view.capabilities, view.connected, view.providers, constraints.max_cost_usd == 0
    )
    language = add_keywords(load_vocabulary(find_language(objective)), graph.list_keywords())
    terms = read_terms(objective, language)
    reading = read_clauses(objective, terms, language)
    wishes = _merge_wishes(reading.wishes)
    used = {artifact for wish in wishes for artifact in wish.artifacts}
    unused = [(t.start, t.end) for t in terms if t.has("artifact") and t.text not in used]
    unplaced = [*reading.unplaced, *unused]
    if not unplaced and not reading.missing:
        unplaced = _find_unclear(wishes, reading, graph)
        if not wishes and not (
            reading.questions and (reading.needs_facts or reading.is_answerable)
        ):
            unplaced = [(0, len(objective))]
    told = _tell_reading(objective, unplaced)
    if unplaced:
        start, end = min(unplaced)
        words = objective[start:end].strip(_EDGES)
        return _ask(f"“{words[:MAX_TOLD]}” is not understood", told)
    lacking = dict.fromkeys(name for name in reading.missing if graph.find_maker(name) is None)
    if lacking:
        return _lack(lacking, told)
    return _PlanWriter(objective, language, terms, graph, told).write(wishes, reading)


def _lack(names: Iterable[str], reading: PlanReading) -> PlanDraft:
    missing = tuple(Missing(capability=one) for one in names)
    rationale = " ".join(f"Nothing here makes `{one.capability}`." for one in missing)
    return PlanDraft([], missing=missing, rationale=rationale, reading=reading)


def _ask(reason: str, reading: PlanReading) -> PlanDraft:
    question = (
        f"Planned by keywords, and {reason}. Connect a text provider to have it planned by a"
        " language model, or say it in other words."
    )
    return PlanDraft([], question=question, reading=reading)


def _tell_reading(objective: str, unplaced: list[tuple[int, int]]) -> PlanReading:
    is_left = bytearray(len(objective))
    for start, end in unplaced:
        is_left[start:end] = b"\1" * (end - start)
    words = list(_WORD.finditer(objective))
    left = [word[0] for word in words if is_left[word.start()]]
    share = 1 - len(left) / len(words) if words else 1.0
    return PlanReading(understood=round(share, 3), words=list(dict.fromkeys(left))[:100])


def _merge_wishes(wishes: list[Wish]) -> list[Wish]:
    """Merge the wishes that say more of the one before them, such as "140 words"."""
    merged: list[Wish] = []
    for wish in wishes:
        last = merged[-1] if merged else None
        if last is not None and last.kind == wish.kind:
            if last.act == "draw" and wish.joined == "with":
                last.count = wish.count
                continue
            if wish.kind == "text" and wish.joined == "comma" and wish.act == "write":
                last.end = wish.end
                continue
        is_bare = wish.joined == "comma" and not wish.act and not wish.has_article
        is_bare |= wish.refers and not (wish.act or wish.topic or wish.literals)
        if not (is_bare and any(one.kind == wish.kind for one in merged)):
            merged.append(wish)
        elif last is not None:
            last.end = max(last.end, wish.end)
            last.is_each |= wish.is_each
    texts = [wish for wish in merged if wish.kind == "text"]
    if any(not wish.is_measure for wish in texts):
        merged = [wish for wish in merged if wish.kind != "text" or not wish.is_measure]
    return merged


def _find_unclear(
    wishes: list[Wish], reading: Reading, graph: CapabilityIndex
) -> list[tuple[int, int]]:
    """Find the wishes of which it is not known which nodes they stand for."""
    texts = [wish for wish in wishes if wish.kind == "text"]
    pictures = [wish for wish in wishes if wish.kind == "image"]
    written = [wish for wish in texts if not (wish.act == "rework" and wish.refers)]
    cards = [wish for wish in wishes if wish.kind == "card"]
    single = [cards, [wish for wish in wishes if wish.kind == "speech"]]
    unclear = [
        wish
        for wish in wishes
        if wish.kind in reading.banned - {"text"}
        or wish.is_each
        or (wish.kind == "speech" and len(wish.literals) > 1)
        or (wish.artifacts and not _takes_artifact(graph.find_maker(wish.kind)))
        or (
            wish.count > 1
            and (wish.kind in {"speech", "card"} or wish.lists)
            and wish not in pictures
        )
    ]
    unclear += written[1:]
    unclear += [same[1] for same in single if len(same) > 1]
    if len(pictures) > 1:
        unclear += [wish for wish in pictures if not wish.topic]
    # Whether a lone quotation is all that stands on a card with a picture.
    unclear += [one for one in cards if pictures and any(not label for _, label in one.literals)]
    return [(wish.start, wish.end) for wish in unclear]


def _takes_artifact(maker: Capability | None) -> bool:
    fields = maker.input_model.model_fields.items() if maker is not None else ()
    return any(is_caller_supplied(name, info) for name, info in fields)


class _PlanWriter:
    """Writes a node for each wish of an objective, and for what it is made of."""

    def __init__(
        self,
        objective: str,
        language: Vocabulary,
        terms: Sequence[Term],
        graph: CapabilityIndex,
        told: PlanReading,
    ) -> None:
        self._objective = objective.strip()
        self._text = objective
        self._language = language
        self._terms = terms
        self._graph = graph
        self._told = told
        self._nodes: dict[str, PlanNode] = {}
        self._makers: dict[str, Capability] = {}
        self._ids: dict[str, list[str]] = {}  # by kind, in the order in which they were made
        self._lacking: dict[str, None] = {}
        self._main: Wish | None = None
        self._details = ""
        self._has_card = False

    def write(self, wishes: Sequence[Wish], reading: Reading) -> PlanDraft:
        """Write the plan, or ask for what it needs."""
        self._main = next((one for one in wishes if one.topic), wishes[0] if wishes else None)
        spans = [self._text[start:end].strip(_EDGES) for start, end in reading.details]
        self._details = ", ".join(one for one in spans if not _SIZE.search(one))
        kinds = {wish.kind for wish in wishes}
        self._has_card = "card" in kinds
        is_asked = bool(reading.questions or reading.mentions_text) or any(
            w.kind == "research" and (w.asks or w.count > 1) for w in wishes
        )
        delivered: list[str] = []
        if (reading.needs_facts or "research" in kinds) and "research" not in reading.banned:
            topic = self._get_topic(self._main)
            facts = self._add("research", topic, {}, [])
            if "text" not in kinds and is_asked | bool(kinds & {"speech", "card"}):
                text = self._add("text", self._objective, {}, [facts])
                delivered += [text] if is_asked else []
            elif not kinds - {"research"}:
                delivered.append(facts)
        elif not wishes:
            delivered.append(self._add("text", self._objective, {}, []))
        # Whatever is made can stand on a card.
        ordered = sorted(wishes, key=lambda wish: (wish.kind == "card", wish.kind != "clone"))
        made = {id(one): self._add_wish(one, reading, is_alone=len(wishes) == 1) for one in ordered}
        delivered += [node_id for wish in wishes for node_id in made[id(wish)]]
        return self._finish(list(dict.fromkeys(filter(None, delivered))))

    def _add_wish(self, wish: Wish, reading: Reading, *, is_alone: bool) -> list[str]:
        """Add the nodes of a wish, and return the ids of those that it asks for."""
        texts, facts = self._ids.get("text", []), self._ids.get("research", [])
        words = self._objective if is_alone else self._write_brief(wish)
        if wish.kind == "research":
            return []
        if wish.kind == "text":
            before = texts[-1:] if wish.act == "rework" and not wish.literals else []
            return [self._add("text", words, {}, before or facts)]
        if wish.kind == "image":
            unwanted: JsonObject = {}
            if reading.unwanted:
                unwanted["negative_prompt"] = ", ".join(reading.unwanted)
            copies = wish.count if wish.count <= MAX_COPIES else 1
            return [self._add("image", words, dict(unwanted), []) for _ in range(copies)]
        if wish.kind == "clone":
            return [self._add("clone", wish.topic or "voice", {}, [], artifacts=wish.artifacts)]
        said = " ".join(text for text, _ in wish.literals)
        if wish.kind == "speech":
            if not said and not texts:
                texts = [self._add("text", words, {}, facts)]
            voices = self._ids.get("clone", [])
            return [self._add("speech", said, {}, [*([] if said else texts[-1:]), *voices])]
        if wish.kind == "card":
            if not said and not texts and not self._graph.free_only:
                texts = [self._add("text", words, {}, facts)]
            labelled: JsonObject = {label: text for text, label in wish.literals if label}
            title = str(labelled.pop("title", "")) or said or _make_title(self._get_topic(wish))
            pictures = self._ids.get("image", [])
            return [self._add("card", title, labelled, [*texts[-1:], *pictures[-1:]])]
        before = list(self._nodes)[-1:] if wish.refers or not wish.topic else []
        return [self._add(wish.kind, said or words, {}, before, topic=wish.topic)]

    def _write_brief(self, wish: Wish) -> str:
        """Write what is asked of a node, in the person's own words and with the topic."""
        words = self._get_words(wish)
        if not (wish.topic or wish.literals) and self._main not in (None, wish):
            joint = self._language.grammar.get("for", "for")
            words = f"{words} {joint}: {self._get_words(self._main)}"
        has_details = self._details and wish.kind != "image" and self._details not in words
        return f"{words}, {self._details}" if has_details else words

    def _get_words(self, wish: Wish | None) -> str:
        return "" if wish is None else self._text[wish.start : wish.end].strip(_EDGES)

    def _get_topic(self, wish: Wish | None) -> str:
        own = wish.topic if wish is not None else ""
        return own or (self._main.topic if self._main else "") or self._get_words(wish)

    def _add(
        self,
        kind: str,
        value: str,
        given: JsonObject,
        upstream: Sequence[str],
        *,
        artifacts: Sequence[str] = (),
        topic: str = "",
    ) -> str:
        """Add a node for a kind, and return its id; none where nothing makes it.

        Args:
            kind: of the node.
            value: what is given to the field of the kind's role, unless an upstream node fills it.
            given: its other fields.
            upstream: the nodes whose results it takes, if it can.
            artifacts: the ids of those that it is given.
            topic: what a plugin's capability is given that takes a topic.
        """
        maker = self._graph.find_maker(kind)
        if maker is None:
            self._lacking[KINDS[kind].conventional_id if kind in KINDS else kind] = None
            return ""
        fields = maker.input_model.model_fields
        given = {name: one for name, one in given.items() if name in fields}
        given |= self._read_fields(maker)
        supplied = [name for name, info in fields.items() if is_caller_supplied(name, info)]
        given |= dict(zip(supplied, artifacts, strict=False))
        roles: Sequence[str] = ("text", "topic", "objective", "prompt", "title")
        roles = (KINDS[kind].role, "title") if kind in KINDS else roles
        role = next((one for one in roles if find_role_field(maker, one)), "")
        name = find_role_field(maker, role) or ""
        used = [up for up in upstream if self._feeds(up, maker, given)]
        is_filled = name in maker.accepts and any(
            self._makers[up].can_fill(maker, name) for up in used
        )
        if name and value and not is_filled:
            given[name] = topic if role == "topic" and topic else value
        node_id = self._choose_id(kind)
        reason = f"For “{value[:MAX_TOLD]}”." if value else ""
        self._nodes[node_id] = PlanNode(
            id=node_id, capability=maker.id, input=given, depends_on=used, reason=reason
        )
        self._makers[node_id] = maker
        produced = "text" if maker.produces.startswith("text/") else kind
        self._ids.setdefault(produced, []).append(node_id)
        return node_id

    def _feeds(self, up: str, maker: Capability, given: JsonObject) -> bool:
        producer = self._makers.get(up)
        free = (name for name in maker.accepts if name not in given)
        return producer is not None and any(producer.can_fill(maker, name) for name in free)

    def _choose_id(self, kind: str) -> str:
        base = _NODE_IDS.get(kind) or kind.rpartition(".")[2]
        alike = [f"{base}-{n}" for n in range(2, len(self._nodes) + 2)]
        return next(one for one in (base, *alike) if one not in self._nodes)

    def _read_fields(self, maker: Capability) -> JsonObject:
        """Read the numbers and choices that an objective gives for fields of a capability."""
        schema = maker.input_model.model_json_schema()["properties"]
        found: JsonObject = {}
        size = _SIZE.search(self._text)
        is_card = maker is self._graph.find_maker("card")
        if size is not None and {"width", "height"} <= schema.keys() and is_card == self._has_card:
            found |= {"width": int(size[1]), "height": int(size[2])}
        named = [i for i, term in enumerate(self._terms) if term["fields"] in schema]
        for i in named[:MAX_NAMED_FIELDS]:
            name = self._terms[i]["fields"]
            described = schema[name]
            kinds = {way.get("type") for way in (described, *described.get("anyOf", ()))}
            for term in self._terms[max(0, i - 2) : i + 3]:
                if term.has("number") and kinds & {"integer", "number"}:
                    number = _read_decimal(term["number"])
                    found.setdefault(name, int(number) if number.is_integer() else number)
                elif fold(term.text) in described.get("enum", ()):
                    found.setdefault(name, fold(term.text))
        if "language" in schema and self._language.code != "en":
            found["language"] = self._language.code
        return found

    def _finish(self, delivered: list[str]) -> PlanDraft:
        """Order the nodes, the first deliverable last, and hold the plan to the validator."""
        if self._lacking:
            return _lack(self._lacking, self._told)
        for node in self._nodes.values():
            wanting = _find_wanting(self._makers[node.id], node)
            if wanting:
                field_name = f"`{wanting}`, the id of an artifact"
                return _ask(f"`{node.capability}` needs {field_name}", self._told)
        ordered: dict[str, PlanNode] = {}
        for node_id in [*reversed(delivered), *self._nodes]:
            for up in (*self._nodes[node_id].depends_on, node_id):
                for one in (*self._nodes[up].depends_on, up):
                    ordered.setdefault(one, self._nodes[one])
        nodes = [self._mark_optional(node, delivered) for node in ordered.values()]
        rules = PlanRules({maker.id: maker for maker in self._makers.values()})
        faults = find_plan_faults(nodes, delivered, rules)
        if faults:
            return _ask(f"{faults[0].path} would be wrong ({faults[0].message})", self._told)
        about = f" about {self._main.topic}" if self._main and self._main.topic else ""
        return PlanDraft(
            nodes=nodes,
            missing=tuple(self._graph.find_missing(self._makers.values())),
            rationale=f"Delivers {', '.join(delivered)}{about}.",
            deliverables=tuple(delivered),
            reading=self._told,
        )

    def _mark_optional(self, node: PlanNode, delivered: Sequence[str]) -> PlanNode:
        """Mark facts as optional that texts could do without."""
        users = [one for one in self._nodes.values() if node.id in one.depends_on]
        spared = all(find_role_field(self._makers[one.id], "objective") for one in users)
        is_spared = node.id in self._ids.get("research", ()) and bool(users) and spared
        return node.model_copy(update={"optional": is_spared and node.id not in delivered})


def _find_wanting(maker: Capability, node: PlanNode) -> str:
    """Find a field that only a person can fill, and that nobody filled."""
    fields = maker.input_model.model_fields.items()
    wanting = (name for name, info in fields if info.is_required() and name not in node.input)
    return next(
        (n for n in wanting if is_caller_supplied(n, maker.input_model.model_fields[n])), ""
    )


def _read_decimal(digits: str) -> float:
    """Read a number as people write it; the first part of what is none, such as a time."""
    found = re.match(r"\d+(?:[.,]\d+)?", digits)
    return float(found[0].replace(",", ".")) if found else 0.0


def _make_title(topic: str) -> str:
    """Make the title of a card from its topic.

    >>> _make_title("tidal power")
    'Tidal power'
    """
    title = topic[:1].upper() + topic[1:]
    return title if len(title) <= MAX_TITLE else title[:MAX_TITLE].rpartition(" ")[0] + "…"
