"""Extreme values in paths, queries, headers and bodies: never a server error, never an echo."""

import json
import time
from typing import Any

import pytest

from tests.server.conftest import ON_ITS_LOOP, Wire, connect_caller
from tests.server.http.test_hostile import check, url
from tests.server.middleware.test_idempotency import FLOW, RUN, TASK, WAIT
from tests.server.route_table import ROUTES, UNKNOWN, Route, name_parameters

LONG = "x" * 5_000
DIGITS = "9" * 5_000
# The ends of the ranges of numbers, days, months and opaque texts, and values beyond them.
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
ECHO = 400  # this many equal characters in an answer are an echo of the request


@pytest.mark.parametrize("route", name_parameters(QUERIED))
@ON_ITS_LOOP
async def test_extreme_queries_are_answered_or_rejected(shared_wire: Wire, route: Route) -> None:
    """Given each query parameter at its extremes, then it is answered or rejected, not echoed."""
    parameters = route.told["parameters"]
    for name in [parameter["name"] for parameter in parameters if parameter.get("in") == "query"]:
        for value in VALUES:
            answer = await shared_wire.send(route.method, f"{url(route)}?{name}={value}")
            assert answer.status_code in (200, 400, 404), (name, value[:50], answer.text)
            if answer.status_code != 200:
                check(answer, shared_wire)
                assert "x" * ECHO not in answer.text
                assert len(answer.content) < 1_000


@ON_ITS_LOOP
async def test_extreme_days_of_usage_are_answered_or_rejected(shared_wire: Wire) -> None:
    """Given first and last days at the ends of time, then each pair is answered or rejected."""
    days = ["0001-01-01", "0001-01-30", "1970-01-01", "2026-11-20", "9999-12-01", "9999-12-31"]
    for first in days:
        for last in days:
            answer = await shared_wire.send("GET", f"/v1/usage?from={first}&to={last}")
            assert answer.status_code in (200, 400), (first, last, answer.text)


PATHS = [route.path for route in ROUTES if "{id}" in route.path and route.method == "GET"]


@pytest.mark.parametrize("path", [*PATHS, "/v1/{id}", "/{id}", "/v1/runs/a/b/{id}"])
@ON_ITS_LOOP
async def test_does_not_echo_a_long_path(shared_wire: Wire, path: str) -> None:
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
async def test_extreme_headers_cause_no_error_or_echo(shared_wire: Wire, header: str) -> None:
    """Given a header at its extremes, then the answer is no server error, and short."""
    run = json.dumps({"name": "research.gather", "input": {"topic": "Tea"}}).encode()
    for value in (LONG, DIGITS, "", "²", "-1", '=;,"', "bytes=" + DIGITS + "-", "wait=" + DIGITS):
        headers = {"Content-Type": "application/json", header: value.encode()}
        for method, path in (("POST", "/v1/runs"), ("GET", f"/v1/runs/run_{UNKNOWN}/events")):
            answer = await shared_wire.send(method, path, headers=headers, content=run)
            assert answer.status_code < 500, (value[:50], answer.text)
            text = answer.text + str(answer.headers.items())
            assert "x" * ECHO not in text
            assert "9" * ECHO not in text


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
async def test_does_not_echo_a_long_body(
    shared_wire: Wire, path: str, body: dict[str, Any]
) -> None:
    """Given thousands of characters anywhere in a body, then the error repeats only a few."""
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
async def test_applies_preferences_of_rfc_7240(shared_wire: Wire) -> None:
    """Given preferences of every form, then valid preferences are applied and confirmed."""
    run = {"name": "research.gather", "input": {"topic": "Tea"}}
    for preference, seconds in PREFERENCES.items():
        answer = await shared_wire.send(
            "POST", "/v1/runs", json=run, headers={"Prefer": preference.encode()}
        )
        assert answer.status_code == 202, (preference, answer.text)
        applied = answer.headers.get("Preference-Applied")
        assert applied == (None if seconds is None else f"wait={seconds}"), preference[:40]
    lines = [("Prefer", "respond-async"), ("Prefer", "wait=7"), *shared_wire.headers.items()]
    answer = await shared_wire.http.post("/v1/runs", json=run, headers=lines)
    assert answer.headers["Preference-Applied"] == "wait=7"


@pytest.mark.parametrize(
    "keys", [[""], ["a", "b"], ["a", ""], ["a", "a"], ["x" * 256], ["\x7f"], ["a\tb"]]
)
@ON_ITS_LOOP
async def test_rejects_an_invalid_idempotency_key(shared_wire: Wire, keys: list[str]) -> None:
    """Given an empty, invalid, long or repeated key, then nothing is created."""
    before = await shared_wire.rows()
    headers = [*shared_wire.headers.items(), *[("Idempotency-Key", key) for key in keys]]
    posts = {
        "/v1/runs": {"name": "research.gather", "input": {"topic": "Tea"}},
        "/v1/account": {"email": "eve@example.org"},
    }
    for path, body in posts.items():
        answer = await shared_wire.http.post(path, json=body, headers=headers)
        assert (answer.status_code, check(answer, shared_wire)) == (400, "INVALID_REQUEST")
        assert [detail["path"] for detail in answer.json()["error"]["details"]] == [
            "Idempotency-Key"
        ]
    assert await shared_wire.rows() == before


ENDED = [
    ("/v1/runs", RUN),
    ("/v1/runs", {"name": "research.gather", "input": {"topic": "zzzz qqqq xxyyzz"}}),
    ("/v1/runs", {"target": "agent", "name": "liner", "input": {"topic": "tea"}}),
    ("/v1/workflows", FLOW),
    ("/v1/tasks", TASK),
]


@pytest.mark.parametrize(
    ("path", "body"), ENDED, ids=["run", "failed run", "agent", "workflow", "task"]
)
async def test_answers_a_poll_after_the_end_at_once(wire: Wire, path: str, body: Any) -> None:
    """Given ended work, then no poll after its last event is held."""
    await connect_caller(wire)
    await wire.send("POST", "/v1/agents", json={"name": "liner", "objective": "A line on {topic}"})
    answer = await wire.send("POST", path, json=body, headers=WAIT)
    assert answer.is_success, answer.text
    record = answer.json()["data"]
    works = [f"{path}/{record['id']}"]
    if body is RUN:
        works.append(f"/v1/jobs/{record['job_id']}")
    for work in works:
        last = (await wire.send("GET", f"{work}/events")).json()["data"]["items"][-1]["n"]
        for after in (last, last + 1, 1_000, 2**53):
            began = time.monotonic()
            poll = await wire.send("GET", f"{work}/events?after={after}&wait=30")
            assert poll.json()["data"]["items"] == []
            assert time.monotonic() - began < 10, after


async def test_poll_ends_with_the_work(wire: Wire) -> None:
    """Given running work, when no event will match the poll, then the poll ends with the work."""
    await connect_caller(wire)
    run = f"/v1/runs/{(await wire.send('POST', '/v1/runs', json=RUN)).json()['id']}"
    began = time.monotonic()
    poll = await wire.send("GET", f"{run}/events?after=1000&wait=30")
    assert poll.json()["data"]["items"] == []
    assert time.monotonic() - began < 20
    assert (await wire.send("GET", run)).json()["status"] == "completed"
