"""The display of a wait: at a terminal, in a log, and when it is interrupted."""

import asyncio
import signal
import sys
import threading
import traceback

import pytest

from tests.contract.conftest import submit_chain
from tests.support.terminal import open_terminal
from tests.support.timing import wait_until, yield_turns
from toolkit import AsyncClient, Client
from toolkit.sandbox import Faults

pytestmark = pytest.mark.sqlite("other tests have its statements")


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
