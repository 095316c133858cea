"""What a wait shows: at a terminal, in a log, and where it is interrupted."""

import asyncio
import signal
import sys
import threading
import traceback

import pytest

from tests.support.terminal import open_terminal
from tests.support.timing import wait_until, yield_turns
from toolkit import AsyncClient, Client, Workflow
from toolkit.client import WorkflowRun
from toolkit.sandbox import Faults
from toolkit.settings import Settings

pytestmark = pytest.mark.sqlite("other tests have its statements")

ASKED = {"objective": "Write two sentences about tides."}


def interrupt_wait(thread_id: int) -> None:
    """Interrupt a thread once it waits for work."""

    def is_waiting() -> bool:
        stack = traceback.extract_stack(sys._current_frames()[thread_id])
        return any(frame.name in ("take", "request_end") for frame in stack)

    wait_until(is_waiting)
    signal.pthread_kill(thread_id, signal.SIGINT)


def submit_two(client: Client) -> WorkflowRun:
    """A workflow of two nodes, one after the other, under way."""
    workflow = Workflow("tides")
    first = workflow.add("first", "llm.generate@1", options={"provider": "openai"}, **ASKED)
    workflow.add("second", "llm.generate@1", depends_on=[first], **ASKED)
    return client.workflows.submit(workflow, stream=True)


def test_a_terminal_shows_rows_and_keeps_one_line(
    client: Client, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a terminal, then it shows each node and the text it writes; one line is left of it."""
    screen = open_terminal(monkeypatch)
    faults.pace("openai", piece_ms=40)
    faults.latency("minimax", 300)
    work = submit_two(client).wait()
    shown = screen.getvalue()
    assert "first" in shown
    assert "second" in shown
    assert "of 2 done" in shown
    assert " ".join((work["first"].text or "").split()[:3]) in shown
    assert shown.splitlines()[-1].endswith(f"{work.cost_usd:.7f}".rstrip("0"))
    assert "✓ tides completed: 2 nodes in" in shown.splitlines()[-1]


def test_a_task_shows_the_nodes_of_its_workflow(
    client: Client, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a task at a terminal, then the nodes that it runs are shown, and one line is left."""
    screen = open_terminal(monkeypatch)
    faults.latency("minimax", 400)
    task = client.tasks.create("Write a poem about the sea.").wait()
    shown = screen.getvalue()
    assert task.workflow().nodes[0].id in shown
    assert "1 running" in shown
    assert "✓ Write a poem about the sea. completed: 1 node in" in shown.splitlines()[-1]


def test_a_log_has_a_line_for_each_change(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given no terminal, then each change is a line, and another wait repeats none."""
    work = submit_two(client).wait()
    shown = capsys.readouterr().err
    assert shown.count("✓ first") == shown.count("✓ second") == 1
    assert shown.splitlines()[-1].startswith("✓ workflow")
    work.wait()
    assert capsys.readouterr().err == ""


def test_who_reads_the_handle_meanwhile_takes_nothing_away(
    client: Client, faults: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a handle that another thread reads again and again, then a wait shows all there is."""
    faults.latency("openai", 200)
    work = submit_two(client)
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            work.refresh()

    thread = threading.Thread(target=read)
    thread.start()
    work.wait()
    over.set()
    thread.join()
    assert capsys.readouterr().err.splitlines()[-1].startswith("✓ workflow")


@pytest.mark.usefixtures("heed_interrupts")
@pytest.mark.parametrize("progress", [True, False])
def test_an_interrupt_says_in_one_line_how_to_go_on(
    client: Client, faults: Faults, monkeypatch: pytest.MonkeyPatch, progress: bool
) -> None:
    """Given an interrupt, then a line says that the work goes on and how to wait for it again."""
    screen = open_terminal(monkeypatch)
    faults.latency("openai", 60_000)
    work = submit_two(client)
    thread = threading.Thread(target=interrupt_wait, args=[threading.get_ident()])
    thread.start()
    with pytest.raises(KeyboardInterrupt, match="goes on") as interrupted:
        work.wait(progress=progress)
    thread.join()
    assert f'client.workflows.get("{work.id}").wait()' in str(interrupted.value)
    assert len(interrupted.value._render_traceback_()) == 1  # type: ignore[attr-defined]
    assert ("tides goes on: 0 of 2 nodes done, $0" in screen.getvalue()) is progress
    assert client.workflows.get(work.id).cancel().status == "cancelled"


async def test_a_cell_that_awaits_is_interrupted_in_one_line_too(
    settings: Settings, faults: Faults
) -> None:
    """Given an await that is cancelled, as Jupyter does it, then that is one line, too.

    Whoever bounds the wait by asyncio's own means gets what asyncio promises.
    """
    faults.latency("openai", 60_000)
    async with AsyncClient.local(settings=settings, faults=faults) as client:
        run = await client.runs.create("llm.generate@1", ASKED, provider="openai")
        waiting = asyncio.create_task(run.wait(progress=False))
        await yield_turns(3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError) as interrupted:
            await waiting
        line = f'Interrupted; the work goes on. To wait again: client.runs.get("{run.id}").wait()'
        assert interrupted.value._render_traceback_() == [line]  # type: ignore[attr-defined]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await run.wait(progress=False)
        assert (await run.cancel()).status == "cancelled"
