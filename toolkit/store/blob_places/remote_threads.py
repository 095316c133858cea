"""Threads for calls of object storage, which may hang for as long as the network does."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, TypeVar

T = TypeVar("T")
# Of calls that wait for object storage: one that hangs must not hold up what else uses threads.
MAX_THREADS: Final = 16
CLOSE_WAIT_S: Final = 3.0


class RemoteThreads:
    """Runs each call in a thread of its own, some at a time.

    Next to what such a call takes, to start a thread is nothing. An interpreter that ends waits for
    none of them, unlike for those of an executor.
    """

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MAX_THREADS)

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call.

        If the waiting caller is cancelled, the call goes on and keeps its place, but tries nothing
        again (`is_abandoned`).
        """
        await self._places.acquire()
        loop = asyncio.get_running_loop()

        def free(_: "Future[T]") -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._places.release)

        abandoned = threading.Event()
        try:
            done = _start(call, abandoned)
        except BaseException:
            self._places.release()
            raise
        done.add_done_callback(free)
        try:
            return await asyncio.wrap_future(done)
        except asyncio.CancelledError:
            abandoned.set()
            raise

    async def close(self, call: Callable[[], object]) -> None:
        """Run the call that closes the storage; neither it nor others are waited for for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WAIT_S):
                await asyncio.wrap_future(_start(call))


_current = threading.local()


def is_abandoned() -> bool:
    """Return True if nobody waits any more for the call that this thread makes."""
    abandoned: threading.Event | None = getattr(_current, "abandoned", None)
    return abandoned is not None and abandoned.is_set()


def _start(call: Callable[[], T], abandoned: threading.Event | None = None) -> "Future[T]":
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # from now on, only the thread ends it

    def work() -> None:
        _current.abandoned = abandoned
        try:
            found = call()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(found)

    threading.Thread(target=work, name="artifact-storage", daemon=True).start()
    return done
