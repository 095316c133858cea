"""Calls of object storage, in threads, because a call may hang for as long as the network does.
Calls are retried if that may help, and their errors reveal no secret.
"""

import asyncio
import random
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, ParamSpec, TypeVar

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.changes import StoreUnavailableError, make_unusable_error

P = ParamSpec("P")
T = TypeVar("T")
MAX_TRIES = 4
RETRY_BASE_S = 0.1  # the longest first wait; it doubles each time
RETRY_AFTER_S = 5.0
_CODE = re.compile(r"[A-Za-z]{1,60}")
NO_CONTAINER_CODES = ("NoSuchBucket", "ContainerNotFound")
# Threads for calls to object storage: a hanging call must not block other users of threads.
MAX_THREADS: Final = 16
CLOSE_WAIT_S: Final = 3.0


class RemoteThreads:
    """Runs each call in its own thread, up to `MAX_THREADS` at a time.

    Starting a thread costs little next to such a call. An interpreter that exits does not wait
    for these threads, while it waits for an executor's threads.
    """

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MAX_THREADS)

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call in a thread of its own, once one of `MAX_THREADS` is free; return its result.

        If the waiting caller is cancelled, the call goes on in its thread, but tries nothing again
        (`is_abandoned`).
        """
        await self._places.acquire()
        loop = asyncio.get_running_loop()

        def free(_: "Future[T]") -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._places.release)

        abandoned = threading.Event()
        try:
            future = _start(call, abandoned)
        except BaseException:
            self._places.release()
            raise
        future.add_done_callback(free)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            abandoned.set()
            raise

    async def close(self, call: Callable[[], object]) -> None:
        """Run the call that closes the storage, but wait for it at most `CLOSE_WAIT_S`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WAIT_S):
                await asyncio.wrap_future(_start(call))


_current = threading.local()


def is_abandoned() -> bool:
    """Return True if nobody waits any more for the call that this thread makes."""
    abandoned: threading.Event | None = getattr(_current, "abandoned", None)
    return abandoned is not None and abandoned.is_set()


def _start(call: Callable[[], T], abandoned: threading.Event | None = None) -> "Future[T]":
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from now on, only the thread ends it

    def work() -> None:
        _current.abandoned = abandoned
        try:
            value = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(value)

    threading.Thread(target=work, name="artifact-storage", daemon=True).start()
    return future


def run_remotely(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a call of remote storage; repeat it a few times if it failed for a reason that may pass.

    Objects are stored under the hash of their bytes, so to store, read or delete one twice is as
    good as once.

    Raises:
        FileNotFoundError: there is no such object.
        NotImplementedError: this kind of storage cannot do that.
        ServiceError: `UNAVAILABLE`.
    """
    for n in range(MAX_TRIES):
        try:
            return call(*args, **kwargs)
        except (ServiceError, NotImplementedError):
            raise
        except Exception as error:
            code = find_code(error)
            if isinstance(error, FileNotFoundError) and code not in NO_CONTAINER_CODES:
                raise FileNotFoundError from None
            # Its own text may name keys and signed URLs: only its kind is told.
            failed = _make_error(error, code)
        if failed.retry_after is None or n + 1 == MAX_TRIES or is_abandoned():
            break
        time.sleep(random.uniform(0, RETRY_BASE_S * 2**n))  # noqa: S311 - no secret
    raise failed


def make_remote_error(reason: str) -> StoreUnavailableError:
    """Make the error for storage that cannot be used now."""
    return StoreUnavailableError(
        ErrorCode.UNAVAILABLE,
        f"The artifacts' storage cannot be used now: {reason}.",
        retry_after=RETRY_AFTER_S,
    )


def _make_error(error: Exception, code: str) -> ServiceError:
    if code in NO_CONTAINER_CODES:
        return make_unusable_error(
            f"The artifacts' storage cannot be used: {code}. Create the bucket or container, or"
            " correct `artifact_url`."
        )
    if isinstance(error, PermissionError) or "Credentials" in code:
        return make_unusable_error(
            f"The artifacts' storage cannot be used: {code}. Give this process credentials that may"
            " read, write, list and delete there."
        )
    return make_remote_error(code)


def find_code(error: BaseException) -> str:
    """Return the storage's own code of an error, or the name of its class if it has none."""
    for candidate in (error, error.__cause__):
        response = getattr(candidate, "response", None)
        if isinstance(response, dict):
            code = str(response.get("Error", {}).get("Code", ""))
            if _CODE.fullmatch(code):
                return code
    return type(error).__name__
