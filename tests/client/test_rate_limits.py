"""A server's rate limit of requests: the client keeps to it, and what was asked for is done."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.client.test_client import KEY, RUN, ListedService, envelope, failure
from tests.support.proxied_service import ProxiedService, open_proxied_service
from toolkit import AsyncClient, Client, ServiceError
from toolkit.settings import Settings

URL = "http://service.test"
PER_S, BURST = 60.0, 10
ROWS = 40


@pytest.fixture
def limited(settings: Settings) -> Iterator[ProxiedService]:
    """A server that allows a key few requests a second."""
    low = {"rate_limit_per_s": PER_S, "rate_limit_burst": BURST}
    with open_proxied_service(settings.model_copy(update=low)) as made:
        yield made


@pytest.mark.parametrize("limit", [None, 1.0], ids=["unlimited", "with a budget"])
def test_map_completes_all_rows_within_the_rate_limit(
    limited: ProxiedService, limit: float | None
) -> None:
    """Given more rows than the rate limit allows, then all complete, and few are refused."""
    rows = [{"n": n} for n in range(ROWS)]
    with Client(limited.url, limited.key) as client:
        found = client.map(
            "llm.generate",
            rows,
            objective="On {n}",
            max_cost_usd=limit,
            concurrency=30,
            progress=False,
        )

    assert set(found["status"]) == {"completed"}
    refused = limited.list_statuses().count(429)
    assert refused <= 30, "those in flight when the limit was met, and hardly any after"


async def test_concurrent_calls_all_complete(limited: ProxiedService) -> None:
    """Given more calls at once than the rate limit allows, then every one of them completes."""

    async def call(client: AsyncClient, n: int) -> str:
        run = await client.runs.create("llm.generate", {"objective": f"On {n}"})
        return (await run.wait(progress=False)).status

    async with AsyncClient(limited.url, limited.key) as client:
        ended = await asyncio.gather(*(call(client, n) for n in range(ROWS)))
        made = [run.input["objective"] async for run in client.runs]

    assert set(ended) == {"completed"}
    assert sorted(made) == sorted(f"On {n}" for n in range(ROWS))


def test_two_clients_of_one_key_share_its_limit(limited: ProxiedService) -> None:
    """Given two clients that each ask as often as the key may, then both complete."""
    found: list[str] = []

    def work(name: str) -> None:
        with Client(limited.url, limited.key) as client:
            rows = [{"n": f"{name}{n}"} for n in range(ROWS // 2)]
            table = client.map("llm.generate", rows, objective="On {n}", progress=False)
            found.extend(table["status"])

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["completed"] * ROWS


@contextmanager
def _record_delays(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Record the seconds that a client sleeps, on a clock that only its sleeps move."""
    delays: list[float] = []
    at = 0.0

    def sleep(seconds: float) -> None:
        nonlocal at
        at += seconds
        delays.append(seconds)

    def read_clock() -> float:
        return at

    with monkeypatch.context() as patched:
        patched.setattr(time, "sleep", sleep)
        patched.setattr(time, "monotonic", read_clock)
        yield delays


def _limit(retry_after: str | None, policy: str | None = None) -> httpx.Response:
    headers = {"Retry-After": retry_after, "RateLimit-Policy": policy}
    given = {name: value for name, value in headers.items() if value is not None}
    return failure(429, "RATE_LIMITED", **given)


@pytest.mark.parametrize("policy", [None, '"key";q=10;w=5'])
def test_a_post_with_an_idempotency_key_waits_as_long_as_it_is_asked_to(
    monkeypatch: pytest.MonkeyPatch, policy: str | None
) -> None:
    """Given refusals by the rate limit, then the POST is sent again once each time is up."""
    service = ListedService(_limit("7", policy), _limit("30", policy), envelope(RUN, 202))
    with _record_delays(monkeypatch) as delays:
        service.client().runs.create("llm.generate", {"objective": "x"})
    assert 37 <= sum(delays) <= 38.5
    assert len({request.headers["idempotency-key"] for request in service.seen}) == 1


@pytest.mark.parametrize(
    ("answers", "options", "sent"),
    [
        ([_limit("61")], {}, 1),
        ([_limit("20")] * 4, {}, 4),
        ([_limit("3")], {"max_wait_s": 2.0}, 1),
        ([_limit("1")] * 3, {"max_retries": 2}, 3),
    ],
    ids=["at once", "in all", "a limit of the caller's", "a number of retries"],
)
def test_a_wait_longer_than_the_client_allows_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
    answers: list[httpx.Response],
    options: dict[str, float],
    sent: int,
) -> None:
    """Given waits beyond the client's limit, then the error comes, and no request comes early."""
    service = ListedService(*answers)
    transport = httpx.MockTransport(service)
    with _record_delays(monkeypatch) as delays:
        client = Client(URL, KEY, transport=transport, **options)
        with pytest.raises(ServiceError, match="RATE_LIMITED"):
            client.runs.create("llm.generate", {"objective": "x"})
    assert len(service.seen) == sent
    assert sum(delays) <= 60


def test_a_request_without_an_idempotency_key_is_sent_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a POST whose answer is shown once, when it is refused, then it is not sent again."""
    service = ListedService(_limit("1"))
    with _record_delays(monkeypatch) as delays, pytest.raises(ServiceError):
        service.client().account.create("ada@example.org")
    assert (len(service.seen), delays) == (1, [])


def test_a_proxy_that_limits_requests_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a 429 that is not the service's own, then its `Retry-After` counts as well."""
    page = httpx.Response(429, html="<h1>Too many</h1>", headers={"Retry-After": "9"})
    service = ListedService(page, envelope(RUN, 202))
    with _record_delays(monkeypatch) as delays:
        service.client().runs.create("llm.generate", {"objective": "x"})
    assert delays == [9.0]
    with pytest.raises(ServiceError, match="answered 429"), _record_delays(monkeypatch):
        ListedService(*[page] * 7).client().runs.create("llm.generate", {"objective": "x"})


def test_a_timeout_of_the_caller_ends_a_wait_for_the_rate_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a wait shorter than `Retry-After`, then it ends in time, and as a timeout."""
    service = ListedService(envelope(RUN), _limit("30", '"key";q=10;w=5'))
    with _record_delays(monkeypatch) as delays, pytest.raises(TimeoutError, match="work continues"):
        service.client().runs.get("run_1").wait(4.0, progress=False)
    assert sum(delays) == pytest.approx(4.0)
    assert len(service.seen) == 2
