"""Calls that are shared while they are under way."""

import asyncio

import httpx
import pytest

from toolkit.engine.concurrency.shared_calls import SharedCalls
from toolkit.engine.transport.driver import Driver
from toolkit.engine.transport.worker_pool import WorkerPool
from toolkit.settings import Settings


class Service:
    """A service that answers when it may, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()

    async def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer with the path."""
        self.asked.append(request.url.path)
        await self.may_answer.wait()
        return httpx.Response(200, text=request.url.path)


async def test_equal_lookups_are_made_once() -> None:
    """Given look-ups at one time, then equal ones are one request, and all have its answer."""
    service = Service()
    driver = Driver(
        lambda: httpx.MockTransport(service.answer), WorkerPool.of(Settings()), 1_000_000
    )
    requests = [httpx.Request("GET", f"https://wiki.example/{name}") for name in "aab"]
    asking = [asyncio.create_task(driver.send(request)) for request in requests]
    service.may_answer.set()
    answers = [answer.text for answer in await asyncio.gather(*asking)]
    later = await driver.send(requests[0])
    await driver.aclose()
    assert (answers, later.text) == (["/a", "/a", "/b"], "/a")
    assert sorted(service.asked) == ["/a", "/a", "/b"]  # the later one was asked anew


async def test_a_call_goes_on_while_somebody_waits() -> None:
    """Given one of two who wait is cancelled, then the other has its answer."""
    calls: SharedCalls[str, str] = SharedCalls()
    may_end = asyncio.Event()

    async def call() -> str:
        await may_end.wait()
        return "done"

    first, second = (asyncio.create_task(calls.share("a", call())) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    may_end.set()
    assert await second == "done"


async def test_a_call_that_nobody_waits_for_is_cancelled() -> None:
    """Given all who wait are cancelled, then so is the call."""
    calls: SharedCalls[str, None] = SharedCalls()
    cancelled = asyncio.Event()

    async def call() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    only = asyncio.create_task(calls.share("a", call()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # the call's own task has begun
    only.cancel()
    with pytest.raises(asyncio.CancelledError):
        await only
    await asyncio.wait_for(cancelled.wait(), 5)
