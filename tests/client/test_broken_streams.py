"""Streams that break while a text is written: nothing of it is told twice, and nothing is lost."""

import json
from collections.abc import Iterator

import httpx

from tests.client.test_client import AT, RUN, ListedService, envelope, events
from toolkit.client import TextPiece

DONE = {**RUN, "status": "completed", "output": {"text": "High tide"}}


class Stream(httpx.SyncByteStream):
    """A stream of events that may break off."""

    def __init__(self, *items: dict[str, object], breaks: bool = False) -> None:
        self._items, self._breaks = items, breaks

    def __iter__(self) -> Iterator[bytes]:
        for item in self._items:
            kind = item.get("type", "delta")
            yield f"event: {kind}\ndata: {json.dumps(item)}\n\n".encode()
        if self._breaks:
            raise httpx.ReadError("the wire is cut")


def stream(*items: dict[str, object], breaks: bool = False) -> httpx.Response:
    """An answer that is a stream."""
    kind = {"content-type": "text/event-stream"}
    return httpx.Response(200, headers=kind, stream=Stream(*items, breaks=breaks))


def delta(text: str, attempt: int = 1) -> dict[str, object]:
    """A piece of a text."""
    return {"resource_id": "run_1", "job_id": "job_1", "attempt": attempt, "text": text}


def event(n: int, kind: str) -> dict[str, object]:
    """An event of the run."""
    return {"n": n, "resource_id": "run_1", "type": kind, "at": AT, "data": {"id": "run_1"}}


def test_a_text_is_streamed_on_where_the_stream_broke() -> None:
    """Given a stream that breaks, then its text goes on where it was."""
    first = stream(event(1, "run.running"), delta("Hi"), delta("gh"), breaks=True)
    second = stream(delta("High ti"), delta("de"), event(2, "run.completed"))
    service = ListedService(envelope(RUN), first, second, envelope(DONE))
    pieces = list(service.client().runs.get("run_1").stream())
    assert "".join(pieces) == "High tide"
    assert not any(piece.restarts for piece in pieces)


def test_who_follows_is_told_a_text_once() -> None:
    """Given a stream that breaks, then who follows is told what is new of the text, and its end."""
    first = stream(event(1, "run.running"), delta("Hi"), delta("gh"), breaks=True)
    second = stream(delta("High ti"), delta("de"), delta("Low", attempt=2))
    third = stream(delta("Low", attempt=2), delta(" tide", attempt=2), event(2, "run.completed"))
    service = ListedService(
        *(envelope(RUN), events(), envelope(RUN), first, second, envelope(RUN), events()),
        *(envelope(RUN), third, envelope(DONE)),
    )
    told = [one for batch in service.client().runs.get("run_1").follow(texts=True) for one in batch]
    pieces = [(str(one), one.restarts) for one in told if isinstance(one, TextPiece)]
    assert pieces == [
        ("Hi", False), ("gh", False), (" ti", False), ("de", False),
        ("Low", True), (" tide", False),
    ]  # fmt: skip
    assert service.answers == []
