"""The rate limit of a server: the client respects it, and all requests complete."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.client.test_client import RUN, ListedService, envelope, failure
from tests.support.proxied_service import ProxiedService, open_proxied_service
from toolkit import AsyncClient, Client, ServiceError
from toolkit.settings import Settings

PER_S, BURST = 60.0, 10
ROWS = 40


@pytest.fixture
def limited(settings: Settings) -> Iterator[ProxiedService]:
    """A server with a low rate limit for each key."""
    low = {"rate_limit_per_s": PER_S, "rate_limit_burst": BURST}
    with open_proxied_service(settings.model_copy(update=low)) as service:
        yield service


@pytest.mark.parametrize("limit", [None, 1.0], ids=["unlimited", "with a budget"])
def test_map_completes_all_rows_within_the_rate_limit(
    limited: ProxiedService, limit: float | None
) -> None:
    """Given more rows than the rate limit allows, then all complete, with few refusals."""
    rows = [{"n": n} for n in range(ROWS)]
    options: dict[str, Any] = {"max_cost_usd": limit, "concurrency": 30, "progress": False}
    with Client(limited.url, limited.key) as client:
        table = client.map("llm.generate", rows, objective="On {n}", **options)

    assert set(table["status"]) == {"completed"}
    refused = limited.list_statuses().count(429)
    assert refused <= 30, "requests in flight at the limit are refused, and few later requests"


async def test_concurrent_calls_all_complete(limited: ProxiedService) -> None:
    """Given more calls at once than the rate limit allows, then each of them completes."""

    async def call(client: AsyncClient, n: int) -> str:
        run = await client.runs.create("llm.generate", {"objective": f"On {n}"})
        return (await run.wait(progress=False)).status

    async with AsyncClient(limited.url, limited.key) as client:
        statuses = await asyncio.gather(*(call(client, n) for n in range(ROWS)))
        objectives = [run.input["objective"] async for run in client.runs]

    assert set(statuses) == {"completed"}
    assert sorted(objectives) == sorted(f"On {n}" for n in range(ROWS))


def test_two_clients_of_one_key_share_its_limit(limited: ProxiedService) -> None:
    """Given two clients that together exceed the limit of their key, then both complete."""

    def work(name: str) -> set[str]:
        with Client(limited.url, limited.key) as client:
            rows = [{"n": f"{name}{n}"} for n in range(ROWS // 2)]
            table = client.map("llm.generate", rows, objective="On {n}", progress=False)
            return set(table["status"])

    with ThreadPoolExecutor(2) as executor:
        assert list(executor.map(work, "ab")) == [{"completed"}] * 2


@contextmanager
def _record_delays(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Record the seconds that a client sleeps, on a clock that advances only by its sleeps."""
    delays: list[float] = []
    with monkeypatch.context() as patched:
        patched.setattr(time, "sleep", delays.append)
        patched.setattr(time, "monotonic", lambda: sum(delays))
        yield delays


def _limit(retry_after: str, policy: str | None = None) -> httpx.Response:
    headers = {} if policy is None else {"RateLimit-Policy": policy}
    return failure(429, "RATE_LIMITED", **{"Retry-After": retry_after}, **headers)


@pytest.mark.parametrize("policy", [None, '"key";q=10;w=5'])
def test_post_waits_as_long_as_requested(
    monkeypatch: pytest.MonkeyPatch, policy: str | None
) -> None:
    """Given refusals by the rate limit, then the POST is retried after each `Retry-After`."""
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
    ids=["single wait", "sum of waits", "max_wait_s", "max_retries"],
)
def test_raises_if_waits_exceed_the_limit(
    monkeypatch: pytest.MonkeyPatch,
    answers: list[httpx.Response],
    options: dict[str, float],
    sent: int,
) -> None:
    """Given waits beyond the client's limit, then it raises, and sends no early request."""
    service = ListedService(*answers)
    with (
        _record_delays(monkeypatch) as delays,
        pytest.raises(ServiceError, match="RATE_LIMITED"),
    ):
        service.client(**options).runs.create("llm.generate", {"objective": "x"})
    assert len(service.seen) == sent
    assert sum(delays) <= 60


def test_respects_the_rate_limit_of_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a 429 of a proxy, then the client waits for its `Retry-After` as well."""
    page = httpx.Response(429, html="<h1>Too many</h1>", headers={"Retry-After": "9"})
    service = ListedService(page, envelope(RUN, 202))
    with _record_delays(monkeypatch) as delays:
        service.client().runs.create("llm.generate", {"objective": "x"})
    assert delays == [9.0]
    with pytest.raises(ServiceError, match="answered 429"), _record_delays(monkeypatch):
        ListedService(*[page] * 7).client().runs.create("llm.generate", {"objective": "x"})


def test_timeout_ends_a_wait_for_the_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a timeout shorter than `Retry-After`, then the wait ends in time with a timeout."""
    service = ListedService(envelope(RUN), _limit("30", '"key";q=10;w=5'))
    with _record_delays(monkeypatch) as delays, pytest.raises(TimeoutError, match="work continues"):
        service.client().runs.get("run_1").wait(4.0, progress=False)
    assert sum(delays) == pytest.approx(4.0)
    assert len(service.seen) == 2
