"""Texts as they are written, by the client: embedded and served alike."""

import json

import pytest

from tests.support.terminal import open_terminal
from toolkit import AsyncClient, Client, WorkError
from toolkit.client import TextPiece
from toolkit.sandbox import Faults

pytestmark = pytest.mark.sqlite("other tests have its statements")

OBJECTIVE = {"objective": "Write two sentences about tides."}


def join(pieces: list[TextPiece]) -> str:
    """The text of pieces, from the last that begins it anew."""
    starts = [place for place, piece in enumerate(pieces) if piece.restarts]
    return "".join(pieces[starts[-1] if starts else 0 :])


def test_pieces_are_the_text(client: Client, faults: Faults) -> None:
    """Given a run that is streamed, then its pieces come as they are written, and are its text."""
    faults.pace("openai", piece_ms=20)
    run = client.runs.create("llm.generate", OBJECTIVE, provider="openai", stream=True)
    pieces = list(run.stream())
    assert run.status == "completed"
    assert join(pieces) == run.output["text"]
    assert len(pieces) >= 1
    assert not pieces[0].restarts


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "not streamed"])
def test_a_run_that_is_over(client: Client, stream: bool) -> None:
    """Given a run that is over, then its text is one piece."""
    run = client.runs.create("llm.generate", OBJECTIVE, stream=stream).wait(progress=False)
    assert list(run.stream()) == [run.output["text"]]


def test_a_vendor_that_does_not_stream(client: Client) -> None:
    """Given output that is no text, then nothing is yielded, and the run is over."""
    run = client.runs.create("speech.generate", {"text": "Tea."}, stream=True)
    assert list(run.stream()) == []
    assert run.done


def test_a_try_that_failed(client: Client, faults: Faults) -> None:
    """Given a stream that breaks off, then the text begins anew, and ends as it is stored."""
    faults.mangle("openai", "truncate", times=1)
    run = client.runs.create("llm.generate", OBJECTIVE, provider="openai", stream=True)
    assert join(list(run.stream())) == run.output["text"]
    assert len(run.attempts) == 2


def test_a_wait_shows_it(client: Client, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a run that is streamed, then waiting at a terminal shows its text, in one piece."""
    faults.pace("openai", piece_ms=20)
    screen = open_terminal(monkeypatch)
    run = client.runs.create("llm.generate", OBJECTIVE, provider="openai", stream=True).wait()
    assert f"\n{run.output['text']}\n" in screen.getvalue()
    assert run.status == "completed"


def test_a_wait_that_is_too_short(
    client: Client, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given less time than a stream takes, then the wait ends in time, and the run goes on."""
    faults.pace("openai", piece_ms=100)
    open_terminal(monkeypatch)
    run = client.runs.create("llm.generate", OBJECTIVE, provider="openai", stream=True)
    with pytest.raises(TimeoutError):
        run.wait(0.1)
    assert run.wait(progress=False).status == "completed"


def test_a_run_that_fails(client: Client, faults: Faults) -> None:
    """Given a run that fails, then its stream raises that; unless it is not to."""
    faults.fail("openai", status=400)
    run = client.runs.create("llm.generate", OBJECTIVE, provider="openai", stream=True)
    with pytest.raises(WorkError):
        list(run.stream())
    assert list(run.stream(check=False)) == []


def test_json_ends_as_it_is_stored(client: Client) -> None:
    """Given an output that is JSON, then the pieces come to the text that is kept."""
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    given = {**OBJECTIVE, "output_schema": schema}
    run = client.runs.create("llm.generate", given, stream=True)
    assert json.loads(join(list(run.stream()))) == run.output["json"]


async def test_the_async_client(async_client: AsyncClient, faults: Faults) -> None:
    """Given the async client, then pieces are awaited."""
    faults.pace("openai", piece_ms=20)
    create = async_client.runs.create
    run = await create("llm.generate", OBJECTIVE, provider="openai", stream=True)
    pieces = [piece async for piece in run.stream()]
    assert join(pieces) == run.output["text"]
