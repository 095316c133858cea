"""Calls that are shared while they are under way."""

import asyncio

import httpx
import pytest

from tests.support.timing import yield_turns
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
    """Given two who wait, when both are cancelled one after the other, then the call is at last."""
    calls: SharedCalls[str, str] = SharedCalls()
    may_end, cancelled = asyncio.Event(), asyncio.Event()

    async def call() -> str:
        try:
            await may_end.wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "done"

    for is_second_cancelled in (False, True):
        first, second = (asyncio.create_task(calls.share("a", call())) for _ in range(2))
        await yield_turns(2)  # the call's own task has begun
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert not cancelled.is_set()
        if is_second_cancelled:
            second.cancel()
            await asyncio.wait_for(cancelled.wait(), 5)
        else:
            may_end.set()
            assert await second == "done"
            may_end.clear()
