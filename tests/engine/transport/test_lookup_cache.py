"""The cache of answers of public services, by the rules of their headers."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from email.utils import formatdate

import httpx
import pytest

from toolkit.engine.transport import lookup_cache
from toolkit.engine.transport.driver import Driver
from toolkit.engine.transport.lookup_cache import ENTRY_OVERHEAD_BYTES, LookupCache
from toolkit.engine.transport.worker_pool import WorkerPool
from toolkit.settings import Settings

URL = "https://wiki.example/page/tides"


class Clock:
    """The clock of the cache, which a test advances."""

    now = 1_800_000_000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the cache, which a test advances."""
    clock = Clock()
    monkeypatch.setattr(lookup_cache.time, "time", lambda: clock.now)
    return clock


class Service:
    """A public service whose answers have fixed headers.

    Attributes:
        headers: the headers of its answers.
        requests: the requests that it received.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = httpx.Headers(headers)
        self.requests: list[httpx.Request] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer with the number of the request, or with 304 if its tag is current."""
        self.requests.append(request)
        tag = self.headers.get("etag")
        if tag is not None and request.headers.get("if-none-match") == tag:
            return httpx.Response(304, headers=self.headers)
        return httpx.Response(200, headers=self.headers, text=f"answer {len(self.requests)}")


@asynccontextmanager
async def open_driver(service: Service, cache: LookupCache | None) -> AsyncIterator[Driver]:
    """Open a driver to a service."""
    transport = httpx.MockTransport(service.answer)
    driver = Driver(lambda: transport, WorkerPool.of(Settings()), 1_000_000, cache)
    try:
        yield driver
    finally:
        await driver.aclose()


# The headers, and the number of requests for two look-ups that are a minute apart.
POLICIES: dict[str, tuple[Callable[[float], Mapping[str, str]], int]] = {
    "fresh": (lambda _: {"cache-control": "max-age=300"}, 1),
    "private, as this cache is": (lambda _: {"cache-control": "private, max-age=300"}, 1),
    "fresh by a date": (lambda now: {"expires": formatdate(now + 300, usegmt=True)}, 1),
    "stale": (lambda _: {"cache-control": "max-age=59"}, 2),
    "stale by a date": (lambda now: {"expires": formatdate(now + 59, usegmt=True)}, 2),
    "old on arrival": (lambda _: {"cache-control": "max-age=300", "age": "280"}, 2),
    "not to be stored": (lambda _: {"cache-control": "no-store, max-age=300", "etag": '"1"'}, 2),
    "for shared caches": (lambda _: {"cache-control": "s-maxage=300, max-age=0"}, 2),
    "varies by all headers": (lambda _: {"cache-control": "max-age=300", "vary": "*"}, 2),
    "no headers": (lambda _: {}, 2),
    "invalid dates": (lambda _: {"cache-control": "max-age=300", "date": "soon", "age": "old"}, 1),
}


@pytest.mark.parametrize(("make_headers", "requests"), POLICIES.values(), ids=POLICIES)
async def test_caches_as_the_headers_say(
    clock: Clock, make_headers: Callable[[float], Mapping[str, str]], requests: int
) -> None:
    """Given two equal look-ups, then the second is answered from memory if the headers allow it."""
    service = Service(make_headers(clock.now))
    async with open_driver(service, LookupCache()) as driver:
        first = await driver.send(httpx.Request("GET", URL))
        clock.now += 60
        second = await driver.send(httpx.Request("GET", URL))
    assert (first.text, len(service.requests)) == ("answer 1", requests)
    assert second.text == f"answer {requests}"


async def test_revalidates_stale_answers(clock: Clock) -> None:
    """Given a stale answer with a tag, then it is revalidated, and fresh again after a 304."""
    service = Service({"cache-control": "max-age=30", "etag": '"1"'})
    async with open_driver(service, LookupCache()) as driver:
        answers = []
        for later_s in (0, 60, 10):
            clock.now += later_s
            answers.append(await driver.send(httpx.Request("GET", URL)))
        service.headers["etag"] = '"2"'
        clock.now += 60
        changed = await driver.send(httpx.Request("GET", URL))
    assert [(answer.status_code, answer.text) for answer in answers] == [(200, "answer 1")] * 3
    assert changed.text == "answer 3"
    tags = [request.headers.get("if-none-match") for request in service.requests]
    assert tags == [None, '"1"', '"1"']


async def test_caches_by_the_headers_that_vary_names() -> None:
    """Given an address in two languages, then each language has an answer of its own."""
    service = Service({"cache-control": "max-age=300", "vary": "accept-language"})
    async with open_driver(service, LookupCache()) as driver:
        texts = [
            (await driver.send(httpx.Request("GET", URL, headers={"accept-language": code}))).text
            for code in ("en", "de", "en", "de")
        ]
    assert texts == ["answer 1", "answer 2", "answer 1", "answer 2"]


async def test_evicts_the_least_recently_used_answer() -> None:
    """Given more answers than fit, then the least recently used goes; large answers stay out."""
    cache = LookupCache(max_bytes=3 * ENTRY_OVERHEAD_BYTES)
    service = Service({"cache-control": "max-age=300"})
    async with open_driver(service, cache) as driver:
        for path in ("a", "b", "a", "c", "a", "b"):
            await driver.send(httpx.Request("GET", f"https://wiki.example/{path}"))
        assert len(cache) == 2
    assert [request.url.path for request in service.requests] == ["/a", "/b", "/c", "/b"]
    small = LookupCache(max_bytes=ENTRY_OVERHEAD_BYTES)
    async with open_driver(service, small) as driver:
        await driver.send(httpx.Request("GET", URL))
    assert len(small) == 0


@pytest.mark.parametrize(
    ("cache", "via"), [(None, ""), (LookupCache(), "openai")], ids=["no cache", "a vendor"]
)
async def test_does_not_cache_answers_of_vendors(cache: LookupCache | None, via: str) -> None:
    """Given a driver without a cache, or a vendor's answer, then each request is sent."""
    service = Service({"cache-control": "max-age=300"})
    async with open_driver(service, cache) as driver:
        for _ in range(2):
            await driver.send(httpx.Request("GET", URL), via=via)
    assert len(service.requests) == 2


async def test_keeps_the_bytes_of_headers(clock: Clock) -> None:
    """Given a tag that is not ASCII, then it is sent back unchanged."""
    service = Service(httpx.Headers([(b"etag", b'"\xe4"'), (b"x-said", b"f\xfcr")]))
    async with open_driver(service, LookupCache()) as driver:
        await driver.send(httpx.Request("GET", URL))
        clock.now += 60
        again = await driver.send(httpx.Request("GET", URL))
    assert dict(service.requests[1].headers.raw)[b"if-none-match"] == b'"\xe4"'
    assert dict(again.headers.raw)[b"x-said"] == b"f\xfcr"
