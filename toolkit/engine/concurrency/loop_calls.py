"""Calls of coroutines on one event loop, by other threads and by tasks of other loops.

The standard library chains two futures for each (`run_coroutine_threadsafe`, `wrap_future`). Here a
thread waits for a lock alone, and a task for one future of its own loop.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LoopCalls:
    """Calls coroutines on a loop that runs in another thread.

    Args:
        loop: that loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Carry out a coroutine, and block until it has ended; an interrupt cancels it.

        Raises:
            TimeoutError: the time was up first, so it was cancelled.
            concurrent.futures.CancelledError: something else cancelled it.
            RuntimeError: the loop is closed.
        """
        ended = threading.Lock()
        ended.acquire()
        tasks: list[asyncio.Task[T]] = []

        def finish(task: asyncio.Task[T]) -> None:
            _mark_retrieved(task)
            tasks.append(task)
            ended.release()

        call = _LoopCall(self._loop, work, finish)
        try:
            call.begin()
            if not ended.acquire(timeout=-1 if timeout_s is None else timeout_s):
                raise TimeoutError
        except BaseException:
            call.cancel()
            raise
        if tasks[0].cancelled():
            raise CancelledError
        return tasks.pop().result()

    async def await_call(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry out a coroutine, and have the running task of another loop wait until it has ended.

        Raises:
            asyncio.CancelledError: either of the two was cancelled, and so both are.
            RuntimeError: the loop is closed.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def finish(task: asyncio.Task[T]) -> None:
            _mark_retrieved(task)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, answer, task)

        call = _LoopCall(self._loop, work, finish)
        call.begin()
        try:
            return await answer
        except asyncio.CancelledError:
            call.cancel()
            raise


class _LoopCall(Generic[T]):
    """A coroutine that is begun and cancelled from other threads than its loop's.

    Args:
        loop: where it runs.
        work: the coroutine.
        finish: called on the loop once it has ended.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, T],
        finish: Callable[[asyncio.Task[T]], None],
    ) -> None:
        self._loop = loop
        self._work = work
        self._finish = finish
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        """Begin it.

        Raises:
            RuntimeError: the loop is closed.
        """
        try:
            self._loop.call_soon_threadsafe(self._start)
        except RuntimeError:
            self._work.close()
            raise

    def cancel(self) -> None:
        """Cancel it, be it that an interrupt came before it was begun."""
        with suppress(RuntimeError):  # the loop is closed, and with it the task
            self._loop.call_soon_threadsafe(self._end)

    def _start(self) -> None:
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._finish)

    def _end(self) -> None:
        if self._task is None:
            self._work.close()
        else:
            self._task.cancel()


def _settle(answer: "asyncio.Future[T]", task: "asyncio.Task[T]") -> None:
    """Settle a future as a task of another loop has ended."""
    if answer.done():
        return  # who waited was cancelled
    if task.cancelled():
        answer.cancel()
    elif (error := task.exception()) is not None:
        answer.set_exception(error)
    else:
        answer.set_result(task.result())


def _mark_retrieved(task: "asyncio.Task[Any]") -> None:
    """Keep asyncio from telling of an error that nobody is left to ask for."""
    if not task.cancelled():
        task.exception()
