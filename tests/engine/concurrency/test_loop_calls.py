"""Calls of a loop's coroutines by other threads and loops: each gets its own answer, or error."""

import asyncio
import gc
import logging
import signal
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from tests.support.timing import PATIENCE_S, wait_until, wait_until_async, yield_turns
from toolkit.engine.concurrency.loop_calls import LoopCalls


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that runs in a thread of its own."""
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join(PATIENCE_S)
    made.close()


@pytest.fixture
def calls(loop: asyncio.AbstractEventLoop) -> LoopCalls:
    """Calls on that loop."""
    return LoopCalls(loop)


class Held:
    """Work that goes on until it is cancelled."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.cancelled = threading.Event()

    async def hold(self) -> None:
        """Hold on."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


async def double(number: int) -> int:
    """Double a number, in a later turn."""
    await yield_turns(1)
    return 2 * number


async def refuse(number: int) -> int:
    """Refuse a number."""
    raise KeyError(number)


def test_a_thread_gets_what_its_call_came_to(calls: LoopCalls) -> None:
    """Given calls that return and one that raises, then none is mixed up."""
    found: dict[int, int] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: calls.call(double(n))}))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == {n: 2 * n for n in range(8)}
    with pytest.raises(KeyError, match="7"):
        calls.call(refuse(7))


async def test_tasks_of_another_loop_get_their_own_answers(calls: LoopCalls) -> None:
    """Given many calls at once, when they end together, then each task has its own answer."""
    outcomes = await asyncio.gather(
        *(calls.await_call(double(n) if n % 3 else refuse(n)) for n in range(60)),
        return_exceptions=True,
    )
    for number, outcome in enumerate(outcomes):
        if number % 3:
            assert outcome == 2 * number
        else:
            assert isinstance(outcome, KeyError)
            assert outcome.args == (number,)


def test_a_time_that_is_up_cancels(calls: LoopCalls) -> None:
    """Given a time limit, when it is up, then the caller is told and the work is cancelled."""
    held = Held()
    with pytest.raises(TimeoutError):
        calls.call(held.hold(), timeout_s=0.001)
    assert held.cancelled.wait(PATIENCE_S) or not held.begun.is_set()


@pytest.mark.usefixtures("heed_interrupts")
def test_an_interrupt_cancels(calls: LoopCalls) -> None:
    """Given a thread that waits, when it is interrupted, then the work is cancelled."""
    held, main = Held(), threading.get_ident()

    def interrupt() -> None:
        held.begun.wait(PATIENCE_S)
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        calls.call(held.hold())
    assert held.cancelled.wait(PATIENCE_S)


async def test_a_task_that_is_cancelled_cancels(calls: LoopCalls) -> None:
    """Given a task that waits, when it is cancelled, then so is the work, and nothing is left."""
    held = Held()
    task = asyncio.ensure_future(calls.await_call(held.hold()))
    await wait_until_async(held.begun.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_until_async(held.cancelled.is_set)
    assert await calls.await_call(double(2)) == 4


def test_work_that_is_cancelled_elsewhere_is_told_of(
    calls: LoopCalls, loop: asyncio.AbstractEventLoop
) -> None:
    """Given work that another cancels, when a thread waits for it, then it does not hang."""
    held = Held()

    def cancel_all() -> None:
        held.begun.wait(PATIENCE_S)
        loop.call_soon_threadsafe(lambda: [each.cancel() for each in asyncio.all_tasks(loop)])

    threading.Thread(target=cancel_all).start()
    with pytest.raises(CancelledError):
        calls.call(held.hold())


def test_an_error_that_nobody_waits_for_is_not_logged(
    calls: LoopCalls, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a caller whose time is up, when the work fails all the same, then nothing is said."""
    begun = threading.Event()

    async def fail() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError

    with caplog.at_level(logging.ERROR, "asyncio"):
        with pytest.raises(TimeoutError):
            calls.call(fail(), timeout_s=0.01)
        calls.call(double(1))
        gc.collect()
    assert not caplog.records


def test_an_answer_is_not_kept(calls: LoopCalls) -> None:
    """Given an answer, when its caller drops it, then nothing else holds it."""

    class Answer:
        """Something that can be watched."""

    async def make() -> Answer:
        return Answer()

    watched = weakref.ref(calls.call(make()))
    wait_until(lambda: gc.collect() is not None and watched() is None)


def test_a_closed_loop_is_told_of() -> None:
    """Given a loop that is closed, when it is called, then that is an error and not a hang."""
    closed = asyncio.new_event_loop()
    closed.close()
    with pytest.raises(RuntimeError):
        LoopCalls(closed).call(double(1))
