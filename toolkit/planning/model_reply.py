"""Replies of a language model to a request for a plan: the plan in a reply, and all its faults.

Models have habits: null in fields they leave out, numbers as text, words around the JSON, quotes
that they tidy up. None of these changes the plan, so none of them is a fault. A plan with a fault
cannot run, so a fault costs another call.
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
from toolkit.planning.capability_kinds import CapabilityIndex
from toolkit.planning.graph_faults import build_digraph
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.planning.plan_validator import PlanRules, find_plan_faults
from toolkit.planning.quotes import QuotedText
from toolkit.plugins import Capability

# The limits of a body of `POST /v1/workflows`, and lower limits.
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

Json: TypeAlias = Any  # a value of a reply, not validated yet
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
    """The reply of a model that plans, as far as it could be parsed.

    Attributes:
        quotes: the words of the objective that each node serves; may be empty.
        deliverables: the ids of the requested nodes, the main deliverable first.
        question: the question to the person; empty if there is no question.
    """

    nodes: Sequence[PlanNode]
    quotes: Sequence[str]
    deliverables: Sequence[str]
    gaps: Sequence[Gap]
    question: str


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A plan that was read from a reply, and all its faults; with faults, the plan is empty."""

    draft: PlanDraft
    faults: list[Detail]


def read_plan_reply(text: str, objective: str, view: PlannerView, rules: PlanRules) -> ReadPlan:
    """Read the plan in a reply; an invalid reply gives faults, not an exception.

    Args:
        objective: the person's objective, whose words each node quotes.
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
    plan_faults = [
        *(find_plan_faults(reply.nodes, reply.deliverables, rules) if reply.nodes else ()),
        *_find_gap_faults(reply.gaps, rules),
        *_find_artifact_faults(reply.nodes, objective, rules),
    ]
    # Further faults of a node that could not be read would only repeat the first.
    broken = {match[1] for fault in faults if (match := _PLACE.match(fault.path))}
    faults += [f for f in plan_faults if (m := _PLACE.match(f.path)) is None or m[1] not in broken]
    draft = nothing if faults else _make_draft(reply, objective, view, rules)
    return ReadPlan(draft, faults)


def load_document(text: str, keys: frozenset[str] = frozenset()) -> JsonObject:
    """Load the last JSON object in a text, which may have words or an object around it.

    Args:
        keys: names of members; the object has at least one of these, if any are given.

    Raises:
        ValueError: there is no object, or it breaks a limit of requests.

    >>> load_document('Here it is: {"nodes": []}. Enjoy!')
    {'nodes': []}
    """
    if len(text) > MAX_REPLY_CHARACTERS:
        raise ValueError(f"it is longer than {MAX_REPLY_CHARACTERS} characters")
    document: JsonObject | None = None
    refusal = "it is no JSON object"
    try:
        for value in _iter_objects(text):
            refusal = f"no object in it has a member `{'` or `'.join(sorted(keys))}`"
            for part in (value, *value.values()):
                if isinstance(part, dict) and (not keys or keys & part.keys()):
                    document = part
                    break
    except ValueError as error:
        refusal = str(error)
    if document is None:
        raise ValueError(refusal)
    for part, depth in _iter_parts(document):
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if isinstance(part, str) and _UNWRITABLE.search(part):
            raise ValueError("a text in it holds a NUL character or half of a character")
        if isinstance(part, dict) and len(part) > MAX_MEMBERS:
            raise ValueError(f"an object in it has more than {MAX_MEMBERS} members")
    return document


def _iter_objects(text: str) -> Iterator[JsonObject]:
    """Yield the JSON objects in a text, in order.

    Raises:
        ValueError: after the last object, if some text begins like an object and is invalid.
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
        except ValueError as error:  # an invalid number
            refusal = refusal or error
            false_starts += 1
            at += 1
        at = text.find("{", at)
    if refusal is not None:
        raise refusal


def _iter_parts(value: object) -> Iterator[tuple[object, int]]:
    """Yield every value in a document and every name of a member, each with its depth."""
    stack = [(value, 1)]
    while stack:
        part, depth = stack.pop()
        yield part, depth
        inner = list(chain(*part.items())) if isinstance(part, dict) else part
        if isinstance(inner, list):
            stack += [(child, depth + 1) for child in inner]


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
    """Reads the parts of a reply, in each of the forms that models give them."""

    def __init__(self, rules: PlanRules) -> None:
        self._rules = rules
        self._faults: list[Detail] = []

    def read(self, document: JsonObject) -> tuple[PlanReply, list[Detail]]:
        """Read a reply; a part that cannot be read becomes empty and adds a fault."""
        raw_nodes = _read_list(document.get("nodes"))
        nodes = [self._read_node(raw, i) for i, raw in enumerate(raw_nodes)]
        quotes = [_read_line(raw.get("quote")) for raw in raw_nodes if isinstance(raw, dict)]
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
            fields = _read_input(raw.get("input"), capability)
        except ValueError as error:
            self._faults.append(Detail(f"nodes.{i}.input", str(error)))
            fields = {}
        quote = _read_line(raw.get("quote"))[:MAX_QUOTE]
        return PlanNode(
            id=str(raw.get("id") or f"node-{i + 1}"),
            capability=name,
            input=fields,
            depends_on=list(dict.fromkeys(map(str, _read_list(raw.get("depends_on"))))),
            reason=f"Serves “{quote}”." if quote else "",
            optional=raw.get("optional") in (True, "true"),
            expect=_read_expect(raw.get("expect")),
        )

    def _read_gap(self, raw: Json, i: int) -> Gap | None:
        members = raw if isinstance(raw, dict) else {"capability": raw}
        name = _name_capability(_read_line(members.get("capability")))
        if name:
            return Gap(name, _read_line(members.get("quote"))[:MAX_QUOTE])
        self._faults.append(Detail(f"missing.{i}.capability", "it has no name"))
        return None


def _read_list(raw: Json) -> list[Json]:
    """Return a list as it is, a single value in a list, or [] for None or an empty text."""
    if raw is None or raw == "":
        return []
    return raw if isinstance(raw, list) else [raw]


def _read_line(raw: Json) -> str:
    """Convert a value to one line of text, without control characters."""
    text = raw if isinstance(raw, str) else "" if raw is None else str(raw)
    return " ".join(_CONTROL_CHARACTERS.sub(" ", text).split())


def _read_deliverables(raw: Json, nodes: Sequence[PlanNode]) -> list[str]:
    """Read the ids of the deliverables, and add every node that feeds no other node."""
    ids = {node.id for node in nodes}
    feeders = {up for node in nodes for up in node.depends_on}
    listed = [name for name in _read_list(raw) if isinstance(name, str) and name in ids]
    return list(dict.fromkeys([*listed, *(node.id for node in nodes if node.id not in feeders)]))


def _name_capability(name: str) -> str:
    """Bring the name of a missing capability into the form of other capability ids.

    >>> _name_capability("sendEmail"), _name_capability("Video editing")
    ('send_email', 'video_editing')
    """
    humps = _CAMEL_HUMP.sub("_", name.partition("@")[0])
    parts = (re.sub(r"\W+", "_", part).strip("_").lower() for part in humps.split("."))
    return ".".join(filter(None, parts))[:MAX_GAP_NAME]


def _read_input(raw: Json, capability: Capability | None) -> JsonObject:
    """Read a node's input: an object, the text of one, or a list of fields and their values.

    Raises:
        ValueError: the input has another form.
    """
    if isinstance(raw, str) and raw.strip():
        raw = load_document(raw)
    if isinstance(raw, list):
        if not all(isinstance(row, dict) and isinstance(row.get("field"), str) for row in raw):
            raise ValueError("an input is a list of objects with a `field` and its `value`")
        raw = {row["field"]: row.get("value") for row in raw}
    if raw is not None and not isinstance(raw, str | dict):
        raise ValueError("an input is an object")
    schema = {} if capability is None else capability.input_model.model_json_schema()
    fields = schema.get("properties", {})
    values = {}
    for name, value in (raw or {}).items() if isinstance(raw, dict) else ():
        if not _is_left_out(value):
            values[name] = _cast(value, _find_type(fields.get(name, {}), schema))
    return values


def _is_left_out(value: Json) -> bool:
    """Return whether a value is absent: empty, or a placeholder for the result of another node."""
    if isinstance(value, str):
        return not value.strip() or _PLACEHOLDER.fullmatch(value) is not None
    return value is None or value == [] or value == {}


def _find_type(part: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Find the single type that a field takes besides null; empty if it takes several types."""
    if "$ref" in part:
        name = str(part["$ref"]).rpartition("/")[2]
        part = root.get("$defs", {}).get(name, {})
    ways = [part, *part.get("anyOf", ())]
    types = {_find_type(way, root) if "$ref" in way else way.get("type") for way in ways}
    types -= {None, "null", ""}
    return str(types.pop()) if len(types) == 1 else ""


def _cast(value: Json, kind: str) -> Json:
    """Cast a value that a model wrote as text to its field's type, if the meaning is the same."""
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
    """Read the countable expectations of a result, leaving out others; None if no one is left."""
    members = dict(raw) if isinstance(raw, dict) else {}
    for row in raw if isinstance(raw, list) else ():
        if isinstance(row, dict) and isinstance(row.get("measure"), str):
            members[row["measure"]] = row.get("value", row)
    valid: JsonObject = {}
    for name, value in members.items():
        if isinstance(value, dict):
            lower, upper = value.get("least") or 0, value.get("most") or None
            value = lower if lower == upper else [lower, upper]
        try:
            valid |= Expect.model_validate({name: value}).model_dump(exclude_none=True)
        except ValidationError:
            continue
    return Expect.model_validate(valid) if valid else None


def _find_gap_faults(gaps: Sequence[Gap], rules: PlanRules) -> list[Detail]:
    """Find the capabilities that a reply calls missing although they are available."""
    faults = []
    for i, gap in enumerate(gaps):
        capability = rules.capabilities.get(gap.capability)
        is_allowed = rules.allowed is None or gap.capability in rules.allowed
        if capability is not None and capability.status == "available" and is_allowed:
            reason = f"`{gap.capability}` is here: plan with it"
            faults.append(Detail(f"missing.{i}.capability", reason))
    return faults


def _find_artifact_faults(
    nodes: Sequence[PlanNode], objective: str, rules: PlanRules
) -> list[Detail]:
    """Find artifacts that the objective does not name, because a model may use no others."""
    faults = []
    for i, node in enumerate(nodes):
        capability = rules.capabilities.get(node.capability)
        for field, value in node.input.items():
            named = capability.list_artifacts({field: value}).values() if capability else ()
            if any(artifact_id not in objective for artifact_id in named):
                reason = "an artifact is named here that the objective does not name"
                faults.append(Detail(f"nodes.{i}.input.{field}", reason))
    return faults


def _make_draft(reply: PlanReply, objective: str, view: PlannerView, rules: PlanRules) -> PlanDraft:
    """Make the plan of a reply without faults."""
    graph = CapabilityIndex(view.capabilities, view.connected, view.providers)
    gaps = dict.fromkeys(gap.capability for gap in reply.gaps)
    missing = [
        *(Missing(capability=name) for name in gaps),
        *graph.find_missing(rules.capabilities[node.capability] for node in reply.nodes),
    ]
    # A plan can run without an answer to its question, so the rationale has the question.
    question, remark = ("", reply.question) if reply.nodes else (reply.question, "")
    return PlanDraft(
        nodes=_sort_nodes(reply.nodes, reply.deliverables),
        missing=tuple(missing),
        rationale=_explain(reply.deliverables, missing, remark),
        deliverables=tuple(reply.deliverables),
        question=question or None,
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


def _explain(deliverables: Sequence[str], missing: Sequence[Missing], remark: str) -> str:
    summary = f"Delivers {', '.join(deliverables)}, as a language model planned."
    return " ".join(
        [
            *([summary] if deliverables else []),
            *(
                f"`{gap.capability}` needs a connection: {' or '.join(gap.any_of)}."
                if gap.any_of
                else f"Nothing here makes `{gap.capability}`."
                for gap in missing
            ),
            *([f"The model also asks: {remark}"] if remark else []),
        ]
    )


def _measure_reading(reply: PlanReply, objective: str) -> PlanReading:
    """Measure the share of an objective that a reply's quotes cover, and list the other words."""
    quoted = QuotedText(objective)
    values = (value for node in reply.nodes for value in node.input.values())
    copied = (value for value in values if isinstance(value, str))
    for quote in chain(reply.quotes, (gap.quote for gap in reply.gaps), copied):
        quoted.mark(quote)
    words = quoted.list_words()
    unread = [word for word, is_marked in words if not is_marked]
    share = 1 - len(unread) / len(words) if words else 1.0
    return PlanReading(understood=round(share, 3), words=list(dict.fromkeys(unread))[:100])
