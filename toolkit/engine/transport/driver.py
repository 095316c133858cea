"""The driver of flows: the only place that sends, waits, reads and times out."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, TypeVar

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.concurrency.shared_calls import SharedCalls
from toolkit.engine.concurrency.threads import start_thread
from toolkit.engine.transport.answers import (
    OnPiece,
    OutcomeUnknownError,
    read_answer,
)
from toolkit.engine.transport.cpu_executor import (
    NO_RESOURCES,
    CpuExecutor,
    OnQueued,
    ignore,
)
from toolkit.engine.transport.lookup_cache import LookupCache
from toolkit.engine.transport.network import NetworkTransport
from toolkit.engine.transport.send_check import SEND_CHECK, SendCheck
from toolkit.plugins import (
    Flow,
    Operation,
    Pause,
    ProviderError,
    Reply,
    RunInProcess,
    RunInThread,
    Submitted,
)
from toolkit.plugins.flow import RunFunction
from toolkit.settings import Timeouts
from toolkit.store import LeaseLost, StoreUnavailableError

T = TypeVar("T")

OnPause = Callable[[str | None], None]
OnSubmitted = Callable[[Submitted], Awaitable[None]]
OnOperation = Callable[[Operation[Any]], Awaitable[Reply]]
# Returns the answer of a request that need not be sent.
OnRequest = Callable[[httpx.Request], Awaitable[httpx.Response | None]]
# The address, the headers and the timeouts of a request to a public service.
PublicLookup = tuple[str, tuple[tuple[bytes, bytes], ...], Timeouts]
OnOutcome = Callable[[httpx.Request, httpx.Response | Exception], None]


async def _refuse_operation(operation: Operation[Any]) -> Reply:
    raise TypeError(f"a vendor's flow cannot ask for {type(operation).__name__}")


async def _let_pass(_: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class FlowHooks:
    """The callbacks of a flow's owner for the steps that the driver does not do by itself."""

    on_operation: OnOperation = _refuse_operation
    on_submitted: OnSubmitted = _let_pass
    on_pause: OnPause = ignore
    on_request: OnRequest = _let_pass
    on_outcome: OnOutcome = ignore
    on_piece: OnPiece = ignore
    on_queued: OnQueued = ignore


NO_HOOKS = FlowHooks()
NO_TIMEOUTS = Timeouts()
# Public services have no vendor limits: the encyclopedia asks for at most three at once.
MAX_PUBLIC_REQUESTS = 3
MAX_THREADS = 4  # for quick steps
MAX_FUNCTION_THREADS = 16  # for callers' own code, which may wait for anything
_SMALL_TYPES = frozenset({type(None), bool, int, float})
MAX_INLINE_BYTES = 256 * 1024  # a flow that reads more than this would block the loop too long


class Driver:
    """The driver of flows, with pooled connections to each vendor and an executor of CPU work.

    Args:
        transport: makes the HTTP transport of a vendor.
        executor: runs CPU work that would block the loop.
        reply_limit: maximum bytes of an answer, as received and as decoded.
        lookup_cache: cache of answers of public services; if None, each look-up is sent.
    """

    def __init__(
        self,
        transport: Callable[[], httpx.AsyncBaseTransport],
        executor: CpuExecutor,
        reply_limit: int,
        lookup_cache: LookupCache | None = None,
    ) -> None:
        self._make_transport = transport
        self._executor = executor
        self._thread_semaphore = FairSemaphore(MAX_THREADS)
        self._function_semaphore = FairSemaphore(MAX_FUNCTION_THREADS)
        self.reply_limit = reply_limit
        self._transports: dict[str, httpx.AsyncBaseTransport] = {}
        self._public_semaphores: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(MAX_PUBLIC_REQUESTS)
        )
        self._lookup_cache = lookup_cache
        self._lookups: SharedCalls[PublicLookup, httpx.Response] = SharedCalls()

    def _get_transport(self, via: str) -> httpx.AsyncBaseTransport:
        transport = self._transports.get(via)
        if transport is None:
            transport = self._transports[via] = self._make_transport()
        return transport

    async def aclose(self) -> None:
        """Close every connection, and end the CPU work in progress."""
        transports, self._transports = self._transports, {}
        for transport in transports.values():
            await transport.aclose()
        await self._executor.aclose()

    async def run(
        self,
        flow: Flow[T],
        hooks: FlowHooks,
        *,
        timeouts: Timeouts = NO_TIMEOUTS,
        via: str = "",
        account_id: str = "",
        is_large: bool = False,
        resources: Mapping[str, float] = NO_RESOURCES,
    ) -> T:
        """Drive a flow to its result, step by step.

        Args:
            flow: the generator.
            hooks: see `FlowHooks`.
            timeouts: the timeouts of each request.
            via: the id of the vendor whose connections are used; empty for a public service.
            account_id: the account that CPU work is queued for.
            is_large: whether its input is so large that it runs in threads from the first step;
                after a large outcome it does so anyway.
            resources: the free resources that a machine needs for the flow's CPU work.

        Raises:
            ProviderError: an error that the flow raised or did not catch.
        """
        advance: Callable[[], object] = partial(next, flow)
        try:
            while True:
                if is_large:
                    step = await self._advance_in_thread(advance, account_id)
                else:
                    step = _advance_once(advance)
                if isinstance(step, _FlowEnd):
                    result: T = step.value
                    return result
                try:
                    outcome: object = None
                    match step:
                        case httpx.Request():
                            response = await hooks.on_request(step)
                            try:
                                if response is None:
                                    response = await self.send(
                                        step, timeouts, via, hooks.on_piece, account_id
                                    )
                            except ProviderError as fault:
                                hooks.on_outcome(step, fault)
                                raise
                            hooks.on_outcome(step, response)
                            outcome = response
                        case Operation():
                            outcome = await hooks.on_operation(step)
                        case RunInProcess():
                            # A vendor's flow holds a secret: its steps stay on this machine.
                            local_step = replace(step, here=True) if via else step
                            outcome = await self._executor.dispatch(
                                local_step, account_id, resources, hooks.on_pause, hooks.on_queued
                            )
                        case RunInThread():
                            outcome = await self.run_in_thread(step.run, account_id)
                        case RunFunction():
                            outcome = await self._run_function(step, account_id)
                        case Pause(seconds, detail):
                            hooks.on_pause(detail)
                            await asyncio.sleep(seconds)
                        case Submitted():
                            await hooks.on_submitted(step)
                        case _:
                            raise TypeError(
                                f"a flow yielded {type(step).__name__}, which is not a step"
                            )
                except Exception as error:
                    # The flow gets the failure where it yielded the step, and may handle it.
                    advance = partial(flow.throw, error)
                else:
                    advance = partial(flow.send, outcome)
                    is_large = is_large or measure_size(outcome) > MAX_INLINE_BYTES
        finally:
            flow.close()

    async def _advance_in_thread(self, advance: Callable[[], object], account_id: str) -> object:
        """Return the next step of a flow, which a thread computes because it has much to read."""
        future = await _start_in_turn(
            self._thread_semaphore, partial(_advance_once, advance), account_id
        )
        cancellation: asyncio.CancelledError | None = None
        while not future.done():  # until then, the flow cannot be closed
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError as error:
                cancellation = error
        if cancellation is not None:
            raise cancellation
        return future.result()

    def prepare_steps(self, functions: Sequence[Callable[..., object]]) -> None:
        """Get ready for later CPU steps of a flow; does not wait."""
        self._executor.prepare(functions)

    async def run_in_process(self, step: RunInProcess, account_id: str = "") -> object:
        """Run a step that may take long in a worker process of this machine.

        Raises:
            ProviderError: it took too long, or its worker process died.
        """
        return await self._executor.dispatch(replace(step, here=True), account_id)

    async def run_in_thread(self, work: Callable[[], T], account_id: str = "") -> T:
        """Run quick work in a thread; it cannot be ended, so it counts as running until done."""
        return await asyncio.shield(await _start_in_turn(self._thread_semaphore, work, account_id))

    async def _run_function(self, step: RunFunction, account_id: str) -> object:
        """Run the caller's own code in a thread; if cancelled, it still counts until it is done."""
        future = await _start_in_turn(self._function_semaphore, step.function, account_id)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            step.cancel()
            raise

    async def send(
        self,
        request: httpx.Request,
        timeouts: Timeouts = NO_TIMEOUTS,
        via: str = "",
        on_piece: OnPiece = ignore,
        account_id: str = "",
    ) -> httpx.Response:
        """Send one request and read the whole answer, within the size limit and the deadlines.

        Redirects are not followed: a vendor's key must not travel to another host.

        Args:
            request: the request to send; its stream reader, if any, reads a streamed answer, and
                the response is the result of that reader.
            timeouts: the timeouts of the request.
            via: the id of the vendor whose connections are used; empty for a public service.
            on_piece: is called with each piece of a streamed answer, as it comes.
            account_id: the account that the decoding of a large answer is queued for.

        Raises:
            ProviderError: `PROVIDER_UNAVAILABLE` if nothing was sent, `PROVIDER_BAD_RESPONSE` for
                an answer that is over the limit or cannot be decoded.
            LeaseLost: nothing was sent, because another process has taken over the work.
            OutcomeUnknownError: the request was sent and the answer did not come.
        """
        if via:
            return await self._send_request(request, timeouts, via, on_piece, account_id)
        if request.method != "GET":
            return await self._send_public(request, timeouts)
        # Work that begins together often makes the same look-ups.
        key = str(request.url), tuple(request.headers.raw), timeouts
        return await self._lookups.share(key, self._look_up(request, timeouts))

    async def _look_up(self, request: httpx.Request, timeouts: Timeouts) -> httpx.Response:
        if self._lookup_cache is None:
            return await self._send_public(request, timeouts)
        return await self._lookup_cache.fetch(
            request, lambda lookup: self._send_public(lookup, timeouts)
        )

    async def _send_public(self, request: httpx.Request, timeouts: Timeouts) -> httpx.Response:
        async with self._public_semaphores[request.url.host]:
            return await self._send_request(request, timeouts, "", ignore, "")

    async def _send_request(
        self,
        request: httpx.Request,
        timeouts: Timeouts,
        via: str,
        on_piece: OnPiece,
        account_id: str,
    ) -> httpx.Response:
        host = request.url.host
        # These are per read, so a slowly dripping answer passes them: it is timed here.
        request.extensions = {**request.extensions, "timeout": _make_timeouts(timeouts)}
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(_find_earlier(timeouts)) as deadline:
                # Not by a client of httpx, which would double the cost of sending a request.
                response = await self._pass_request(request, via)
                if timeouts.first_byte_s is not None:
                    total_s = timeouts.total_s
                    deadline.reschedule(None if total_s is None else began + total_s)
                return await read_answer(
                    request,
                    response,
                    self.reply_limit,
                    on_piece,
                    partial(self.run_in_thread, account_id=account_id),
                )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise ProviderError(
                ErrorCode.PROVIDER_UNAVAILABLE, f"{host} could not be reached."
            ) from _strip_request(error)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise OutcomeUnknownError(
                ErrorCode.PROVIDER_TIMEOUT, f"{host} did not answer in time."
            ) from _strip_request(error)
        except (ProviderError, LeaseLost, StoreUnavailableError):
            raise
        except Exception as error:
            # Transports raise errors of their own besides httpx's, such as for invalid HTTP.
            raise OutcomeUnknownError(
                ErrorCode.PROVIDER_UNAVAILABLE, f"The connection to {host} was lost."
            ) from _strip_request(error)

    async def _pass_request(self, request: httpx.Request, via: str) -> httpx.Response:
        """Send a request by the transport; run its check first if the transport does not run it."""
        transport = self._get_transport(via)
        check: SendCheck | None = request.extensions.get(SEND_CHECK)
        if check is not None and not isinstance(transport, NetworkTransport):
            await check()
        return await transport.handle_async_request(request)


async def _start_in_turn(
    semaphore: FairSemaphore, work: Callable[[], T], account_id: str
) -> "asyncio.Future[T]":
    """Start work in a thread, in turns by account; it counts against the limit until it is done."""
    await semaphore.acquire(account_id)

    def end(future: "asyncio.Future[T]") -> None:
        semaphore.release(account_id)
        if not future.cancelled():
            future.exception()  # mark it as retrieved: the waiter may have gone

    started = start_thread(work)
    started.add_done_callback(end)
    return started


def _find_earlier(timeouts: Timeouts) -> float | None:
    """Return the seconds until the first deadline of a request; None without a deadline."""
    limits = [limit for limit in (timeouts.first_byte_s, timeouts.total_s) if limit is not None]
    return min(limits, default=None)


@lru_cache(maxsize=64)
def _make_timeouts(timeouts: Timeouts) -> dict[str, float | None]:
    """Make httpx's form of the timeouts of a request; the settings allow for few of them."""
    return httpx.Timeout(timeouts.total_s, connect=timeouts.connect_s).as_dict()


@dataclass(frozen=True, slots=True)
class _FlowEnd:
    """The end of a flow, and its result."""

    value: Any


def _advance_once(advance: Callable[[], object]) -> object:
    """Return the next step of a flow, or its end."""
    try:
        return advance()
    except StopIteration as stop:
        return _FlowEnd(stop.value)


def measure_size(value: object) -> int:
    """Count the bytes and characters of a response, a reply or the input of a flow."""
    if type(value) in _SMALL_TYPES:
        return 0
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, httpx.Response):
        return len(value.content)
    if isinstance(value, dict):
        return sum(map(measure_size, value.values()))
    if isinstance(value, tuple):
        return sum(map(measure_size, value))
    size = 0
    for name in getattr(value, "__dataclass_fields__", ()):  # `fields` takes longer than the rest
        member = getattr(value, name, None)
        if type(member) not in _SMALL_TYPES:  # most members are
            size += measure_size(member)
    return size


def _strip_request(error: Exception) -> Exception:
    """Return an exception without its request and traceback; the headers carry the key."""
    if isinstance(error, httpx.RequestError):
        error._request = None
    return error.with_traceback(None)
