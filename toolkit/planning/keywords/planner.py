"""The keyword planner: plans an objective of which it knows every clause; `Plans` calls it.

It serves the sandbox, the demo, and accounts without a language model. The planner asks about
words that it does not know, and it never runs a guess.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolkit.contract.base import JsonObject
from toolkit.contract.plans import Constraints, Expect, Missing, PlanNode, PlanReading
from toolkit.planning.capability_kinds import (
    KINDS,
    CapabilityIndex,
    find_role_field,
    is_caller_supplied,
)
from toolkit.planning.keywords.clauses import Reading, Wish
from toolkit.planning.keywords.grammar import Chunk, compile_rule
from toolkit.planning.keywords.words import TEXT_UNITS, fold, read_number
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.planning.plan_validator import PlanRules, find_plan_faults
from toolkit.plugins import Capability

TOLERANCE = 0.2  # of a number of words or characters that is not exact
_MEASURE = compile_rule(
    "(?P<near>(?:<!number|numbers>){0,2}?)(?P<lower><number|numbers>)"
    "(?:<range|dash>(?P<upper><number|numbers>))?"
    "(?P<gap>(?:<dash|bound>|<!mark|thing|literal|number|and|with|not>){0,2}?)"
    f"(?P<unit><{'|'.join(f'unit:{unit}' for unit in TEXT_UNITS)}>)"
    "(?P<behind>(?:<!mark|number|numbers>|<comma>){0,2})"
)
_LANGUAGE = compile_rule(
    "(?P<onto><onto|into>)?(?P<language><languages>)(?!<thing|unknown>)(?P<into><into>)?"
)
_FORMAT = compile_rule("(?:^|<onto|as|make|article|act|mark|detail>)(?P<format><formats>)")
MAX_COPIES: Final = 8  # of one picture
MAX_QUOTED: Final = 80  # characters of a title, or of words in a reason
_NODE_IDS: Final = {
    "research": "facts", "text": "copy", "speech": "narration", "image": "illustration",
    "card": "card", "clone": "voice",
}  # fmt: skip
_PLUGIN_ROLES: Final = ("text", "topic", "objective", "prompt", "title")
_SIZE = re.compile(
    r"(?<!\d)(\d{3,4})\s*(?:px|pixels?)?\s*(?:x|×|by|mal|par|por|per)\s*(\d{3,4})(?!\d)"
)
_EDGES = " \t\n,;:.!?、，。；：،؛-–—"


def read_expect(run: Chunk) -> Expect | None:
    """Read the length, language and format that an objective states; None without a clear one.

    Only sure measures count, because the review holds a result to each of them.
    """
    measures = defaultdict[str, list[Any]](list)
    for parts in run.find_all(_MEASURE):
        unit, lower = parts["unit"].first["unit"], read_number(parts["lower"].first)
        upper = read_number(parts["upper"].first) or lower
        if 0 < lower <= upper and not _is_part(parts, unit):
            measures[unit].append(_make_amount(unit, lower, upper, _find_bound(parts)))
    for parts in run.find_all(_LANGUAGE):
        language = parts["language"].first
        if parts["onto"] or parts["into"] or language.text.startswith(("بال", "لل")):
            measures["language"].append(language["languages"])
    for parts in run.find_all(_FORMAT):
        measures["format"].append(parts["format"].first["formats"])
    exact = {name: v[0] for name, v in measures.items() if v == v[:1] * len(v)}
    return Expect(**exact) if exact else None


def _make_amount(unit: str, lower: int, upper: int, bound: str) -> object:
    if bound == "most":
        return [0, upper]
    if bound == "least":
        return [lower, None]
    if lower == upper and (bound == "about" or unit in {"words", "characters"}):
        margin = round(lower * TOLERANCE, 6)
        return [math.floor(lower - margin), math.ceil(lower + margin)]
    return lower if lower == upper and unit == "items" else [lower, upper]


def _find_bound(parts: Mapping[str, Chunk]) -> str:
    """Find the bound at a number or behind its unit, such as `most`; empty if it is exact."""
    behind = [term for term in parts["behind"].terms if "about" not in term.meanings]
    terms = [*parts["near"].terms[-1:], *parts["gap"].terms, *behind]
    return next((term["bound"] for term in terms if term["bound"]), "")


def _is_part(parts: Mapping[str, Chunk], unit: str) -> bool:
    """Return True if a number is only an article, or counts no whole text: "with two examples"."""
    near, count = parts["near"], parts["lower"].first
    last = Chunk(near.terms[-1:])
    is_article = count["numbers"] == "1" and "refer" not in count.meanings
    return (
        (is_article and not last.has("onto", "only"))
        or (last.has("not", "definite") and not last.has("bound"))
        or (near.has("with") and unit not in {"words", "characters"})
        or near.has("each")
        or parts["behind"].has("each")
    )


def make_plan(objective: str, constraints: Constraints, view: PlannerView) -> PlanDraft:
    """Plan an objective; the same arguments always give the same plan.

    Args:
        constraints: with a `max_cost_usd` of 0, no vendor's capability is planned if this machine's
            CPU can stand in.

    >>> draft = make_plan("a video about tides", Constraints(), PlannerView((), frozenset(), {}))
    >>> draft.nodes, draft.missing_capabilities
    ([], ('video.generate',))
    """
    graph = CapabilityIndex(
        view.capabilities, view.connected, view.providers, constraints.max_cost_usd == 0
    )
    reading = Reading(objective, graph.list_keywords())
    if not (reading.unplaced or reading.missing or reading.wishes or reading.is_answerable):
        reading.unplaced.append((0, len(objective)))
    return _ask(reading) if reading.unplaced else _PlanWriter(graph, reading).write()


def _ask(reading: Reading, fault: str = "") -> PlanDraft:
    """Return a draft without nodes that asks about a fault, or about words not understood."""
    words = re.findall(r"\w+", reading.text)
    parts = (reading.text[start:end] for start, end in reading.unplaced)
    unread = [word for part in parts for word in re.findall(r"\w+", part)]
    start, end = min(reading.unplaced, default=(0, 0))
    fault = fault or f"“{reading.text[start:end].strip(_EDGES)[:MAX_QUOTED]}” is not understood"
    return PlanDraft(
        nodes=[],
        question=f"Planned by keywords, and {fault}. Connect a text provider to have it planned by"
        " a language model, or say it in other words.",
        reading=PlanReading(
            understood=round(max(0, 1 - len(unread) / max(1, len(words))), 3),
            words=list(dict.fromkeys(unread))[:100],
        ),
    )


class _PlanWriter:
    """Writes the nodes of each wish of an objective, and the nodes that they depend on."""

    def __init__(self, graph: CapabilityIndex, reading: Reading) -> None:
        self._graph = graph
        self._reading = reading
        wishes = reading.wishes or [Wish("text", reading.terms)]
        self._main = next((wish for wish in wishes if wish.topic), wishes[0])
        self._details = ", ".join(reading.cut(clause).strip(_EDGES) for clause in reading.details)
        self._nodes: dict[str, PlanNode] = {}
        self._makers: dict[str, Capability] = {}
        self._ids = defaultdict[str, list[str]](list)  # by kind, in the order of their making
        self._missing = [name for name in reading.missing if graph.find_maker(name) is None]

    def write(self) -> PlanDraft:
        """Write the plan; if a capability is missing or the plan would be wrong, only say so."""
        deliverables = [] if self._missing else self._add_nodes()
        if self._missing:
            missing = tuple(Missing(capability=name) for name in dict.fromkeys(self._missing))
            rationale = " ".join(f"Nothing here makes `{name.capability}`." for name in missing)
            return PlanDraft([], missing=missing, rationale=rationale)
        inputs = {str(value) for node in self._nodes.values() for value in node.input.values()}
        artifacts = [term for term in self._reading.terms.terms if "artifact" in term.meanings]
        self._reading.unplaced += [(t.start, t.end) for t in artifacts if t.text not in inputs]
        if self._reading.unplaced:
            return _ask(self._reading)
        nodes = [self._mark_optional(node, deliverables) for node in self._nodes.values()]
        sources = {up for node in nodes for up in node.depends_on}
        nodes.sort(key=lambda node: node.id not in sources and node.id in deliverables[:1])
        rules = PlanRules({maker.id: maker for maker in self._makers.values()})
        if faults := find_plan_faults(nodes, deliverables, rules):
            return _ask(self._reading, f"{faults[0].path} would be wrong ({faults[0].message})")
        about = f" about {self._main.topic}" if self._main.topic else ""
        return PlanDraft(
            nodes=nodes,
            missing=tuple(self._graph.find_missing(self._makers.values())),
            rationale=f"Delivers {', '.join(deliverables)}{about}.",
            deliverables=tuple(deliverables),
        )

    def _add_nodes(self) -> list[str]:
        """Add the nodes of all wishes, and return the ids of the deliverables."""
        reading, kinds, deliverables = self._reading, self._reading.kinds, list[str]()
        objective = reading.text.strip()
        if (reading.needs_facts or "research" in kinds) and "research" not in reading.banned:
            facts = self._add("research", self._get_topic(self._main))
            if "text" not in kinds and (reading.asks or kinds & {"speech", "card"}):
                text = self._add("text", objective, [facts])
                deliverables += [text] if reading.asks else []
            elif not kinds - {"research"}:
                deliverables.append(facts)
        elif not reading.wishes:
            deliverables.append(self._add("text", objective))
        # A card comes last, because the results of all other nodes can stand on it.
        wishes = sorted(reading.wishes, key=lambda w: (w.kind == "card", w.kind != "clone"))
        node_ids = {id(wish): self._add_wish(wish) for wish in wishes if wish.kind != "research"}
        deliverables += [i for wish in reading.wishes for i in node_ids.get(id(wish), ())]
        return list(dict.fromkeys(filter(None, deliverables)))

    def _add_wish(self, wish: Wish) -> list[str]:
        """Add the nodes of a wish, and return the ids of its deliverables."""
        kind, texts, facts = wish.kind, self._ids["text"], self._ids["research"]
        words = self._write_brief(wish)
        quotation = " ".join(text for text, _ in wish.literals)
        if kind == "image":
            copies = wish.count if wish.count <= MAX_COPIES else 1
            return [self._add(kind, words, (), wish) for _ in range(copies)]
        needs_text = kind == "speech" or (kind == "card" and not self._graph.free_only)
        if needs_text and not (quotation or texts):
            self._add("text", words, facts)
        if kind == "text":
            before = texts[-1:] if wish.act == "rework" and not wish.literals else []
            return [self._add(kind, words, before or facts, wish)]
        if kind == "speech":
            upstream = [*([] if quotation else texts[-1:]), *self._ids["clone"]]
            return [self._add(kind, quotation, upstream)]
        if kind == "card":
            titles = (text for text, label in wish.literals if label == "title")
            title = next(titles, quotation or self._get_topic(wish))
            upstream = [*texts[-1:], *self._ids["image"][-1:]]
            return [self._add(kind, title[:1].upper() + title[1:MAX_QUOTED], upstream, wish)]
        if kind == "clone":
            return [self._add(kind, wish.topic or "voice", (), wish)]
        before = [] if wish.topic else list(self._nodes)[-1:]
        return [self._add(kind, quotation or words, before, wish)]

    def _write_brief(self, wish: Wish) -> str:
        """Write the prompt of a wish, in the person's own words and with the topic."""
        words = self._get_words(wish)
        if len(self._reading.wishes) == 1:
            return self._reading.text.strip()
        if not (wish.topic or wish.literals or wish is self._main):
            joint = self._reading.language.grammar["for"]
            words = f"{words} {joint}: {self._get_words(self._main)}"
        has_details = self._details and wish.kind != "image" and self._details not in words
        return f"{words}, {self._details}" if has_details else words

    def _get_words(self, wish: Wish) -> str:
        return self._reading.cut(wish.clause).strip(_EDGES)

    def _get_topic(self, wish: Wish) -> str:
        return wish.topic or self._main.topic or self._get_words(wish)

    def _add(
        self, kind: str, value: str, upstream: Sequence[str] = (), wish: Wish | None = None
    ) -> str:
        """Add a node for a kind, and return its id; the id is empty if no capability makes it.

        Args:
            value: value of the field for the kind's role, unless an upstream node fills it.
            upstream: ids of nodes whose results it takes, if it can.
            wish: the wish whose labels, artifacts, topic and measures the node has.
        """
        maker = self._graph.find_maker(kind)
        if maker is None:
            self._missing.append(KINDS[kind].conventional_id if kind in KINDS else kind)
            return ""
        model, values = maker.input_model.model_fields, self._read_fields(maker)
        if self._reading.unwanted and "negative_prompt" in model:
            values["negative_prompt"] = ", ".join(self._reading.unwanted)
        if wish is not None:
            values |= {label: text for text, label in wish.literals if label in model}
            artifacts = (term.text for term in wish.clause.terms if "artifact" in term.meanings)
            # Next to other wishes it is not clear which of them the artifact is for.
            needed = {
                name
                for name, binding in maker.accepts.items()
                if binding.mode == "artifact"
                and model[name].is_required()
                and len(self._reading.wishes) == 1
            }
            names = (n for n, info in model.items() if n in needed or is_caller_supplied(n, info))
            values |= dict(zip(names, artifacts, strict=False))
        roles = (KINDS[kind].role, "title") if kind in KINDS else _PLUGIN_ROLES
        role = next((name for name in roles if find_role_field(maker, name)), "")
        name = find_role_field(maker, role)
        free = maker.accepts.keys() - values.keys()
        makers = {up: self._makers[up] for up in upstream if up in self._makers}
        inputs = [up for up in makers if any(makers[up].can_fill(maker, field) for field in free)]
        is_filled = name in free and any(makers[up].can_fill(maker, name) for up in inputs)
        if name and value and not is_filled:
            values[name] = wish.topic if wish and role == "topic" and wish.topic else value
        base = _NODE_IDS.get(kind) or kind.rpartition(".")[2]
        alike = [node_id for node_id in self._nodes if node_id.startswith(base)]
        node_id = f"{base}-{len(alike) + 1}" if alike else base
        texts = [w for w in self._reading.wishes if w.kind == "text"]
        terms = wish.clause if wish and len(texts) > 1 else self._reading.terms
        self._nodes[node_id] = PlanNode(
            id=node_id, capability=maker.id, input=values, depends_on=inputs,
            reason=f"For “{value[:MAX_QUOTED]}”." if value else "",
            expect=read_expect(terms) if kind == "text" else None,
        )  # fmt: skip
        self._makers[node_id] = maker
        product = "text" if maker.produces.startswith("text/") else kind
        self._ids[product].append(node_id)
        return node_id

    def _read_fields(self, maker: Capability) -> JsonObject:
        """Read the numbers and choices that an objective gives for fields of a capability."""
        schema = maker.input_model.model_json_schema()["properties"]
        terms, values = self._reading.terms.terms, JsonObject()
        size = _SIZE.search(self._reading.text)
        is_sized = (maker is self._graph.find_maker("card")) == ("card" in self._reading.kinds)
        if size is not None and {"width", "height"} <= schema.keys() and is_sized:
            values |= {"width": int(size[1]), "height": int(size[2])}
        for i in (i for i, term in enumerate(terms) if term["fields"] in schema):
            name, schema_part = terms[i]["fields"], schema[terms[i]["fields"]]
            kinds = {way.get("type") for way in (schema_part, *schema_part.get("anyOf", ()))}
            for term in terms[max(0, i - 2) : i + 3]:
                number = re.match(r"\d+(?:[.,]\d+)?", term["number"])
                if number and kinds & {"integer", "number"}:
                    value = float(number[0].replace(",", "."))
                    values.setdefault(name, int(value) if value.is_integer() else value)
                elif fold(term.text) in schema_part.get("enum", ()):
                    values.setdefault(name, fold(term.text))
        if "language" in schema and self._reading.language.code != "en":
            values["language"] = self._reading.language.code
        return values

    def _mark_optional(self, node: PlanNode, deliverables: Sequence[str]) -> PlanNode:
        """Return a copy of a node, optional if it gathers facts that texts could do without."""
        users = [user for user in self._nodes.values() if node.id in user.depends_on]
        is_spared = node.id in self._ids["research"] and bool(users)
        is_spared &= all(find_role_field(self._makers[user.id], "objective") for user in users)
        return node.model_copy(update={"optional": is_spared and node.id not in deliverables})
