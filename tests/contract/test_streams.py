"""Streams of texts by the client, embedded and served."""

import json

import pytest

from tests.support.terminal import open_terminal
from toolkit import AsyncClient, Client, WorkError
from toolkit.client import TextPiece
from toolkit.sandbox import Faults

pytestmark = pytest.mark.sqlite("other tests have its statements")

INPUT = {"objective": "Write two sentences about tides."}


def join(pieces: list[TextPiece]) -> str:
    """Join pieces to a text, from the last piece that restarts it."""
    starts = [place for place, piece in enumerate(pieces) if piece.restarts]
    return "".join(pieces[starts[-1] if starts else 0 :])


@pytest.mark.parametrize("mangle", [None, "truncate"], ids=["first attempt", "second attempt"])
def test_the_pieces_are_the_text(client: Client, faults: Faults, mangle: str | None) -> None:
    """Given a streamed run, then its pieces are its text; a second attempt restarts the text."""
    faults.pace("openai", piece_ms=20)
    if mangle:
        faults.mangle("openai", mangle, times=1)
    run = client.runs.create("llm.generate", INPUT, provider="openai", stream=True)
    pieces = list(run.stream())
    assert run.status == "completed"
    assert len(pieces) >= 1
    assert not pieces[0].restarts
    assert join(pieces) == run.output["text"]
    assert len(run.attempts) == (2 if mangle else 1)


@pytest.mark.parametrize("stream", [True, False])
def test_a_completed_run_has_one_piece(client: Client, stream: bool) -> None:
    """Given a completed run, then its text is one piece."""
    run = client.runs.create("llm.generate", INPUT, stream=stream).wait(progress=False)
    assert list(run.stream()) == [run.output["text"]]


def test_an_output_without_text_has_no_pieces(client: Client) -> None:
    """Given an output that is no text, then the stream ends with the run."""
    run = client.runs.create("speech.generate", {"text": "Tea."}, stream=True)
    assert list(run.stream()) == []
    assert run.done


def test_a_wait_shows_the_text(
    client: Client, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a streamed run, then a wait at a terminal shows its text, unless its time ends."""
    faults.pace("openai", piece_ms=100)
    screen = open_terminal(monkeypatch)
    run = client.runs.create("llm.generate", INPUT, provider="openai", stream=True)
    with pytest.raises(TimeoutError):
        run.wait(0.1)
    assert run.wait().status == "completed"
    assert f"\n{run.output['text']}\n" in screen.getvalue()


def test_a_stream_raises_the_error_of_its_run(client: Client, faults: Faults) -> None:
    """Given a run that fails, then its stream raises the error, unless `check` is False."""
    faults.fail("openai", status=400)
    run = client.runs.create("llm.generate", INPUT, provider="openai", stream=True)
    with pytest.raises(WorkError):
        list(run.stream())
    assert list(run.stream(check=False)) == []


def test_streams_json(client: Client) -> None:
    """Given an output that is JSON, then the pieces are its text."""
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    run = client.runs.create("llm.generate", {**INPUT, "output_schema": schema}, stream=True)
    assert json.loads(join(list(run.stream()))) == run.output["json"]


async def test_the_async_client_streams(async_client: AsyncClient, faults: Faults) -> None:
    """Given the async client, then pieces are awaited."""
    faults.pace("openai", piece_ms=20)
    create = async_client.runs.create
    run = await create("llm.generate", INPUT, provider="openai", stream=True)
    assert join([piece async for piece in run.stream()]) == run.output["text"]
