"""Shared calls: equal calls at one time are one call."""

import asyncio

import httpx
import pytest

from tests.support.timing import yield_turns
from toolkit.engine.concurrency.shared_calls import SharedCalls
from toolkit.engine.transport.driver import Driver
from toolkit.engine.transport.worker_pool import WorkerPool
from toolkit.settings import Settings


async def test_sends_equal_lookups_once() -> None:
    """Given look-ups at one time, then equal look-ups are one request with one answer."""
    paths: list[str] = []
    may_answer = asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        await may_answer.wait()
        return httpx.Response(200, text=request.url.path)

    driver = Driver(lambda: httpx.MockTransport(answer), WorkerPool.of(Settings()), 1_000_000)
    requests = [httpx.Request("GET", f"https://wiki.example/{name}") for name in "aab"]
    lookups = [asyncio.create_task(driver.send(request)) for request in requests]
    may_answer.set()
    answers = [response.text for response in await asyncio.gather(*lookups)]
    later = await driver.send(requests[0])
    await driver.aclose()
    assert (answers, later.text) == (["/a", "/a", "/b"], "/a")
    assert sorted(paths) == ["/a", "/a", "/b"]  # the later look-up is a request of its own


@pytest.mark.parametrize("is_second_cancelled", [False, True])
async def test_runs_until_the_last_waiter_leaves(is_second_cancelled: bool) -> None:
    """Given a call with two waiters, when both are cancelled, then the call is cancelled."""
    calls: SharedCalls[str, str] = SharedCalls()
    may_end, cancelled = asyncio.Event(), asyncio.Event()

    async def call() -> str:
        try:
            await may_end.wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "done"

    first, second = (asyncio.create_task(calls.share("a", call())) for _ in range(2))
    await yield_turns(2)  # until the task of the call has started
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
