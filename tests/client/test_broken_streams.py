"""Streams that break while a text is written: its readers get each piece once."""

import json
from collections.abc import Iterator

import httpx

from tests.client.test_client import AT, RUN, ListedService, envelope, events
from toolkit.client import TextPiece
from toolkit.contract.events import PIECE_KINDS

DONE = {**RUN, "status": "completed", "output": {"text": "High tide"}}


def stream(*items: dict[str, object], breaks: bool = False) -> httpx.Response:
    """Build a stream of events, which may break at its end."""

    def write() -> Iterator[bytes]:
        for item in items:
            kind = item.get("type", "delta")
            yield f"event: {kind}\ndata: {json.dumps(item)}\n\n".encode()
        if breaks:
            raise httpx.ReadError("the connection broke")

    return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=write())


def delta(text: str, attempt: int = 1) -> dict[str, object]:
    """Build an event with a piece of a text."""
    return {"resource_id": "run_1", "job_id": "job_1", "attempt": attempt, "text": text}


def event(n: int, kind: str) -> dict[str, object]:
    """Build an event of the run."""
    return {"n": n, "resource_id": "run_1", "type": kind, "at": AT, "data": {"id": "run_1"}}


def test_stream_continues_after_a_break() -> None:
    """Given a stream that breaks, then the next stream continues its text."""
    first = stream(event(1, "run.running"), delta("Hi"), delta("gh"), breaks=True)
    second = stream(delta("High ti"), delta("de"), event(2, "run.completed"))
    service = ListedService(envelope(RUN), first, second, envelope(DONE))
    pieces = list(service.client().runs.get("run_1").stream())
    assert "".join(pieces) == "High tide"
    assert not any(piece.restarts for piece in pieces)


def test_stream_of_all_kinds_continues_after_a_break() -> None:
    """Given a stream that breaks, then the next one continues each kind, and repeats none."""
    call = {"kind": "tool_call", "tool_call": {"index": 0, "id": "call_1", "name": "tide"}}
    thought = {"kind": "reasoning"}
    arguments = {"port": "Brest"}
    stored = {"id": "call_1", "name": "tide", "arguments": arguments}
    first = stream(
        {**delta("I ne"), **thought}, {**delta(""), **call}, {**delta('{"por'), **call}, breaks=True
    )
    second = stream(
        {**delta("I need it"), **thought},
        {**delta('{"port":"Bre'), **call},
        {**delta('st"}'), **call},
        event(1, "run.completed"),
    )
    output = {"text": "", "reasoning": "I need it now", "tool_calls": [stored]}
    service = ListedService(envelope(RUN), first, second, envelope({**DONE, "output": output}))
    run = service.client().runs.get("run_1")
    pieces = list(run.stream(kinds=PIECE_KINDS))
    assert not any(piece.restarts for piece in pieces)
    assert "".join(p for p in pieces if p.kind == "reasoning") == "I need it now"
    assert json.loads("".join(p for p in pieces if p.kind == "tool_call")) == arguments


def test_a_new_attempt_restarts_each_kind() -> None:
    """Given a second attempt with other tool calls, then each kind restarts once, if at all."""

    def call(index: int, text: str, attempt: int) -> dict[str, object]:
        part = {"index": index, "id": f"call_{attempt}{index}", "name": "tide"}
        return {**delta(text, attempt), "kind": "tool_call", "tool_call": part}

    def think(text: str, attempt: int) -> dict[str, object]:
        return {**delta(text, attempt), "kind": "reasoning"}

    items = [think("Hm", 1), call(0, "{", 1), call(1, "{}", 1), think("Aha", 2), think("!", 2)]
    ended = event(1, "run.completed")
    stored = [{"id": f"call_2{n}", "name": "tide", "arguments": {"n": n}} for n in range(2)]
    output = {"text": "Look", "reasoning": "Aha!", "tool_calls": stored}
    finished = envelope({**DONE, "output": output})
    service = ListedService(envelope(RUN), stream(*items, call(0, '{"n": 0}', 2), ended), finished)
    pieces = list(service.client().runs.get("run_1").stream(kinds=PIECE_KINDS))
    assert [(p.kind, str(p), p.restarts) for p in pieces] == [
        ("reasoning", "Hm", False), ("tool_call", "{", False), ("tool_call", "{}", False),
        ("reasoning", "Aha", True), ("reasoning", "!", False), ("tool_call", '{"n": 0}', True),
        ("text", "Look", False),
        ("tool_call", '{"n": 0}', True), ("tool_call", '{"n": 1}', False),
    ]  # fmt: skip


def test_follow_yields_each_piece_once() -> None:
    """Given streams that break, then a follower gets each new piece once, until the end."""
    first = stream(event(1, "run.running"), delta("Hi"), delta("gh"), breaks=True)
    second = stream(delta("High ti"), delta("de"), delta("Low", attempt=2))
    third = stream(delta("Low", attempt=2), delta(" tide", attempt=2), event(2, "run.completed"))
    service = ListedService(
        *(envelope(RUN), events(), envelope(RUN), first, second, envelope(RUN), events()),
        *(envelope(RUN), third, envelope(DONE)),
    )
    items = [
        item for batch in service.client().runs.get("run_1").follow(texts=True) for item in batch
    ]
    pieces = [(str(item), item.restarts) for item in items if isinstance(item, TextPiece)]
    assert pieces == [
        ("Hi", False), ("gh", False), (" ti", False), ("de", False),
        ("Low", True), (" tide", False),
    ]  # fmt: skip
    assert service.answers == []
