"""Threads that the interpreter does not wait for when it exits."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


def start_thread(work: Callable[[], T]) -> "asyncio.Future[T]":
    """Start a thread that does the work, and return the future of its result.

    The standard pool's threads are joined at exit, so one that hangs would keep the process.
    """
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    _start_daemon(_do_work, work, future)
    return future


class SerialThread:
    """A thread that does one piece of work after the other, until it is ended.

    To wake a thread takes a quarter of the time that it takes to start a thread.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        _start_daemon(_do_queued, self._queue)

    def start(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Queue some work behind all earlier work, and return the future of its result."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put(partial(_do_work, work, future))
        return future

    def end(self) -> None:
        """End the thread once all that was started is done; does not wait."""
        self._queue.put(None)


def _start_daemon(target: Callable[..., None], *args: object) -> None:
    threading.Thread(target=target, args=args, name="toolkit-cpu", daemon=True).start()


def _do_queued(queue: "SimpleQueue[Callable[[], None] | None]") -> None:
    while (task := queue.get()) is not None:
        task()
        del task  # its result may be large, and the next task may come late


def _do_work(work: Callable[[], T], future: "asyncio.Future[T]") -> None:
    try:
        value = work()
    except BaseException as error:  # of any kind: the waiter gets it
        _report(future, future.set_exception, _make_settable(error))
    else:
        _report(future, future.set_result, value)


def _report(future: "asyncio.Future[T]", settle: Callable[[Any], None], outcome: object) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        future.get_loop().call_soon_threadsafe(lambda: None if future.done() else settle(outcome))


def _make_settable(error: BaseException) -> BaseException:
    """Return an exception that a future accepts: a `RuntimeError` instead of `StopIteration`."""
    return RuntimeError("it raised StopIteration") if isinstance(error, StopIteration) else error
