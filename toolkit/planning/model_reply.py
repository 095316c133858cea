"""Replies of a language model that was asked for a plan: read, and all that is wrong found."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationError

from toolkit.contract.base import JsonObject, Request
from toolkit.contract.errors import Detail
from toolkit.contract.plans import Missing, PlanNode, PlanReading
from toolkit.contract.workflows import NodeId
from toolkit.planning.capability_graph import CapabilityGraph
from toolkit.planning.graph_faults import build_digraph
from toolkit.planning.plan_validator import PlanRules, find_plan_faults
from toolkit.planning.planner import PlanDraft, PlannerView

# What a body of `POST /v1/workflows` may hold, and less.
MAX_REPLY_CHARACTERS = 200_000
MAX_DEPTH = 32
MAX_MEMBERS = 500
MAX_INTEGER = 2**63 - 1
MAX_QUESTION = 500

_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_WORD = re.compile(r"\w+")
_QUOTATION_MARKS = str.maketrans(dict.fromkeys("“”„«»‘’‚`'", '"'))
_PLACE = re.compile(r"nodes\.(\d+)(?:\.|$)")


def _load_member(value: object) -> object:
    """Load an input that was written as a string, as strict schemas have no free objects."""
    return load_document(value) if isinstance(value, str) else value


Quote = Annotated[str, Field(min_length=1, max_length=2_000)]


class RepliedNode(Request):
    """A node as the model gives it."""

    id: NodeId
    capability: str = Field(min_length=1, max_length=128)
    input: Annotated[JsonObject, BeforeValidator(_load_member)]
    depends_on: list[NodeId] = Field(default=[], max_length=1000)
    quote: Quote


class RepliedGap(Request):
    """A part of the objective that nothing here can do."""

    capability: str = Field(max_length=64, pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$")
    quote: Quote


class PlanReply(Request):
    """A reply as a whole."""

    nodes: list[RepliedNode] = Field(default=[], max_length=1_000)
    deliverables: list[str] = Field(default=[], max_length=1_000)
    missing: list[RepliedGap] = Field(default=[], max_length=50)
    question: str | None = None


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
        document = load_document(text)
    except ValueError as error:
        return ReadPlan(nothing, [Detail("", str(error))])
    reply, faults = _validate_reply(document)
    if not (reply.nodes or reply.missing or (reply.question or "").strip() or faults):
        reason = "it has no node, names nothing that is missing, and asks nothing"
        return ReadPlan(nothing, [Detail("", reason)])
    nodes = [_make_plan_node(one) for one in reply.nodes]
    found = [
        *(find_plan_faults(nodes, reply.deliverables, rules) if nodes else ()),
        *_find_quote_faults(reply, objective),
        *_find_gap_faults(reply, rules),
        *_find_artifact_faults(nodes, objective, rules),
    ]
    # What is wrong with a node that is no node says nothing more.
    broken = {match[1] for fault in faults if (match := _PLACE.match(fault.path))}
    faults += [one for one in found if (m := _PLACE.match(one.path)) is None or m[1] not in broken]
    return ReadPlan(
        nothing if faults else _make_draft(reply, nodes, objective, view, rules), faults
    )


def load_document(text: str) -> JsonObject:
    """Load the JSON object in a text, with or without words around it.

    Raises:
        ValueError: there is none, or it holds what no request may.

    >>> load_document('Here it is: {"nodes": []}. Enjoy!')
    {'nodes': []}
    """
    if len(text) > MAX_REPLY_CHARACTERS:
        raise ValueError(f"it is longer than {MAX_REPLY_CHARACTERS} characters")
    start = text.find("{")
    if start < 0:
        raise ValueError("it is no JSON object")
    decoder = json.JSONDecoder(
        parse_constant=_refuse_number, parse_float=_parse_float, parse_int=_parse_integer
    )
    try:
        value, _ = decoder.raw_decode(text, start)
    except json.JSONDecodeError:
        raise ValueError("it is no JSON object, or was cut off before its end") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    for part, depth in _iter_parts(value):
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if isinstance(part, str) and _UNWRITABLE.search(part):
            raise ValueError("a text in it holds a NUL character or half of a character")
        if isinstance(part, dict) and len(part) > MAX_MEMBERS:
            raise ValueError(f"an object in it has more than {MAX_MEMBERS} members")
    found: JsonObject = value
    return found


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


def _validate_reply(document: JsonObject) -> tuple[PlanReply, list[Detail]]:
    """Hold a document to the schema; a part that breaks it leaves an empty one in its place."""
    try:
        return PlanReply.model_validate(document, strict=True), []
    except ValidationError as error:
        faults = [
            Detail(".".join(map(str, e["loc"])), e["msg"])
            for e in error.errors(include_input=False, include_url=False, include_context=False)
        ]
    given = document.get("nodes")
    nodes = [
        _salvage_node(one, i) for i, one in enumerate(given if isinstance(given, list) else [])
    ]
    named = document.get("deliverables")
    deliverables = [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
    return PlanReply.model_construct(nodes=nodes, deliverables=deliverables), faults


def _salvage_node(raw: object, i: int) -> RepliedNode:
    try:
        return RepliedNode.model_validate(raw, strict=True)
    except ValidationError:
        given = raw.get("id") if isinstance(raw, dict) else None
        node_id = given if isinstance(given, str) else f"node {i}"
        return RepliedNode.model_construct(
            id=node_id, capability="", input={}, depends_on=[], quote=""
        )


def _make_plan_node(node: RepliedNode) -> PlanNode:
    quote = " ".join(_CONTROL_CHARACTERS.sub(" ", node.quote).split())
    return PlanNode(
        id=node.id,
        capability=node.capability,
        input=node.input,
        depends_on=list(node.depends_on),
        reason=f"Serves “{quote}”.",
    )


def _find_quote_faults(reply: PlanReply, objective: str) -> list[Detail]:
    whole = _fold(objective)
    quotes = [
        *((f"nodes.{i}.quote", node.quote) for i, node in enumerate(reply.nodes)),
        *((f"missing.{i}.quote", gap.quote) for i, gap in enumerate(reply.missing)),
    ]
    reason = "these words do not stand in the objective"
    return [Detail(path, reason) for path, quote in quotes if not _stands_in(quote, whole)]


def _stands_in(quote: str, folded: str) -> bool:
    wanted = _fold(quote)
    return bool(_WORD.search(wanted)) and wanted in folded


def _fold(text: str) -> str:
    return " ".join(text.translate(_QUOTATION_MARKS).casefold().split())


def _find_gap_faults(reply: PlanReply, rules: PlanRules) -> list[Detail]:
    """Find what is called missing and is here."""
    faults = []
    for i, gap in enumerate(reply.missing):
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


def _make_draft(
    reply: PlanReply,
    nodes: Sequence[PlanNode],
    objective: str,
    view: PlannerView,
    rules: PlanRules,
) -> PlanDraft:
    """Make the plan of a reply without faults."""
    graph = CapabilityGraph(view.capabilities, view.connected, view.providers)
    gaps = dict.fromkeys(gap.capability for gap in reply.missing)
    missing = [
        *(Missing(capability=one) for one in gaps),
        *graph.find_missing(rules.capabilities[node.capability] for node in nodes),
    ]
    question = " ".join(_CONTROL_CHARACTERS.sub(" ", reply.question or "").split())
    return PlanDraft(
        nodes=_sort_nodes(nodes, reply.deliverables),
        missing=tuple(missing),
        rationale=_explain(reply.deliverables, missing),
        deliverables=tuple(reply.deliverables),
        question=question[:MAX_QUESTION] or None,
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


def _explain(deliverables: Sequence[str], missing: Sequence[Missing]) -> str:
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
        ]
    )


def _measure_reading(reply: PlanReply, objective: str) -> PlanReading:
    """Measure how much of an objective a reply's quotes cover, and list the words that none has."""
    whole = _fold(objective)
    covered = bytearray(len(whole))
    quotes = [*(one.quote for one in reply.nodes), *(one.quote for one in reply.missing)]
    for quote in map(_fold, quotes):
        start = whole.find(quote)
        covered[start : start + len(quote)] = b"\1" * len(quote)
    words = list(_WORD.finditer(whole))
    left = [word[0] for word in words if not any(covered[word.start() : word.end()])]
    share = 1 - len(left) / len(words) if words else 1.0
    return PlanReading(understood=round(share, 3), words=list(dict.fromkeys(left))[:100])
