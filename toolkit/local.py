"""The embedded engine: its thread, and the in-process way from a client to its operations."""

import asyncio
import atexit
import concurrent.futures.thread as executors
import logging
import os
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.assembly import list_simulated_ids, open_engine
from toolkit.contract.connections import ConnectionCreate
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.contract.events import Event, TextDelta
from toolkit.contract.operations.messages import OperationAnswer, OperationRequest
from toolkit.engine import Engine, Registry
from toolkit.engine.concurrency.event_loops import create_event_loop
from toolkit.engine.request_context import RequestContext
from toolkit.functions import FunctionTable
from toolkit.server.in_process import LocalOperations
from toolkit.settings import Settings

if TYPE_CHECKING:
    from toolkit.cassettes import CassetteMode
    from toolkit.sandbox import Faults

__all__ = [
    "LOCAL_URL",
    "AsyncLoopChannel",
    "EngineThread",
    "LoopChannel",
    "Registry",
    "open_engine",
    "start_engine",
]

log = logging.getLogger(__name__)
T = TypeVar("T")

GRACE_S = 1.0  # for vendor calls under way when an engine is closed
# A first run that follows at once is not slowed by the start of a worker process.
PREPARE_AFTER_S = 0.25
CLOSE_TIMEOUT_S = 5.0  # maximum seconds to close an engine, beyond the grace period
# A signal that arrives just before a thread waits is noticed by Python when the wait ends.
INTERRUPT_S = 1.0
LOCAL_URL = "http://engine.invalid"  # never leaves the process (RFC 6761 keeps the name free)


class EngineThread:
    """An engine on a daemon thread with an event loop of its own.

    This way plain calls work inside Jupyter's running loop, a cell that blocks stalls no workflow,
    and an interrupt ends the wait and not the work.

    Args:
        opening: opens the engine, as `open_engine` does.
        functions: the functions of this process that its workflows may call.
    """

    def __init__(
        self, opening: Coroutine[Any, Any, Engine], functions: FunctionTable | None = None
    ) -> None:
        self.functions = functions
        self._closed = False
        self._process = os.getpid()
        self._loop = create_event_loop()
        self._thread = threading.Thread(target=self._run, name="toolkit-engine", daemon=True)
        self._thread.start()
        try:
            self.engine = self.call(opening)
        except BaseException:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=2)
            raise
        self.operations = LocalOperations(self.engine)
        if not self.engine.is_read_only:
            self._loop.call_soon_threadsafe(
                self._loop.call_later, PREPARE_AFTER_S, self._prepare_worker
            )
        _OPEN_ENGINES.add(self)

    def _prepare_worker(self) -> None:
        """Start a worker process, so that a first card need not wait for its imports."""
        if not self._closed:
            self.engine.prepare_worker(plans=False)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        # Responses without a waiter; asyncio would warn of tasks left pending.
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start a coroutine on the engine's loop, and return the future of its result at once.

        Raises:
            ServiceError: `UNAVAILABLE` when the engine is closed, or in a forked process.
        """
        trouble = self._explain_closed()
        if trouble is not None:
            work.close()
            raise ServiceError(ErrorCode.UNAVAILABLE, trouble)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _explain_closed(self) -> str | None:
        """Explain why the engine cannot be used. Returns None if it can be used."""
        if self._process != os.getpid():
            return "This client belongs to the parent process: open a new client in this process."
        return "The engine of this client is closed: open it again." if self._closed else None

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's loop and wait for its result; an interrupt cancels it.

        Raises:
            ServiceError: as `submit`.
        """
        answer = self.submit(work)
        try:
            while True:
                try:
                    return answer.result(INTERRUPT_S)
                except TimeoutError:
                    if answer.done():
                        return answer.result()
        except BaseException:
            answer.cancel()
            raise

    async def await_call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's loop, and await it on the caller's loop.

        Raises:
            ServiceError: as `submit`.
        """
        return await asyncio.wrap_future(self.submit(work))

    def close(self, grace_s: float = GRACE_S) -> None:
        """Stop the engine; unfinished work goes on when it is opened again."""
        if self._explain_closed() is not None:
            return
        if threading.current_thread() is self._thread:
            # A garbage collector may run on any thread, and a thread cannot wait for itself.
            threading.Thread(target=self.close, args=(grace_s,), daemon=True).start()
            return
        self._finish_close(self._begin_close(grace_s), grace_s)

    def _begin_close(self, grace_s: float) -> "Future[None]":
        closing = self.submit(self.engine.close(grace_s))
        self._closed = True
        _OPEN_ENGINES.discard(self)
        return closing

    def _finish_close(self, closing: "Future[None]", grace_s: float) -> None:
        """Wait until the engine is closed, and end its thread."""
        try:
            closing.result(grace_s + CLOSE_TIMEOUT_S)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=2)


_OPEN_ENGINES: set[EngineThread] = set()  # the engines of this process


def _close_all() -> None:
    """Close all engines as the interpreter ends; failures are only logged.

    Everything acknowledged is durable already. An engine that could not be closed counts as
    crashed: its work is resumed when the directory is opened again.
    """
    try:
        _wait_for_threads()
        grace_s = GRACE_S if _can_start_threads() else 0.0
        closing = [(engine, engine._begin_close(grace_s)) for engine in list(_OPEN_ENGINES)]
        for engine, future in closing:
            engine._finish_close(future, grace_s)
    except (Exception, KeyboardInterrupt) as error:
        log.debug("an engine could not be closed: %s", error)


def _wait_for_threads() -> None:
    """Wait for a script's threads to end, as the interpreter does; they need the engines."""
    # Threads of executors end at their shutdown, which is after this.
    idle = {*getattr(executors, "_threads_queues", ()), threading.current_thread()}
    while _OPEN_ENGINES:
        busy = [t for t in threading.enumerate() if not t.daemon and t not in idle]
        busy = [thread for thread in busy if thread is not threading.main_thread()]
        if not busy:
            return
        busy[0].join()


def _can_start_threads() -> bool:
    """Check whether a thread can still start; Python 3.12.0 and 3.12.1 refuse it at exit."""
    try:
        threading.Thread(target=bool, daemon=True).start()
    except RuntimeError:
        return False
    return True


# `atexit` runs after the shutdown of executors, which engines need to store their work; functions
# registered here run before, in reverse order. The name is private, and exists since 3.9.
getattr(threading, "_register_atexit", atexit.register)(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_OPEN_ENGINES.clear)  # their threads stay with the parent


class LoopChannel:
    """A sync client's way to the operations of the engine in this process, without HTTP."""

    def __init__(self, thread: EngineThread) -> None:
        self._thread = thread

    def call(self, request: OperationRequest) -> OperationAnswer:
        """Have the engine carry out an operation, and wait for its answer.

        Raises:
            ToolkitError: as over HTTP.
        """
        return self._thread.call(self._thread.operations.call(request))

    def stream(
        self, request: OperationRequest, deadline: float | None
    ) -> Iterator[Event | TextDelta]:
        """Yield the events and texts of a resource as they come, until a deadline.

        Raises:
            ToolkitError: as over HTTP.
        """
        items = self._thread.operations.stream(request)
        try:
            while (item := self._thread.call(_read_next(items, deadline))) is not None:
                yield item
        finally:
            with suppress(ServiceError):  # the engine is closed, and its streams with it
                self._thread.call(_close_stream(items))


class AsyncLoopChannel:
    """An async client's way from its loop to the operations of the engine in this process."""

    def __init__(self, thread: EngineThread) -> None:
        self._thread = thread

    async def call(self, request: OperationRequest) -> OperationAnswer:
        """Have the engine carry out an operation on its own loop, and await the answer.

        Raises:
            ToolkitError: as over HTTP.
        """
        return await self._thread.await_call(self._thread.operations.call(request))

    async def stream(
        self, request: OperationRequest, deadline: float | None
    ) -> AsyncIterator[Event | TextDelta]:
        """Yield the events and texts of a resource as they come, until a deadline.

        Raises:
            ToolkitError: as over HTTP.
        """
        items = self._thread.operations.stream(request)
        try:
            while True:
                item = await self._thread.await_call(_read_next(items, deadline))
                if item is None:
                    return
                yield item
        finally:
            await self._thread.await_call(_close_stream(items))


async def _read_next(items: AsyncIterator[T], deadline: float | None) -> T | None:
    """Return the next item, or None at the end or at a deadline of the monotonic clock."""
    left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
    with suppress(TimeoutError):
        async with asyncio.timeout(left_s):
            return await anext(items, None)
    return None


async def _close_stream(items: AsyncIterator[T]) -> None:
    if isinstance(items, AsyncGenerator):
        await items.aclose()


def start_engine(
    data_dir: str | Path | None,
    *,
    sandbox: bool = False,
    settings: Settings | None = None,
    registry: Registry | None = None,
    faults: "Faults | None" = None,
    cassette: str | Path | None = None,
    mode: "CassetteMode" = "replay",
    take_up: bool | None = None,
    read_only: bool = False,
    dispatch: str | None = None,
    database: str | None = None,
) -> tuple[EngineThread, str]:
    """Start an engine thread, and return it with its owner's API key.

    In the sandbox, every simulated vendor is connected. Arguments and errors are those
    of `Client.local`.
    """
    settings = settings or Settings()
    update: dict[str, object] = {"sandbox": sandbox or settings.sandbox or faults is not None}
    if data_dir is not None:
        update["data_dir"] = Path(data_dir)
    if dispatch is not None:
        update["dispatch"] = dispatch
        Settings(dispatch=dispatch)  # a copy is not checked
    if database is not None:
        update["database"] = Settings(database=database).database  # nor is this
    settings = settings.model_copy(update=update)
    registry = registry or Registry.load()
    functions = FunctionTable()
    opening = open_engine(
        settings,
        registry=registry,
        faults=faults,
        cassette=cassette,
        mode=mode,
        take_up=take_up,
        read_only=read_only,
        functions=functions,
    )
    thread = EngineThread(opening, functions)
    if thread.engine.is_held and take_up is None and not read_only:
        log.warning(
            "%s is a copy: its unfinished work is not resumed; open it with take_up=True to"
            " resume the work.",
            "The database" if settings.database else f"The data directory {settings.data_dir}",
        )
    try:
        return thread, thread.call(_sign_in(thread.engine, registry, functions))
    except BaseException:
        thread.close(0)
        raise


async def _sign_in(engine: Engine, registry: Registry, functions: FunctionTable) -> str:
    if engine.is_read_only:
        return engine.accounts.make_read_only_key()
    account, key = await engine.accounts.open_local_account()
    functions.account_id = account.id
    context = RequestContext(account.id)
    if engine.settings.sandbox:
        simulated = list_simulated_ids(registry)
        for provider in await engine.connections.list_providers(context):
            if provider.id in simulated and not provider.connected:
                pointer = ConnectionCreate(
                    provider=provider.id,
                    connection_type="environment",
                    secret_ref=provider.conventional_variable,
                )
                await engine.connections.create(context, pointer, tested=False)
    return key
