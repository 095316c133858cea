"""Answers of public services, used again as their own headers allow."""

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
    """A clock that is set by hand, and is the one that the rules go by."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_800_000_000.0
        monkeypatch.setattr(lookup_cache.time, "time", lambda: self.now)


class Service:
    """A public service whose answers have given headers, and that counts what it was asked."""

    def __init__(self, headers: Mapping[str, str], status: int = 200) -> None:
        self.headers, self.status = httpx.Headers(headers), status
        self.asked: list[httpx.Request] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer with the number of the answer, or that nothing has changed."""
        self.asked.append(request)
        tag = self.headers.get("etag")
        if tag is not None and request.headers.get("if-none-match") == tag:
            return httpx.Response(304, headers=self.headers)
        return httpx.Response(self.status, headers=self.headers, text=f"answer {len(self.asked)}")


@asynccontextmanager
async def open_driver(service: Service, cache: LookupCache | None) -> AsyncIterator[Driver]:
    """Open a driver to a service."""
    transport = httpx.MockTransport(service.answer)
    driver = Driver(lambda: transport, WorkerPool.of(Settings()), 1_000_000, cache)
    try:
        yield driver
    finally:
        await driver.aclose()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that is set by hand."""
    return Clock(monkeypatch)


# The headers, and how often the service is asked for two look-ups that are a minute apart.
TWICE: dict[str, tuple[Callable[[float], Mapping[str, str]], int]] = {
    "fresh": (lambda _: {"cache-control": "max-age=300"}, 1),
    "private, which this cache is": (lambda _: {"cache-control": "private, max-age=300"}, 1),
    "fresh by a date": (lambda now: {"expires": formatdate(now + 300, usegmt=True)}, 1),
    "stale": (lambda _: {"cache-control": "max-age=59"}, 2),
    "stale by a date": (lambda now: {"expires": formatdate(now + 59, usegmt=True)}, 2),
    "long under way": (lambda _: {"cache-control": "max-age=300", "age": "280"}, 2),
    "not to be kept": (lambda _: {"cache-control": "no-store, max-age=300", "etag": '"1"'}, 2),
    "for other caches": (lambda _: {"cache-control": "s-maxage=300, max-age=0"}, 2),
    "different each time": (lambda _: {"cache-control": "max-age=300", "vary": "*"}, 2),
    "nothing said": (lambda _: {}, 2),
    "no date": (lambda _: {"cache-control": "max-age=300", "date": "soon", "age": "old"}, 1),
}


@pytest.mark.parametrize("name", TWICE)
async def test_a_look_up_is_kept_as_its_headers_say(clock: Clock, name: str) -> None:
    """Given two equal look-ups, then the second is answered from memory while that is allowed."""
    make_headers, asked = TWICE[name]
    service = Service(make_headers(clock.now))
    async with open_driver(service, LookupCache()) as driver:
        first = await driver.send(httpx.Request("GET", URL))
        clock.now += 60
        second = await driver.send(httpx.Request("GET", URL))
    assert (first.text, len(service.asked)) == ("answer 1", asked)
    assert second.text == f"answer {asked}"


async def test_what_has_not_changed_is_not_sent_again(clock: Clock) -> None:
    """Given a stale answer with a tag, then the service says that it holds, and it is fresh."""
    service = Service({"cache-control": "max-age=30", "etag": '"1"'})
    async with open_driver(service, LookupCache()) as driver:
        answers = []
        for later_s in (0, 60, 10):
            clock.now += later_s
            answers.append(await driver.send(httpx.Request("GET", URL)))
        service.headers["etag"] = '"2"'
        clock.now += 60
        changed = await driver.send(httpx.Request("GET", URL))
    assert [(one.status_code, one.text) for one in answers] == [(200, "answer 1")] * 3
    assert changed.text == "answer 3"
    conditions = [one.headers.get("if-none-match") for one in service.asked]
    assert conditions == [None, '"1"', '"1"']


async def test_what_is_asked_for_otherwise_is_another_look_up(clock: Clock) -> None:
    """Given an address in two languages, then neither has the other's answer."""
    del clock
    service = Service({"cache-control": "max-age=300", "vary": "accept-language"})
    async with open_driver(service, LookupCache()) as driver:
        texts = [
            (await driver.send(httpx.Request("GET", URL, headers={"accept-language": code}))).text
            for code in ("en", "de", "en", "de")
        ]
    assert texts == ["answer 1", "answer 2", "answer 1", "answer 2"]


async def test_the_cache_is_bounded(clock: Clock) -> None:
    """Given more than fits, then what was not used for longest goes; what is too much stays out."""
    del clock
    cache = LookupCache(max_bytes=3 * ENTRY_OVERHEAD_BYTES)
    service = Service({"cache-control": "max-age=300"})
    async with open_driver(service, cache) as driver:
        for path in ("a", "b", "a", "c", "a", "b"):
            await driver.send(httpx.Request("GET", f"https://wiki.example/{path}"))
        assert len(cache) == 2
    assert [one.url.path for one in service.asked] == ["/a", "/b", "/c", "/b"]
    small = LookupCache(max_bytes=ENTRY_OVERHEAD_BYTES)
    async with open_driver(service, small) as driver:
        await driver.send(httpx.Request("GET", URL))
    assert len(small) == 0


@pytest.mark.parametrize(
    ("cache", "via"),
    [
        pytest.param(None, "", id="records-or-replays"),
        pytest.param(LookupCache(), "openai", id="an-account's-own"),
    ],
)
async def test_what_is_not_for_the_cache_is_sent_each_time(
    clock: Clock, cache: LookupCache | None, via: str
) -> None:
    """Given a driver without a cache, or an answer of a vendor, then memory answers nothing."""
    del clock
    service = Service({"cache-control": "max-age=300"})
    async with open_driver(service, cache) as driver:
        for _ in range(2):
            await driver.send(httpx.Request("GET", URL), via=via)
    assert len(service.asked) == 2


async def test_any_bytes_may_stand_in_headers(clock: Clock) -> None:
    """Given a tag that is no ASCII, then it is sent back as it came."""
    service = Service(httpx.Headers([(b"etag", b'"\xe4"'), (b"x-said", b"f\xfcr")]))
    async with open_driver(service, LookupCache()) as driver:
        await driver.send(httpx.Request("GET", URL))
        clock.now += 60
        again = await driver.send(httpx.Request("GET", URL))
    assert dict(service.asked[1].headers.raw)[b"if-none-match"] == b'"\xe4"'
    assert dict(again.headers.raw)[b"x-said"] == b"f\xfcr"
