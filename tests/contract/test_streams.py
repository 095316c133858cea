"""Streams, and the display of a wait."""

import asyncio
import json
import signal
import sys
import threading
import traceback

import pytest

from tests.contract.conftest import submit_chain
from tests.support.terminal import open_terminal
from tests.support.timing import wait_until, yield_turns
from toolkit import AsyncClient, Client, WorkError
from toolkit.client import TextPiece
from toolkit.contract.events import PIECE_KINDS
from toolkit.sandbox import Fault, Faults

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


THINKERS = ["anthropic", "google", "minimax", "aws"]


def get_weather(city: str, days: int = 1) -> str:
    """Return the weather forecast of a city."""
    return f"Sun in {city}, {days} days."


@pytest.mark.parametrize("provider", ["openai", *THINKERS])
@pytest.mark.parametrize("mangle", [False, True], ids=["first attempt", "second attempt"])
def test_streams_reasoning_and_tool_calls(
    client: Client, faults: Faults, provider: str, mangle: bool
) -> None:
    """Given a streamed run with tools and reasoning, then the pieces of a kind are its own."""
    faults.pace(provider, piece_ms=10)
    if mangle:
        faults.mangle(provider, "truncate", times=1)
    asked = {"objective": "What is the weather in Rome for 3 days?", "tools": [get_weather]}
    # Models of OpenAI take tools or reasoning.
    reasoning = "none" if provider == "openai" else "low"
    run = client.runs.create(
        "llm.generate", {**asked, "reasoning": reasoning}, provider=provider, stream=True
    )
    pieces = list(run.stream(kinds=PIECE_KINDS))
    (call,) = run.tool_calls
    calls = [piece for piece in pieces if piece.tool_call is not None]
    assert {(p.kind, p.tool_call and p.tool_call.name) for p in calls} == {
        ("tool_call", "get_weather")
    }
    assert calls[-1].tool_call is not None
    assert calls[-1].tool_call.id == call.id
    assert json.loads(join(calls)) == call.arguments == {"city": "Rome", "days": 3}
    assert join([piece for piece in pieces if piece.kind == "reasoning"]) == run.reasoning
    assert bool(run.reasoning) == (provider != "openai")
    assert join([piece for piece in pieces if piece.kind == "text"]) == run.text == ""


@pytest.mark.parametrize("provider", THINKERS)
def test_text_alone_is_the_default(client: Client, provider: str) -> None:
    """Given a run with reasoning, then a plain stream has the text alone, and a kind is a choice.

    After the end, each kind comes as one piece.
    """
    asked = {**INPUT, "reasoning": "low"}
    run = client.runs.create("llm.generate", asked, provider=provider, stream=True)
    pieces = list(run.stream())
    assert {piece.kind for piece in pieces} == {"text"}
    assert join(pieces) == run.text
    assert list(run.stream(kinds=["reasoning"])) == [run.reasoning]
    assert list(run.stream(kinds=PIECE_KINDS)) == [run.reasoning, run.text]


def test_a_card_folds_the_reasoning(client: Client, faults: Faults) -> None:
    """Given reasoning that is markup, then the card of the run has it folded, as text."""
    words = '<script>alert("x")</script>'
    message = {"role": "assistant", "content": "Tides.", "reasoning_content": words}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    faults.add(Fault("openai", body=body, headers={"content-type": "application/json"}, times=1))
    run = client.runs.create("llm.generate", INPUT, provider="openai").wait(progress=False)
    assert run.reasoning == words
    bundle = run._repr_mimebundle_()
    card, _, fold = bundle["text/html"].partition("<details")
    assert "Tides." in card
    assert "script" not in card
    assert fold.count("&lt;script&gt;") == 1
    assert "<script" not in fold
    assert bundle["text/plain"] == repr(run)


def test_followers_choose_kinds(client: Client, faults: Faults) -> None:
    """Given a run that reasons, then followers get their kinds, a late one from the beginning."""
    faults.pace("anthropic", piece_ms=20)
    asked = {**INPUT, "reasoning": "low"}
    run = client.runs.create("llm.generate", asked, provider="anthropic", stream=True)
    with run.follow(texts=PIECE_KINDS) as early:
        pieces: list[TextPiece] = []
        while not pieces or pieces[-1].kind != "text":
            pieces += [item for item in early.take() if isinstance(item, TextPiece)]
        late = [p for batch in run.follow(texts=PIECE_KINDS) for p in batch]
        plain = [p for batch in run.follow(texts=True) for p in batch]
    run.refresh()
    heard = [piece for piece in late if isinstance(piece, TextPiece)]
    assert join([piece for piece in heard if piece.kind == "reasoning"]) == run.reasoning
    assert {piece.kind for piece in plain if isinstance(piece, TextPiece)} <= {"text"}


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


def interrupt_wait(thread_id: int) -> None:
    """Interrupt a thread once it waits for work."""

    def is_waiting() -> bool:
        stack = traceback.extract_stack(sys._current_frames()[thread_id])
        return any(frame.name in ("take", "request_end") for frame in stack)

    wait_until(is_waiting)
    signal.pthread_kill(thread_id, signal.SIGINT)


def test_a_terminal_shows_nodes_and_keeps_one_line(
    client: Client, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a terminal, then it shows each node and its text, and one line at the end."""
    screen = open_terminal(monkeypatch)
    faults.pace("openai", piece_ms=40)
    faults.latency("minimax", 300)
    work = submit_chain(client, stream=True).wait()
    text = screen.getvalue()
    for words in ("first", "second", "of 2 done", " ".join(str(work["first"].text).split()[:3])):
        assert words in text
    last_line = text.splitlines()[-1]
    assert "✓ tides completed: 2 nodes in" in last_line
    assert last_line.endswith(f"{work.cost_usd:.7f}".rstrip("0"))


def test_a_log_has_a_line_for_each_change(
    client: Client, faults: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given no terminal, then each change is a line, also if another thread reads the handle."""
    faults.latency("openai", 200)
    work = submit_chain(client)
    has_ended = threading.Event()

    def read() -> None:
        while not has_ended.is_set():
            work.refresh()

    thread = threading.Thread(target=read)
    thread.start()
    work.wait()
    has_ended.set()
    thread.join()
    log = capsys.readouterr().err
    assert log.count("✓ first") == log.count("✓ second") == 1
    assert log.splitlines()[-1].startswith("✓ workflow")
    work.wait()
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("heed_interrupts")
@pytest.mark.parametrize("progress", [True, False])
def test_an_interrupt_says_how_to_wait_again(
    client: Client, faults: Faults, monkeypatch: pytest.MonkeyPatch, progress: bool
) -> None:
    """Given an interrupt, then one line says that the work goes on, and how to wait for it."""
    screen = open_terminal(monkeypatch)
    faults.latency("openai", 60_000)
    work = submit_chain(client, stream=True)
    thread = threading.Thread(target=interrupt_wait, args=[threading.get_ident()])
    thread.start()
    with pytest.raises(KeyboardInterrupt, match="goes on") as error:
        work.wait(progress=progress)
    thread.join()
    assert f'client.workflows.get("{work.id}").wait()' in str(error.value)
    assert len(error.value._render_traceback_()) == 1  # type: ignore[attr-defined]
    assert ("tides goes on: 0 of 2 nodes done, $0" in screen.getvalue()) is progress
    assert client.workflows.get(work.id).cancel().status == "cancelled"


@pytest.mark.embedded
async def test_a_cancelled_await_says_how_to_wait_again(
    async_client: AsyncClient, faults: Faults
) -> None:
    """Given an await that Jupyter cancels, then one line says how to wait for the work again.

    A timeout of asyncio stays a `TimeoutError`.
    """
    faults.latency("openai", 60_000)
    input = {"objective": "Write two sentences about tides."}
    run = await async_client.runs.create("llm.generate@1", input, provider="openai")
    task = asyncio.create_task(run.wait(progress=False))
    await yield_turns(3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as error:
        await task
    line = f'Interrupted; the work goes on. To wait again: client.runs.get("{run.id}").wait()'
    assert error.value._render_traceback_() == [line]  # type: ignore[attr-defined]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await run.wait(progress=False)
    assert (await run.cancel()).status == "cancelled"
