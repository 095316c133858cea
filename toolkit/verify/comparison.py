"""Comparison of a vendor's answers with the sandbox's answers: members, types, endings."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import httpx

from toolkit.cassettes.yaml_file import RecordedExchange
from toolkit.plugins import (
    Access,
    CloneRequest,
    EmbedRequest,
    ImageRequest,
    Operation,
    Reply,
    RerankRequest,
    RunInProcess,
    RunInThread,
    SpeechRequest,
    TextRequest,
    TranscribeRequest,
    Vendor,
)

MemberPath: TypeAlias = tuple[str, ...]  # member names; `[]` stands for a list's first item

OPERATIONS: dict[str, Operation[Any]] = {
    "text": TextRequest(prompt="ok", max_tokens=256),
    "speech": SpeechRequest(text="ok"),
    "image": ImageRequest(prompt="ok", width=256, height=256, steps=1),
    "clone": CloneRequest(name="ok", audio=b"ok", media_type="audio/wav"),
    "embedding": EmbedRequest(texts=("ok",)),
    "rerank": RerankRequest(query="ok", documents=("ok", "no")),
    "transcription": TranscribeRequest(audio=b"ok", duration_s=1.0),
}
# The reasons for the end of a text, by the member that has them, as in the vendors' references.
ENDINGS = {
    "finish_reason": {"stop", "length", "tool_calls", "content_filter"},
    "stop_reason": {
        "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal",
        "model_context_window_exceeded",
    },
    "finishReason": {"STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "PROHIBITED_CONTENT"},
    "stopReason": {
        "end_turn", "max_tokens", "stop_sequence", "tool_use", "guardrail_intervened",
        "content_filtered", "malformed_model_output", "malformed_tool_use",
        "model_context_window_exceeded",
    },
}  # fmt: skip


@dataclass(slots=True)
class Comparison:
    """The differences between a vendor's answers and the expected answers, a line each.

    Attributes:
        missing: members that the vendor's flow reads but the answers lack.
        changed: members whose type is not the expected type.
        unknown_endings: finish reasons that the vendor's reference does not list.
        added: unexpected members; they do no harm.
    """

    missing: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unknown_endings: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


def compare(
    vendor: Vendor,
    kind: str,
    live: Sequence[RecordedExchange],
    expected: Sequence[RecordedExchange],
) -> Comparison:
    """Compare a vendor's answers to one call with the sandbox's answers.

    Args:
        live: the vendor's answers, in order.
        expected: the sandbox's answers; empty for a vendor that it does not simulate.
    """
    comparison = Comparison()
    live_members, expected_members = _collect_members(live), _collect_members(expected)
    for path, value in live_members.items():
        if path[-1] in ENDINGS and isinstance(value, str) and value not in ENDINGS[path[-1]]:
            comparison.unknown_endings.append(f"{_format_path(path)} = {value[:40]!r}")
    if not expected_members:
        return comparison
    for path in read_members(vendor, kind, expected):
        if path not in live_members:
            comparison.missing.append(_format_path(path))
        elif _name_type(live_members[path]) != _name_type(expected_members[path]):
            comparison.changed.append(
                f"{_format_path(path)} is {_name_type(live_members[path])},"
                f" not {_name_type(expected_members[path])}"
            )
    comparison.missing = _keep_outermost(comparison.missing)
    comparison.added = _keep_outermost(
        [_format_path(path) for path in live_members if path not in expected_members]
    )
    return comparison


def read_members(
    vendor: Vendor, kind: str, exchanges: Sequence[RecordedExchange]
) -> list[MemberPath]:
    """Find the members of a vendor's answers that its flow depends on."""
    responses = [entry.to_response() for entry in exchanges]
    usual = _describe_outcome(vendor, kind, responses)
    paths: list[MemberPath] = []
    for place, exchange in enumerate(exchanges):
        body = _parse_json(exchange)
        for path, _ in _walk_members(body):
            cut = json.dumps(_remove_member(body, path)).encode()
            answers = [entry.to_response() for entry in exchanges]
            answers[place] = httpx.Response(exchange.status, headers=exchange.headers, content=cut)
            if _describe_outcome(vendor, kind, answers) != usual:
                paths.append(path)
    return list(dict.fromkeys(paths))


def _leave_out_optional(reply: object) -> object:
    """Remove the fields that a server may omit: the service tier, and counts of 0."""
    if not isinstance(reply, Reply):
        return reply
    units = {name: count for name, count in reply.cost.units.items() if count}
    return replace(reply, tier=None, cost=replace(reply.cost, units=units))


def _describe_outcome(vendor: Vendor, kind: str, answers: list[httpx.Response]) -> str:
    """Run a vendor's flow on answers, and describe its reply or its failure."""
    operation = OPERATIONS[kind]
    model = vendor.find_default_model(kind)
    access = Access(
        vendor.base_urls, "", model.id if model else "", vendor=vendor.id, dialect=vendor.dialect
    )
    flow = vendor.operations[type(operation)](operation, access)
    responses = iter(answers)
    try:
        step = next(flow)
        while True:
            answer: object = None
            match step:
                case httpx.Request():
                    answer = next(responses, None)
                    if answer is None:
                        return "sends another request"
                case RunInProcess() | RunInThread():
                    answer = step.run()
            step = flow.send(answer)
    except StopIteration as stop:
        return repr(_leave_out_optional(stop.value))
    except Exception as error:
        # The vendor's own failure, or any error because the answer lacks a member.
        return repr(error)
    finally:
        flow.close()


def _collect_members(exchanges: Sequence[RecordedExchange]) -> dict[MemberPath, object]:
    return {
        path: value
        for exchange in exchanges
        for path, value in _walk_members(_parse_json(exchange))
    }


def _parse_json(exchange: RecordedExchange) -> object:
    try:
        return json.loads(exchange.body)
    except ValueError:
        return None


def _walk_members(value: object, path: MemberPath = ()) -> Iterator[tuple[MemberPath, object]]:
    """Yield every member with its path; only the first item of each list is walked."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*path, name), inner
            yield from _walk_members(inner, (*path, name))
    elif isinstance(value, list) and value:
        yield from _walk_members(value[0], (*path, "[]"))


def _remove_member(value: Any, path: MemberPath) -> Any:
    """Return a copy of a value without one member."""
    if path[0] == "[]":
        return [_remove_member(value[0], path[1:]), *value[1:]]
    if len(path) == 1:
        return {name: inner for name, inner in value.items() if name != path[0]}
    return {**value, path[0]: _remove_member(value[path[0]], path[1:])}


def _name_type(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    names = {str: "a text", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), "something else")


def _format_path(path: MemberPath) -> str:
    return ".".join(path).replace(".[]", "[]")


def _keep_outermost(names: list[str]) -> list[str]:
    """Return the names that are not nested in another of the names."""
    parents = set(names)
    return [
        name
        for name in dict.fromkeys(names)
        if not any(name.startswith((f"{parent}.", f"{parent}[")) for parent in parents)
    ]
