"""Replies of a language model that was asked for a plan: read, and all that is wrong found.

Models have habits: null in fields they leave out, numbers as text, words around the JSON, quotes
that they tidy up. None of these changes the plan, so none of them is a fault. A fault is what a
plan cannot be run with, and costs another call.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from pydantic import ValidationError

from toolkit.contract.base import JsonObject
from toolkit.contract.errors import Detail
from toolkit.contract.plans import Expect, Missing, PlanNode, PlanReading
from toolkit.planning.capability_index import CapabilityIndex
from toolkit.planning.graph_faults import build_digraph
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.planning.plan_validator import PlanRules, find_plan_faults
from toolkit.planning.quotes import QuotedText
from toolkit.plugins import Capability

# What a body of `POST /v1/workflows` may hold, and less.
MAX_REPLY_CHARACTERS = 200_000
MAX_DEPTH = 32
MAX_MEMBERS = 500
MAX_INTEGER = 2**63 - 1
MAX_QUESTION = 500
MAX_QUOTE = 2_000
MAX_GAPS = 50
MAX_GAP_NAME = 64
# Braces that begin no JSON are tried, each of which may be read to the end of the text.
MAX_FALSE_STARTS = 64
PLAN_KEYS = frozenset(("nodes", "deliverables", "missing", "question"))

Json: TypeAlias = Any  # a value of a reply, of which nothing is known yet
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_PLACE = re.compile(r"nodes\.(\d+)(?:\.|$)")
_PLACEHOLDER = re.compile(r"\s*(?:\{\{.*\}\}|\$\{.*\}|<[\w. -]+>)\s*", re.S)
_CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_QUESTION = frozenset(("", "none", "no", "null", "n/a", "-"))
_NUMERIC = {"integer": int, "number": float}


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of the objective that nothing here can do."""

    capability: str
    quote: str


@dataclass(frozen=True, slots=True)
class PlanReply:
    """A reply as it was read.

    Attributes:
        nodes: its nodes, without an order.
        quotes: the words that each node serves, or none.
        deliverables: the ids of the nodes that were asked for, the main one first.
        gaps: what nothing here can do.
        question: what the person has to be asked; empty if nothing has.
    """

    nodes: Sequence[PlanNode]
    quotes: Sequence[str]
    deliverables: Sequence[str]
    gaps: Sequence[Gap]
    question: str


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A plan as it was read from a reply, and all that is wrong with it."""

    draft: PlanDraft
    faults: list[Detail]


def read_plan_reply(text: str, objective: str, view: PlannerView, rules: PlanRules) -> ReadPlan:
    """Read the plan in a reply; of whatever comes in, without an exception.

    Args:
        text: the reply.
        objective: what was asked for, whose words each node quotes.
        view: the capabilities and connections to plan with.
        rules: what the plan is held to.
    """
    nothing = PlanDraft(nodes=[])
    try:
        document = load_document(text, PLAN_KEYS)
    except ValueError as error:
        return ReadPlan(nothing, [Detail("", str(error))])
    reply, faults = _ReplyReader(rules).read(document)
    if not (reply.nodes or reply.gaps or reply.question or faults):
        reason = "it has no node, names nothing that is missing, and asks nothing"
        return ReadPlan(nothing, [Detail("", reason)])
    found = [
        *(find_plan_faults(reply.nodes, reply.deliverables, rules) if reply.nodes else ()),
        *_find_gap_faults(reply.gaps, rules),
        *_find_artifact_faults(reply.nodes, objective, rules),
    ]
    # What is wrong with a node that is no node says nothing more.
    broken = {match[1] for fault in faults if (match := _PLACE.match(fault.path))}
    faults += [one for one in found if (m := _PLACE.match(one.path)) is None or m[1] not in broken]
    draft = nothing if faults else _make_draft(reply, objective, view, rules)
    return ReadPlan(draft, faults)


def load_document(text: str, keys: frozenset[str] = frozenset()) -> JsonObject:
    """Load the last JSON object in a text, with or without words or other objects around it.

    Args:
        text: the text.
        keys: of which the object has one at least, if any are given.

    Raises:
        ValueError: there is none, or it holds what no request may.

    >>> load_document('Here it is: {"nodes": []}. Enjoy!')
    {'nodes': []}
    """
    if len(text) > MAX_REPLY_CHARACTERS:
        raise ValueError(f"it is longer than {MAX_REPLY_CHARACTERS} characters")
    found: JsonObject | None = None
    refusal = "it is no JSON object"
    try:
        for value in _iter_objects(text):
            refusal = f"no object in it has a member `{'` or `'.join(sorted(keys))}`"
            for one in (value, *value.values()):
                if isinstance(one, dict) and (not keys or keys & one.keys()):
                    found = one
                    break
    except ValueError as error:
        refusal = str(error)
    if found is None:
        raise ValueError(refusal)
    for part, depth in _iter_parts(found):
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if isinstance(part, str) and _UNWRITABLE.search(part):
            raise ValueError("a text in it holds a NUL character or half of a character")
        if isinstance(part, dict) and len(part) > MAX_MEMBERS:
            raise ValueError(f"an object in it has more than {MAX_MEMBERS} members")
    return found


def _iter_objects(text: str) -> Iterator[JsonObject]:
    """Yield the JSON objects in a text, in order.

    Raises:
        ValueError: after the last one, where something begins like one that is none.
    """
    decoder = json.JSONDecoder(
        parse_constant=_refuse_number, parse_float=_parse_float, parse_int=_parse_integer
    )
    refusal: ValueError | None = None
    at, false_starts = text.find("{"), 0
    while at >= 0 and false_starts < MAX_FALSE_STARTS:
        try:
            value, at = decoder.raw_decode(text, at)
            yield value
        except json.JSONDecodeError:
            refusal = refusal or ValueError("it is no JSON object, or was cut off before its end")
            false_starts += 1
            at += 1
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except ValueError as error:  # a number that is none
            refusal = refusal or error
            false_starts += 1
            at += 1
        at = text.find("{", at)
    if refusal is not None:
        raise refusal


def _iter_parts(value: object) -> Iterator[tuple[object, int]]:
    """Yield every value in a document with its depth, names of members among them."""
    left = [(value, 1)]
    while left:
        part, depth = left.pop()
        yield part, depth
        inner = list(chain(*part.items())) if isinstance(part, dict) else part
        if isinstance(inner, list):
            left += [(one, depth + 1) for one in inner]


def _refuse_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _parse_float(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse_number("what is out of range")


def _parse_integer(digits: str) -> int:
    value = int(digits) if len(digits) <= 20 else MAX_INTEGER + 1
    if abs(value) > MAX_INTEGER:
        raise ValueError("a number in it is out of range")
    return value


class _ReplyReader:
    """Reads the parts of a reply, each in whatever form a model gives it."""

    def __init__(self, rules: PlanRules) -> None:
        self._rules = rules
        self._faults: list[Detail] = []

    def read(self, document: JsonObject) -> tuple[PlanReply, list[Detail]]:
        """Read a reply; a part that cannot be read leaves an empty one in its place."""
        raw_nodes = _read_list(document.get("nodes"))
        nodes = [self._read_node(raw, i) for i, raw in enumerate(raw_nodes)]
        quotes = [_read_line(one.get("quote")) for one in raw_nodes if isinstance(one, dict)]
        gaps = [
            self._read_gap(raw, i)
            for i, raw in enumerate(_read_list(document.get("missing"))[:MAX_GAPS])
        ]
        question = _read_line(document.get("question"))[:MAX_QUESTION]
        reply = PlanReply(
            nodes,
            quotes,
            _read_deliverables(document.get("deliverables"), nodes),
            [gap for gap in gaps if gap is not None],
            "" if question.strip(" .").casefold() in _NO_QUESTION else question,
        )
        return reply, self._faults

    def _read_node(self, raw: Json, i: int) -> PlanNode:
        if not isinstance(raw, dict):
            self._faults.append(Detail(f"nodes.{i}", "a node is an object"))
            raw = {}
        name = _read_line(raw.get("capability"))
        capability = self._rules.capabilities.get(name)
        try:
            given = _read_input(raw.get("input"), capability)
        except ValueError as error:
            self._faults.append(Detail(f"nodes.{i}.input", str(error)))
            given = {}
        quote = _read_line(raw.get("quote"))[:MAX_QUOTE]
        return PlanNode(
            id=str(raw.get("id") or f"node-{i + 1}"),
            capability=name,
            input=given,
            depends_on=list(dict.fromkeys(map(str, _read_list(raw.get("depends_on"))))),
            reason=f"Serves “{quote}”." if quote else "",
            optional=raw.get("optional") in (True, "true"),
            expect=_read_expect(raw.get("expect")),
        )

    def _read_gap(self, raw: Json, i: int) -> Gap | None:
        given = raw if isinstance(raw, dict) else {"capability": raw}
        name = _name_capability(_read_line(given.get("capability")))
        if name:
            return Gap(name, _read_line(given.get("quote"))[:MAX_QUOTE])
        self._faults.append(Detail(f"missing.{i}.capability", "it has no name"))
        return None


def _read_list(raw: Json) -> list[Json]:
    """Read a list, which may be a single value or nothing."""
    if raw is None or raw == "":
        return []
    return raw if isinstance(raw, list) else [raw]


def _read_line(raw: Json) -> str:
    """Read a text as one line."""
    text = raw if isinstance(raw, str) else "" if raw is None else str(raw)
    return " ".join(_CONTROL_CHARACTERS.sub(" ", text).split())


def _read_deliverables(raw: Json, nodes: Sequence[PlanNode]) -> list[str]:
    """Read what was asked for: the nodes that are named, and every other that feeds none."""
    known = {node.id for node in nodes}
    used = {up for node in nodes for up in node.depends_on}
    named = [one for one in _read_list(raw) if isinstance(one, str) and one in known]
    return list(dict.fromkeys([*named, *(node.id for node in nodes if node.id not in used)]))


def _name_capability(name: str) -> str:
    """Name what is missing as capabilities are named.

    >>> _name_capability("sendEmail"), _name_capability("Video editing")
    ('send_email', 'video_editing')
    """
    humps = _CAMEL_HUMP.sub("_", name.partition("@")[0])
    parts = (re.sub(r"\W+", "_", part).strip("_").lower() for part in humps.split("."))
    return ".".join(filter(None, parts))[:MAX_GAP_NAME]


def _read_input(raw: Json, capability: Capability | None) -> JsonObject:
    """Read a node's input: an object, the text of one, or a list of fields and their values.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(raw, str) and raw.strip():
        raw = load_document(raw)
    if isinstance(raw, list):
        if not all(isinstance(one, dict) and isinstance(one.get("field"), str) for one in raw):
            raise ValueError("an input is a list of objects with a `field` and its `value`")
        raw = {one["field"]: one.get("value") for one in raw}
    if raw is not None and not isinstance(raw, str | dict):
        raise ValueError("an input is an object")
    schema = {} if capability is None else capability.input_model.model_json_schema()
    fields = schema.get("properties", {})
    given = {}
    for name, value in (raw or {}).items() if isinstance(raw, dict) else ():
        if not _is_left_out(value):
            given[name] = _cast(value, _find_type(fields.get(name, {}), schema))
    return given


def _is_left_out(value: Json) -> bool:
    """Tell whether a value stands for none: empty, or the mark of what another node fills in."""
    if isinstance(value, str):
        return not value.strip() or _PLACEHOLDER.fullmatch(value) is not None
    return value is None or value == [] or value == {}


def _find_type(part: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Find the one type that a field takes beside null; empty if it takes several."""
    if "$ref" in part:
        name = str(part["$ref"]).rpartition("/")[2]
        part = root.get("$defs", {}).get(name, {})
    ways = [part, *part.get("anyOf", ())]
    types = {_find_type(way, root) if "$ref" in way else way.get("type") for way in ways}
    types -= {None, "null", ""}
    return str(types.pop()) if len(types) == 1 else ""


def _cast(value: Json, kind: str) -> Json:
    """Cast what a model wrote as text to the type of its field, where it says the same."""
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str) or kind in ("", "string"):
        return value
    text = value.strip()
    try:
        if kind in _NUMERIC:
            number = _NUMERIC[kind](text)
            return number if abs(number) <= MAX_INTEGER else value
        loaded = json.loads(text) if kind in ("array", "object", "boolean") else value
    except (ValueError, RecursionError):
        return value
    return loaded if isinstance(loaded, list | dict | bool) else value


def _read_expect(raw: Json) -> Expect | None:
    """Read what a result has to come to; a part that cannot be counted is left out."""
    members = dict(raw) if isinstance(raw, dict) else {}
    for one in raw if isinstance(raw, list) else ():
        if isinstance(one, dict) and isinstance(one.get("measure"), str):
            members[one["measure"]] = one.get("value", one)
    kept: JsonObject = {}
    for name, value in members.items():
        if isinstance(value, dict):
            least, most = value.get("least") or 0, value.get("most") or None
            value = least if least == most else [least, most]
        try:
            kept |= Expect.model_validate({name: value}).model_dump(exclude_none=True)
        except ValidationError:
            continue
    return Expect.model_validate(kept) if kept else None


def _find_gap_faults(gaps: Sequence[Gap], rules: PlanRules) -> list[Detail]:
    """Find what is called missing and is here."""
    faults = []
    for i, gap in enumerate(gaps):
        found = rules.capabilities.get(gap.capability)
        allowed = rules.allowed is None or gap.capability in rules.allowed
        if found is not None and found.status == "available" and allowed:
            reason = f"`{gap.capability}` is here: plan with it"
            faults.append(Detail(f"missing.{i}.capability", reason))
    return faults


def _find_artifact_faults(
    nodes: Sequence[PlanNode], objective: str, rules: PlanRules
) -> list[Detail]:
    """Find artifacts that no objective named: a model may not reach for others."""
    faults = []
    for i, node in enumerate(nodes):
        capability = rules.capabilities.get(node.capability)
        for field, binding in capability.accepts.items() if capability else ():
            named = node.input.get(field)
            if binding.mode == "artifact" and isinstance(named, str) and named not in objective:
                reason = "an artifact is named here that the objective does not name"
                faults.append(Detail(f"nodes.{i}.input.{field}", reason))
    return faults


def _make_draft(reply: PlanReply, objective: str, view: PlannerView, rules: PlanRules) -> PlanDraft:
    """Make the plan of a reply without faults."""
    graph = CapabilityIndex(view.capabilities, view.connected, view.providers)
    gaps = dict.fromkeys(gap.capability for gap in reply.gaps)
    missing = [
        *(Missing(capability=one) for one in gaps),
        *graph.find_missing(rules.capabilities[node.capability] for node in reply.nodes),
    ]
    # Beside a plan, a question is a courtesy.
    asked, noted = ("", reply.question) if reply.nodes else (reply.question, "")
    return PlanDraft(
        nodes=_sort_nodes(reply.nodes, reply.deliverables),
        missing=tuple(missing),
        rationale=_explain(reply.deliverables, missing, noted),
        deliverables=tuple(reply.deliverables),
        question=asked or None,
        reading=_measure_reading(reply, objective),
    )


def _sort_nodes(nodes: Sequence[PlanNode], deliverables: Sequence[str]) -> list[PlanNode]:
    """Sort dependencies before dependents, and the main deliverable as late as it goes."""
    import networkx as nx  # slow to import

    main = deliverables[0] if deliverables else None
    index = {node.id: (node.id == main, i) for i, node in enumerate(nodes)}
    by_id = {node.id: node for node in nodes}
    order = nx.lexicographical_topological_sort(build_digraph(nodes), key=index.__getitem__)
    return [by_id[node_id] for node_id in order]


def _explain(deliverables: Sequence[str], missing: Sequence[Missing], noted: str) -> str:
    made = f"Delivers {', '.join(deliverables)}, as a language model planned."
    return " ".join(
        [
            *([made] if deliverables else []),
            *(
                f"`{one.capability}` needs a connection: {' or '.join(one.any_of)}."
                if one.any_of
                else f"Nothing here makes `{one.capability}`."
                for one in missing
            ),
            *([f"The model also asks: {noted}"] if noted else []),
        ]
    )


def _measure_reading(reply: PlanReply, objective: str) -> PlanReading:
    """Measure how much of an objective a reply's quotes cover, and list the words that none has."""
    quoted = QuotedText(objective)
    given = (value for node in reply.nodes for value in node.input.values())
    copied = (value for value in given if isinstance(value, str))
    for quote in chain(reply.quotes, (gap.quote for gap in reply.gaps), copied):
        quoted.mark(quote)
    words = quoted.list_words()
    left = [word for word, is_marked in words if not is_marked]
    share = 1 - len(left) / len(words) if words else 1.0
    return PlanReading(understood=round(share, 3), words=list(dict.fromkeys(left))[:100])
