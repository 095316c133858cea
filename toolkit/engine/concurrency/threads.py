"""Threads that the interpreter does not wait for when it exits."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


def start_thread(work: Callable[[], T]) -> "asyncio.Future[T]":
    """Start a thread that does some work, and return the future of its result.

    The standard pool's threads are joined at exit, so one that hangs would keep the process.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def main() -> None:
        try:
            value = work()
        except BaseException as error:  # the waiter gets it, whatever it is
            report(future.set_exception, _make_settable(error))
        else:
            report(future.set_result, value)

    def report(settle: Callable[[Any], None], outcome: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(lambda: None if future.done() else settle(outcome))

    threading.Thread(target=main, name="toolkit-cpu", daemon=True).start()
    return future


def _make_settable(error: BaseException) -> BaseException:
    """Return an exception that a future accepts."""
    return RuntimeError("it raised StopIteration") if isinstance(error, StopIteration) else error
