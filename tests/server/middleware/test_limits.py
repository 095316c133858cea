"""Limits of what a caller may ask for, and the errors beyond them."""

import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, closing
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest

from tests.server.conftest import POINTER, Wire, build_scope, open_wire
from tests.support.commands import say
from tests.support.timing import wait_until_async
from toolkit import Client
from toolkit.engine.concurrency.token_buckets import MAX_BUCKETS, TokenBuckets, UnitPace
from toolkit.sandbox import Fault, Faults
from toolkit.server import create_app
from toolkit.settings import Settings
from toolkit.store.stored_bytes import build_shortfall_query

CARD = {"target": "capability", "name": "composition.layout", "input": {"title": "Tea"}}
LINE = {"target": "capability", "name": "llm.generate", "input": {"objective": "One line on tea"}}
WAIT = {"Prefer": "wait=60"}
Opened = Callable[..., Any]


@pytest.fixture
async def open_with(settings: Settings) -> AsyncIterator[Opened]:
    """Open a signed-up caller of an engine with other settings."""
    async with AsyncExitStack() as stack:

        async def open_changed(faults: Faults | None = None, **update: object) -> Wire:
            update["connection_test_s"] = 0.0  # because some tests need a slow vendor
            changed = settings.model_copy(update=update)
            return await stack.enter_async_context(open_wire(changed, faults=faults))

        yield open_changed


def read_error(answer: httpx.Response) -> tuple[int, str]:
    """Return the status and the code of an error, whose message is a sentence."""
    error = answer.json()["error"]
    assert error["message"].endswith(".")
    return answer.status_code, error["code"]


async def test_limits_the_rate_of_a_key(open_with: Opened) -> None:
    """Given a burst of three, then the fourth request gets 429; another key is served."""
    wire = await open_with(rate_limit_per_s=0.1, rate_limit_burst=3)
    bobs_headers = await wire.sign_up("bob@example.org")
    answers = [await wire.send("GET", "/v1/account") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert read_error(answers[3]) == (429, "RATE_LIMITED")
    assert 9 <= int(answers[3].headers["retry-after"]) <= 10
    assert (await wire.send("GET", "/v1/account", headers=bobs_headers)).status_code == 200
    assert (await wire.send("GET", "/v1/health")).status_code == 200


async def test_counts_a_request_with_an_idempotency_key_once(open_with: Opened) -> None:
    """Given idempotency keys, then each request counts once for the rate limit."""
    wire = await open_with(rate_limit_per_s=0.001, rate_limit_burst=2)
    answers = [
        await wire.send("POST", "/v1/route", json=CARD, headers={"Idempotency-Key": str(i)})
        for i in range(3)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 429]


def test_embedded_engine_has_no_rate_limit(settings: Settings) -> None:
    """Given an embedded engine, then no rate limit applies."""
    rare = settings.model_copy(update={"rate_limit_per_s": 0.001, "rate_limit_burst": 1})
    with Client.local(settings=rare) as client:
        assert len({client.account.get().id for _ in range(5)}) == 1


def test_token_bucket_refills_up_to_the_burst() -> None:
    """Given elapsed time, then tokens return up to the burst; the buckets are bounded."""
    now_s = 0.0
    rates = TokenBuckets(UnitPace(per_s=2, burst=2), clock=lambda: now_s)
    assert [rates.acquire_delay_s("a") for _ in range(3)] == [0, 0, 0.5]
    now_s = 0.5
    assert [rates.acquire_delay_s("a") for _ in range(2)] == [0, 0.5]
    now_s = 1000.0
    assert [rates.acquire_delay_s("a") for _ in range(3)] == [0, 0, 0.5]
    for i in range(2 * MAX_BUCKETS):
        rates.acquire_delay_s(str(i))
    assert len(rates) == MAX_BUCKETS


@pytest.mark.parametrize("kind", ["runs", "workflows", "tasks"])
async def test_limits_the_queue_of_an_account(open_with: Opened, kind: str) -> None:
    """Given a full queue, then its account gets 429 until a job ends."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=20_000, times=None))
    wire = await open_with(faults, max_queued=1)
    nodes = [{"id": "a", "capability": "llm.generate", "input": LINE["input"]}]
    body: dict[str, Any] = {
        "runs": LINE,
        "workflows": {"name": "w", "nodes": nodes},
        "tasks": {"objective": "A social card about tea"},
    }[kind]
    bobs_headers = await wire.sign_up("bob@example.org")
    for headers in (wire.headers, bobs_headers):
        await wire.send("POST", "/v1/providers/connections", json=POINTER, headers=headers)
    first = await wire.send("POST", "/v1/runs", json=LINE)
    before = await wire.rows()
    refused = await wire.send("POST", f"/v1/{kind}", json=body)
    assert read_error(refused) == (429, "RATE_LIMITED")
    assert int(refused.headers["retry-after"]) >= 1
    assert await wire.rows() == before
    accepted = await wire.send("POST", f"/v1/{kind}", json=body, headers=bobs_headers)
    assert accepted.status_code == 202
    await wire.send("POST", f"/v1/runs/{first.json()['id']}/cancel")

    async def is_accepted() -> bool:
        return (await wire.send("POST", "/v1/runs", json=CARD)).status_code == 202

    await wait_until_async(is_accepted)


async def test_limits_the_stored_bytes_of_an_account(open_with: Opened) -> None:
    """Given room for one upload, then the next gets 413, and a large result fails."""
    wire = await open_with(max_stored_bytes=20_000)

    async def upload(size: int, **options: Any) -> httpx.Response:
        files = {"file": ("a.txt", b"x" * size)}
        return await wire.send("POST", "/v1/artifacts", files=files, **options)

    large = await upload(15_000)
    assert large.status_code == 201
    before = await wire.rows()
    refused = await upload(6_000)
    assert read_error(refused) == (413, "PAYLOAD_TOO_LARGE")
    assert "MB of artifacts and" in refused.json()["error"]["message"]
    assert await wire.rows() == before
    assert (await upload(15_000, headers=await wire.sign_up("bob@example.org"))).status_code == 201
    job = await wire.send("POST", "/v1/runs", json=CARD, headers=WAIT)
    assert (job.json()["status"], job.json()["error"]["code"]) == ("failed", "PAYLOAD_TOO_LARGE")
    assert "operator" in job.json()["error"]["message"]
    while (await upload(300)).status_code == 201:
        pass
    await wire.send("DELETE", f"/v1/artifacts/{large.json()['id']}")
    assert (await upload(10_000)).status_code == 201


def find_wrong_sums(wire: Wire) -> list[tuple[str, int, int]]:
    """Return the accounts whose recorded sums differ from their stored bytes."""
    with closing(sqlite3.connect(wire.engine.settings.data_dir / "state.db")) as database:
        return database.execute(build_shortfall_query("sqlite")).fetchall()


async def test_records_count_as_stored_bytes(open_with: Opened) -> None:
    """Given an account without artifacts, then its records reach the limit."""
    wire = await open_with(max_stored_bytes=100_000)
    text = "tea " * 2_000
    count, status = 0, 201
    while status == 201:
        count += 1
        body = {"name": "reader", "objective": text, "version": str(count)}
        answer = await wire.send("POST", "/v1/agents", json=body)
        status = answer.status_code
    assert read_error(answer) == (413, "PAYLOAD_TOO_LARGE")
    assert 6 < count <= 100_000 / len(text)
    assert "ask the operator to remove old work" in answer.json()["error"]["message"]
    assert find_wrong_sums(wire) == []


async def test_pruning_frees_stored_bytes(open_with: Opened, settings: Settings) -> None:
    """Given a full account, when old records are pruned, then it has room again."""
    wire = await open_with(max_stored_bytes=400_000)
    objective = {"objective": "tea " * 4_000}
    nodes = [{"id": i, "capability": "llm.generate", "input": objective} for i in ("a", "b", "c")]
    flow = {"name": "w", "nodes": nodes}
    await wire.send("POST", "/v1/providers/connections", json=POINTER)
    answer = await wire.send("POST", "/v1/workflows", json=flow, headers=WAIT)
    while answer.status_code == 202:
        answer = await wire.send("POST", "/v1/workflows", json=flow, headers=WAIT)
    assert read_error(answer) == (413, "PAYLOAD_TOO_LARGE")
    assert find_wrong_sums(wire) == []
    say("prune", "--older-than", "0h", "--data-dir", settings.data_dir)
    assert find_wrong_sums(wire) == []
    assert (await wire.send("POST", "/v1/workflows", json=flow)).status_code == 202


async def test_limits_the_running_jobs_of_an_account(open_with: Opened) -> None:
    """Given a limit of one running job, then a job of another account does not wait."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=20_000, times=None))
    wire = await open_with(faults, max_concurrent_jobs_per_account=1)
    await wire.send("POST", "/v1/providers/connections", json=POINTER)
    run_ids = [(await wire.send("POST", "/v1/runs", json=LINE)).json()["id"] for _ in range(2)]
    bobs_headers = await wire.sign_up("bob@example.org")
    theirs = await wire.send("POST", "/v1/runs", json=CARD, headers={**bobs_headers, **WAIT})
    assert theirs.json()["status"] == "completed"
    states = [(await wire.send("GET", f"/v1/runs/{run}")).json()["status"] for run in run_ids]
    assert states == ["running", "queued"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"title": "x" * 41}, "longer than 40 characters"),
        ({"title": list(range(41))}, "more than 40 items"),
        ({str(i): i for i in range(41)}, "more than 40 members"),
        ({"x" * 41: 1}, "longer than 40 characters"),
    ],
)
async def test_limits_the_parts_of_a_body(
    open_with: Opened, fields: dict[str, object], why: str
) -> None:
    """Given a text, list or object that is too large, then 400 names the limit."""
    wire = await open_with(max_text=40, max_items=40, max_members=40)
    answer = await wire.send("POST", "/v1/runs", json={**CARD, "input": fields})
    assert read_error(answer) == (400, "INVALID_REQUEST")
    assert why in answer.json()["error"]["details"][0]["message"]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": "' + b'\\"' * 40_000,
        b'{"a": "' + b'\\"' * 40_000 + b"\\",
        b'{"a": ' + b'"",' * 300_000,
        b'{"nodes": [{"id": "a", "capability": "x", "depends_on": [' + b'"b",' * 9_998 + b'"b"]}]}',
    ],
    ids=["quotes", "quotes and a backslash", "texts", "one dependency 9,999 times"],
)
async def test_rejects_hostile_bodies_quickly(open_with: Opened, raw: bytes) -> None:
    """Given a body that is slow to parse, then it is rejected as fast as other bodies.

    A search from each quote took 20 s for the first body, and hours for a body of full size.
    """
    wire = await open_with()
    headers = {"Content-Type": "application/json"}
    began = time.process_time()
    answer = await wire.send("POST", "/v1/workflows", content=raw, headers=headers)
    assert time.process_time() - began < 2
    assert answer.status_code in (400, 404)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/runs?limit=" + "1" * 9_000, {}),
        ("/v1/runs/" + "r" * 9_000, {}),
        ("/v1/runs", {f"x-{i}": "1" for i in range(100)}),
        ("/v1/runs", {"x-long": "1" * 33_000}),
    ],
    ids=["query", "path", "many headers", "long header"],
)
async def test_limits_the_target_and_the_headers(
    open_with: Opened, path: str, headers: dict[str, str]
) -> None:
    """Given a target or headers that are too large, then 400 names the limit."""
    wire = await open_with()
    answer = await wire.send("GET", path, headers=headers)
    assert read_error(answer) == (400, "INVALID_REQUEST")
    assert "at most" in answer.json()["error"]["message"]
    assert answer.headers["x-request-id"]


async def test_cors_allows_only_named_origins(open_with: Opened) -> None:
    """Given a named origin, then only its pages may send requests, without cookies."""
    page, evil = {"Origin": "https://board.example.org"}, {"Origin": "https://evil.example.org"}
    wire = await open_with(cors_origins=frozenset(page.values()))
    ask = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "prefer"}
    preflight = await wire.http.options("/v1/runs", headers={**page, **ask})
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == page["Origin"]
    assert preflight.headers["x-request-id"]
    for answer in (
        await wire.send("GET", "/v1/account", headers=page),
        await wire.http.get("/v1/account", headers=page),  # rejected, but readable
    ):
        assert answer.headers["access-control-allow-origin"] == page["Origin"]
        assert "access-control-allow-credentials" not in answer.headers
    for answer in (
        await wire.send("GET", "/v1/account", headers=evil),
        await wire.http.options("/v1/runs", headers={**evil, **ask}),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_cors_is_off_by_default(wire: Wire) -> None:
    """Given no origins, then no answer has a CORS header."""
    answer = await wire.send("GET", "/v1/account", headers={"Origin": "https://board.example.org"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("origin", ["*", "https://*.example.org", "example.org", "https://x.org/"])
def test_rejects_an_inexact_origin(origin: str) -> None:
    """Given an inexact origin, then the settings reject it."""
    with pytest.raises(ValueError, match="exact origin"):
        Settings(cors_origins=frozenset({origin}))


@pytest.mark.parametrize("hosts", [[], ["a.test", "b.test"]], ids=["none", "two"])
async def test_rejects_a_request_without_exactly_one_host(
    open_with: Opened, hosts: list[str]
) -> None:
    """Given no Host header or two, then 400, because proxies would disagree on the host."""
    wire = await open_with()
    scope = build_scope(httpx.Request("GET", "http://service.test/v1/health"))
    scope["headers"] = [(b"host", host.encode()) for host in hosts]
    send = AsyncMock()
    await create_app(wire.engine)(scope, AsyncMock(), send)
    assert send.await_args_list[0].args[0]["status"] == 400
