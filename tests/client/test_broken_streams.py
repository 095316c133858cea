"""Streams that break while a text is written: its readers get each piece once."""

import json
from collections.abc import Iterator

import httpx

from tests.client.test_client import AT, RUN, ListedService, envelope, events
from toolkit.client import TextPiece

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
