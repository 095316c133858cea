"""Limits of what one caller may ask for, and what is answered beyond them."""

import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, closing
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from typer.testing import CliRunner

from tests.server.conftest import POINTER, Wire, build_scope, open_wire
from tests.support.timing import wait_until_async
from toolkit import Client
from toolkit.cli import app
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
    """Opens a signed-up caller of an engine with other settings."""
    async with AsyncExitStack() as stack:

        async def open_changed(faults: Faults | None = None, **update: object) -> Wire:
            update["connection_test_s"] = 0.0  # a vendor that is slow is so when it works
            changed = settings.model_copy(update=update)
            return await stack.enter_async_context(open_wire(changed, faults=faults))

        yield open_changed


def get_refusal(answer: httpx.Response) -> tuple[int, str]:
    """The status and code of a refusal, which has to say something."""
    error = answer.json()["error"]
    assert error["message"].endswith(".")
    return answer.status_code, error["code"]


async def test_a_key_asks_so_often(open_with: Opened) -> None:
    """Given three at once, then the fourth request is 429 with Retry-After, and others go on."""
    wire = await open_with(rate_limit_per_s=0.1, rate_limit_burst=3)
    other = await wire.sign_up("bob@example.org")
    answers = [await wire.send("GET", "/v1/account") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert get_refusal(answers[3]) == (429, "RATE_LIMITED")
    assert 9 <= int(answers[3].headers["retry-after"]) <= 10
    assert (await wire.send("GET", "/v1/account", headers=other)).status_code == 200
    assert (await wire.send("GET", "/v1/health")).status_code == 200


async def test_a_request_counts_once(open_with: Opened) -> None:
    """Given an idempotency key, for which the caller is asked for earlier, then it counts once."""
    wire = await open_with(rate_limit_per_s=0.001, rate_limit_burst=2)
    answers = [
        await wire.send("POST", "/v1/route", json=CARD, headers={"Idempotency-Key": str(i)})
        for i in range(3)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 429]


def test_a_notebook_on_its_own_engine_asks_as_often_as_it_likes(settings: Settings) -> None:
    """Given the embedded engine, then no rate is kept to."""
    rare = settings.model_copy(update={"rate_limit_per_s": 0.001, "rate_limit_burst": 1})
    with Client.local(settings=rare) as client:
        assert len({client.account.get().id for _ in range(5)}) == 1


def test_rates_fill_up_again_and_are_forgotten() -> None:
    """Given time, then there is one again, no more than the burst; and no name is kept for ever."""
    at = 0.0
    rates = TokenBuckets(UnitPace(per_s=2, burst=2), clock=lambda: at)
    assert [rates.acquire_delay_s("a") for _ in range(3)] == [0, 0, 0.5]
    at = 0.5
    assert [rates.acquire_delay_s("a") for _ in range(2)] == [0, 0.5]
    at = 1000.0
    assert [rates.acquire_delay_s("a") for _ in range(3)] == [0, 0, 0.5]
    for i in range(2 * MAX_BUCKETS):
        rates.acquire_delay_s(str(i))
    assert len(rates) == MAX_BUCKETS


@pytest.mark.parametrize("kind", ["runs", "workflows", "tasks"])
async def test_so_much_is_not_done_yet(open_with: Opened, kind: str) -> None:
    """Given a full queue, then more is 429, for this account alone, until something is done."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=20_000, times=None))
    wire = await open_with(faults, max_queued=1)
    body: dict[str, Any] = {
        "runs": LINE,
        "workflows": {
            "name": "w",
            "nodes": [{"id": "a", "capability": "llm.generate", "input": LINE["input"]}],
        },
        "tasks": {"objective": "A social card about tea"},
    }[kind]
    other = await wire.sign_up("bob@example.org")
    for headers in (wire.headers, other):
        await wire.send("POST", "/v1/providers/connections", json=POINTER, headers=headers)
    first = await wire.send("POST", "/v1/runs", json=LINE)
    before = await wire.rows()
    refused = await wire.send("POST", f"/v1/{kind}", json=body)
    assert get_refusal(refused) == (429, "RATE_LIMITED")
    assert int(refused.headers["retry-after"]) >= 1
    assert await wire.rows() == before
    accepted = await wire.send("POST", f"/v1/{kind}", json=body, headers=other)
    assert accepted.status_code == 202
    await wire.send("POST", f"/v1/runs/{first.json()['id']}/cancel")

    async def is_let_in() -> bool:
        return (await wire.send("POST", "/v1/runs", json=CARD)).status_code == 202

    await wait_until_async(is_let_in)


async def test_so_many_bytes_are_kept(open_with: Opened) -> None:
    """Given room for one upload, then the next is 413, and work is refused where nothing fits."""
    wire = await open_with(max_stored_bytes=20_000)

    async def upload(size: int, **options: Any) -> httpx.Response:
        files = {"file": ("a.txt", b"x" * size)}
        return await wire.send("POST", "/v1/artifacts", files=files, **options)

    large = await upload(15_000)
    assert large.status_code == 201
    before = await wire.rows()
    refused = await upload(6_000)
    assert get_refusal(refused) == (413, "PAYLOAD_TOO_LARGE")
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


def sums(wire: Wire) -> list[tuple[str, int, int]]:
    """The accounts whose sums are not what they keep."""
    with closing(sqlite3.connect(wire.engine.settings.data_dir / "state.db")) as database:
        return database.execute(build_shortfall_query("sqlite")).fetchall()


async def test_records_count(open_with: Opened) -> None:
    """Given an account without artifacts, then its records fill it, and the refusal says so."""
    wire = await open_with(max_stored_bytes=100_000)
    text = "tea " * 2_000
    agent = {"name": "reader", "objective": text}
    made = 0
    while True:
        answer = await wire.send("POST", "/v1/agents", json={**agent, "version": str(made + 1)})
        if answer.status_code != 201:
            break
        made += 1
    assert get_refusal(answer) == (413, "PAYLOAD_TOO_LARGE")
    assert 5 < made < 100_000 / len(text)
    assert "ask the operator to remove old work" in answer.json()["error"]["message"]
    assert sums(wire) == []


async def test_pruned_records_give_room_back(open_with: Opened, settings: Settings) -> None:
    """Given workflows that fill an account, when they are pruned, then there is room again."""
    wire = await open_with(max_stored_bytes=400_000)
    flow = {
        "name": "w",
        "nodes": [
            {"id": i, "capability": "llm.generate", "input": {"objective": "tea " * 4_000}}
            for i in ("a", "b", "c")
        ],
    }
    await wire.send("POST", "/v1/providers/connections", json=POINTER)
    answer = await wire.send("POST", "/v1/workflows", json=flow, headers=WAIT)
    while answer.status_code == 202:
        answer = await wire.send("POST", "/v1/workflows", json=flow, headers=WAIT)
    assert get_refusal(answer) == (413, "PAYLOAD_TOO_LARGE")
    assert sums(wire) == []
    gone = CliRunner().invoke(
        app, ["prune", "--older-than", "0h", "--data-dir", str(settings.data_dir)]
    )
    assert gone.exit_code == 0, gone.output
    assert sums(wire) == []
    again = await wire.send("POST", "/v1/workflows", json=flow)
    assert again.status_code == 202


async def test_an_account_has_so_many_jobs_under_way(open_with: Opened) -> None:
    """Given one job at once for each account, then another account's does not wait for it."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=20_000, times=None))
    wire = await open_with(faults, max_concurrent_jobs_per_account=1)
    await wire.send("POST", "/v1/providers/connections", json=POINTER)
    made = [(await wire.send("POST", "/v1/runs", json=LINE)).json()["id"] for _ in range(2)]
    other = await wire.sign_up("bob@example.org")
    theirs = await wire.send("POST", "/v1/runs", json=CARD, headers={**other, **WAIT})
    assert theirs.json()["status"] == "completed"
    states = [(await wire.send("GET", f"/v1/runs/{run}")).json()["status"] for run in made]
    assert states == ["running", "queued"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"title": "x" * 41}, "longer than 40 characters"),
        ({"title": list(range(41))}, "more than 40 items"),
        ({str(i): i for i in range(41)}, "more than 40 members"),
        ({"x" * 41: 1}, "longer than 40 characters"),
    ],
)
async def test_parts_of_a_body_have_sizes(
    open_with: Opened, given: dict[str, object], why: str
) -> None:
    """Given a text, list or object that is too large, wherever it stands, then 400 says which."""
    wire = await open_with(max_text=40, max_items=40, max_members=40)
    answer = await wire.send("POST", "/v1/runs", json={**CARD, "input": given})
    assert get_refusal(answer) == (400, "INVALID_REQUEST")
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
async def test_no_body_takes_long_to_refuse(open_with: Opened, raw: bytes) -> None:
    """Given a body made to be slow to look through, then it is refused about as soon as others.

    Sought anew from each quote, the first took 20 s, and hours where it filled a body.
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
async def test_targets_and_headers_have_sizes(
    open_with: Opened, path: str, headers: dict[str, str]
) -> None:
    """Given a target or headers that are too large, then 400 says how large they may be."""
    wire = await open_with()
    answer = await wire.send("GET", path, headers=headers)
    assert get_refusal(answer) == (400, "INVALID_REQUEST")
    assert "at most" in answer.json()["error"]["message"]
    assert answer.headers["x-request-id"]


async def test_pages_of_named_origins_may_ask(open_with: Opened) -> None:
    """Given an origin that is named, then its page may ask without cookies; no other may."""
    page, other = {"Origin": "https://board.example.org"}, {"Origin": "https://evil.example.org"}
    wire = await open_with(cors_origins=frozenset(page.values()))
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "prefer"}
    preflight = await wire.http.options("/v1/runs", headers={**page, **asked})
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == page["Origin"]
    assert preflight.headers["x-request-id"]
    for answer in (
        await wire.send("GET", "/v1/account", headers=page),
        await wire.http.get("/v1/account", headers=page),  # refused, but readable
    ):
        assert answer.headers["access-control-allow-origin"] == page["Origin"]
        assert "access-control-allow-credentials" not in answer.headers
    for answer in (
        await wire.send("GET", "/v1/account", headers=other),
        await wire.http.options("/v1/runs", headers={**other, **asked}),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_no_page_may_ask_unless_told(wire: Wire) -> None:
    """Given no origins, then no answer has anything of CORS."""
    answer = await wire.send("GET", "/v1/account", headers={"Origin": "https://board.example.org"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("origin", ["*", "https://*.example.org", "example.org", "https://x.org/"])
def test_origins_are_exact(origin: str) -> None:
    """Given what is no exact origin, then it is no setting."""
    with pytest.raises(ValueError, match="exact origin"):
        Settings(cors_origins=frozenset({origin}))


@pytest.mark.parametrize("hosts", [[], ["a.test", "b.test"]], ids=["none", "two"])
async def test_a_request_names_one_host(open_with: Opened, hosts: list[str]) -> None:
    """Given no Host or two, then 400: who takes the one, and who the other, would be fooled."""
    wire = await open_with()
    scope = build_scope(httpx.Request("GET", "http://service.test/v1/health"))
    scope["headers"] = [(b"host", host.encode()) for host in hosts]
    send = AsyncMock()
    await create_app(wire.engine)(scope, AsyncMock(), send)
    assert send.await_args_list[0].args[0]["status"] == 400
