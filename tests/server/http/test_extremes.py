"""Extremes of what stands in paths, queries and headers: never a fault of ours, never an echo."""

import json
import time
from typing import Any

import httpx
import pytest

from tests.contract.conftest import read_key
from tests.server.conftest import ON_ITS_LOOP, Wire
from tests.server.http.test_hostile import check, url
from tests.server.route_table import ROUTES, UNKNOWN, Route, name_parameters
from tests.support.embedded import make_transport
from toolkit import Client
from toolkit.settings import Settings

LONG = "x" * 5_000
DIGITS = "9" * 5_000
# What numbers, days, months and opaque texts are at their ends, and beyond.
VALUES = [
    "", " ", "0", "-0", "-1", "1", "1.0", "1e9", "0x10", "+1", "٣", "²", "true", "null", "NaN",
    "Infinity", str(2**31), str(2**53), str(2**53 + 1), str(2**63 - 1), str(2**63), str(2**64),
    DIGITS, "0" * 5_000, "banana", "%00", "%0a", "%ff", "%F0%9F%9A%80", "'; DROP TABLE jobs; --",
    "0000-01", "0001-01", "1969-12", "1999-12", "2000-01", "2026-00", "2026-13", "2099-12",
    "2100-01", "9999-12", "10000-01", "2026-1", "0000-00-00", "0001-01-01", "0001-01-05",
    "1970-01-01", "2026-02-29", "2026-02-30", "9999-12-31", "10000-01-01", "2026-11-20T00:00:00Z",
    "day,day", "day," * 1_000, "AAAA", "=", "====", "cnVuXw==", LONG,
]  # fmt: skip
QUERIED = [route for route in ROUTES if "in': 'query" in str(route.told.get("parameters"))]
ECHO = 400  # so many equal characters of a caller's in a row, and an answer would be his


@pytest.mark.parametrize("route", name_parameters(QUERIED))
@ON_ITS_LOOP
async def test_no_query_is_a_fault_of_ours(shared_wire: Wire, route: Route) -> None:
    """Given each query parameter at its extremes, then it is answered or refused, and not echoed.

    Holding is left out: `wait` is tried where it cannot hold.
    """
    names = [one["name"] for one in route.told["parameters"] if one.get("in") == "query"]
    for name in names:
        for value in VALUES:
            answer = await shared_wire.send(route.method, f"{url(route)}?{name}={value}")
            assert answer.status_code in (200, 400, 404), (name, value[:50], answer.text)
            if answer.status_code != 200:
                check(answer, shared_wire)
                assert "x" * ECHO not in answer.text
                assert len(answer.content) < 1_000


@ON_ITS_LOOP
async def test_the_days_of_usage_at_their_ends(shared_wire: Wire) -> None:
    """Given first and last days at the ends of time, then each pair is answered or refused."""
    days = ["0001-01-01", "0001-01-30", "1970-01-01", "2026-11-20", "9999-12-01", "9999-12-31"]
    for first in days:
        for last in days:
            answer = await shared_wire.send("GET", f"/v1/usage?from={first}&to={last}")
            assert answer.status_code in (200, 400), (first, last, answer.text)


PATHS = [route.path for route in ROUTES if "{id}" in route.path and route.method == "GET"]


@pytest.mark.parametrize("path", [*PATHS, "/v1/{id}", "/{id}", "/v1/runs/a/b/{id}"])
@ON_ITS_LOOP
async def test_no_path_is_echoed_whole(shared_wire: Wire, path: str) -> None:
    """Given a path of thousands of characters, then 404, and the answer is short."""
    for name in (LONG, "%41" * 1_500, "%C3%BC" * 800, f"run_{UNKNOWN}{LONG}"):
        answer = await shared_wire.send("GET", path.replace("{id}", name))
        assert answer.status_code == 404, answer.text
        check(answer, shared_wire)
        assert len(answer.content) < 700, len(answer.content)


HEADERS = (
    "Authorization", "Content-Type", "Idempotency-Key", "Prefer", "Last-Event-ID", "Accept",
    "Range", "Origin", "X-Request-Id", "If-None-Match", "Accept-Language",
)  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
@ON_ITS_LOOP
async def test_no_header_is_echoed_or_a_fault_of_ours(shared_wire: Wire, header: str) -> None:
    """Given a header at its extremes, then the answer is none of our faults, and short."""
    run = json.dumps({"name": "research.gather", "input": {"topic": "Tea"}}).encode()
    for value in (LONG, DIGITS, "", "²", "-1", '=;,"', "bytes=" + DIGITS + "-", "wait=" + DIGITS):
        sent = {"Content-Type": "application/json", header: value.encode()}
        for method, path in (("POST", "/v1/runs"), ("GET", f"/v1/runs/run_{UNKNOWN}/events")):
            answer = await shared_wire.send(method, path, headers=sent, content=run)
            assert answer.status_code < 500, (value[:50], answer.text)
            told = answer.text + str(answer.headers.items())
            assert "x" * ECHO not in told
            assert "9" * ECHO not in told


BODIES: dict[str, tuple[str, Any]] = {
    "a member": ("/v1/runs", {"name": "research.gather", "input": {}, LONG: 1}),
    "a member of an input": ("/v1/runs", {"name": "research.gather", "input": {LONG: 1}}),
    "a capability": ("/v1/runs", {"name": LONG, "input": {}}),
    "a capability of so many characters": ("/v1/runs", {"name": "x" * 128, "input": {}}),
    "a version": ("/v1/runs", {"name": "llm.generate", "version": LONG, "input": {}}),
    "a target": ("/v1/runs", {"target": LONG, "name": "llm.generate", "input": {}}),
    "a choice": ("/v1/runs", {"name": "a", "input": {}, "options": {"optimize_for": LONG}}),
    "a pin": ("/v1/runs", {"name": "llm.generate", "options": {"provider": LONG}, "input": {}}),
    "an endpoint": ("/v1/runs", {"name": "image.generate", "input": {"prompt": "a"},
                                 "options": {"endpoint_id": LONG}}),
    "an artifact": ("/v1/runs", {"name": "voice.clone", "input": {"reference_audio": LONG}}),
    "a vendor": ("/v1/providers/connections", {"provider": LONG, "connection_type": "environment",
                                               "secret_ref": "A"}),
    "a pointer": ("/v1/providers/connections", {"provider": "openai", "secret_ref": LONG,
                                                "connection_type": "environment"}),
    "a type of job": ("/v1/jobs", {"type": LONG, "compute_id": LONG, "input": {}}),
    "a scope": ("/v1/account/keys", {"scopes": [LONG]}),
    "a node": ("/v1/workflows", {"name": "w", "nodes": [{"id": LONG, "capability": LONG}]}),
    "a cycle": ("/v1/workflows", {"name": "w", "nodes": [
        {"id": f"{i}{'x' * 250}", "capability": "research.gather", "input": {"topic": "Tea"},
         "depends_on": [f"{(i + 1) % 40}{'x' * 250}"]} for i in range(40)]}),
    "a constraint": ("/v1/tasks", {"objective": "Tea", "constraints": {"capabilities": [LONG]}}),
    "an agent": ("/v1/agents", {"name": LONG, "objective": "Tea"}),
    "an email": ("/v1/account", {"email": LONG}),
}  # fmt: skip


@pytest.mark.parametrize(("path", "body"), BODIES.values(), ids=BODIES)
@ON_ITS_LOOP
async def test_no_body_is_echoed_whole(shared_wire: Wire, path: str, body: dict[str, Any]) -> None:
    """Given thousands of characters anywhere in a body, then the refusal repeats a few at most."""
    answer = await shared_wire.send("POST", path, json=body)
    assert answer.status_code in (400, 404), answer.text
    check(answer, shared_wire)
    assert "x" * ECHO not in answer.text
    for detail in answer.json()["error"].get("details", ()):
        assert len(detail["path"]) <= 300
        assert len(detail["message"]) <= 1_000


PREFERENCES = {
    "wait=7": 7, "WAIT=7": 7, "wait = 7": 7, 'wait="7"': 7, "  wait=7  ": 7, "wait=0": 0,
    "wait=007": 7, "wait=60": 60, "wait=61": 60, "wait=1000000": 60, f"wait={DIGITS}": 60,
    "respond-async, wait=7": 7, "wait=7, respond-async": 7, "wait=7; foo=bar": 7,
    "wait=7, wait=9": 7, "wait=7,wait=banana": 7, 'foo="a, wait=9", wait=7': 7,
    "handling=lenient": None, "": None, "wait": None, "wait=": None, "wait=banana": None,
    "wait=-1": None, "wait=1e9": None, "wait=1.5": None, "wait=banana, wait=7": None,
    "wait=7s": None, "await=7": None, 'foo="wait=7"': None, "foo; wait=7": None,
    "wait=٣": None, ",,,": None, '"': None,
}  # fmt: skip


@ON_ITS_LOOP
async def test_what_is_preferred(shared_wire: Wire) -> None:
    """Given preferences of every form, then those of RFC 7240 are applied, and that is told."""
    run = {"name": "research.gather", "input": {"topic": "Tea"}}
    for given, seconds in PREFERENCES.items():
        answer = await shared_wire.send(
            "POST", "/v1/runs", json=run, headers={"Prefer": given.encode()}
        )
        assert answer.status_code == 202, (given, answer.text)
        applied = answer.headers.get("Preference-Applied")
        assert applied == (None if seconds is None else f"wait={seconds}"), given[:40]
    lines = [("Prefer", "respond-async"), ("Prefer", "wait=7"), *shared_wire.headers.items()]
    answer = await shared_wire.http.post("/v1/runs", json=run, headers=lines)
    assert answer.headers["Preference-Applied"] == "wait=7"


@pytest.mark.parametrize(
    "keys", [[""], ["a", "b"], ["a", ""], ["a", "a"], ["x" * 256], ["\x7f"], ["a\tb"]]
)
@ON_ITS_LOOP
async def test_a_key_that_is_none_is_refused(shared_wire: Wire, keys: list[str]) -> None:
    """Given a key that is empty, no text, too long or one of two, then nothing is made."""
    before = await shared_wire.rows()
    given = [*shared_wire.headers.items(), *[("Idempotency-Key", key) for key in keys]]
    posts = {
        "/v1/runs": {"name": "research.gather", "input": {"topic": "Tea"}},
        "/v1/account": {"email": "eve@example.org"},
    }
    for path, body in posts.items():
        answer = await shared_wire.http.post(path, json=body, headers=given)
        assert (answer.status_code, check(answer, shared_wire)) == (400, "INVALID_REQUEST")
        assert [one["path"] for one in answer.json()["error"]["details"]] == ["Idempotency-Key"]
    assert await shared_wire.rows() == before


def read_events(client: Client, path: str, **query: int) -> list[dict[str, Any]]:
    """Read a page of events, with a query that no client's own method sends."""
    headers = {"Authorization": f"Bearer {read_key(client)}"}
    transport, url = make_transport(client), client.access.base_url
    with httpx.Client(transport=transport, base_url=url, headers=headers) as http:
        page: dict[str, Any] = http.get(f"{path}/events", params=query).json()["data"]
    return list(page["items"])


def test_a_poll_past_the_end_is_answered_at_once(settings: Settings) -> None:
    """Given work of each kind that has ended, then no poll past its last event holds."""
    with Client.local(settings=settings) as client:
        ended = _create_ended_work(client)
        for path in ended:
            last = read_events(client, path)[-1]["n"]
            for after in (last, last + 1, 1_000, 2**53):
                began = time.monotonic()
                assert read_events(client, path, after=after, wait=30) == []
                assert time.monotonic() - began < 10, (path, after)


def test_a_poll_ends_with_the_work(settings: Settings) -> None:
    """Given work under way, when no event will have the number named, then its end is the end."""
    with Client.local(settings=settings) as client:
        run = client.runs.create("llm.generate", {"objective": "A line"})
        began = time.monotonic()
        assert read_events(client, f"/runs/{run.id}", after=1_000, wait=30) == []
        assert time.monotonic() - began < 20
        assert run.refresh().done


def _create_ended_work(client: Client) -> list[str]:
    """The paths of work of each kind, all of it ended."""
    run = client.runs.create("llm.generate", {"objective": "A line"}).wait(progress=False)
    failed = client.runs.create("research.gather", {"topic": "zzzz qqqq xxyyzz"})
    failed.wait(progress=False, check=False)
    body = {
        "name": "w",
        "nodes": [{"id": "a", "capability": "research.gather", "input": {"topic": "Tea"}}],
    }
    flow = client.workflows.create(body).wait(progress=False)
    task = client.tasks.create("A short text about tea").wait(progress=False)
    client.agents.create("liner", "A line about {topic}")
    acted = client.runs.create("liner", {"topic": "tea"}, target="agent").wait(progress=False)
    return [
        f"/runs/{run.id}", f"/jobs/{run.record.job_id}", f"/runs/{failed.id}",
        f"/workflows/{flow.id}", f"/tasks/{task.id}", f"/runs/{acted.id}",
    ]  # fmt: skip
