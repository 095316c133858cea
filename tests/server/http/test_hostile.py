"""Hostile and slow callers.

Each answer outside 2xx has the error envelope, without internal details. Slow callers are
disconnected, while others are served.
"""

import asyncio
import json
import re
import socket
from typing import Any

import httpx
import pytest

from tests.conftest import Server
from tests.server.conftest import ON_ITS_LOOP, Wire, serve_engine
from tests.server.route_table import (
    DOCUMENT,
    ROUTES,
    UNKNOWN,
    Route,
    build_post_body,
    name_parameters,
)
from tests.support.timing import PATIENCE_S, Watch
from toolkit.contract.errors import ErrorCode
from toolkit.contract.ids import Prefix, is_id
from toolkit.settings import Settings

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")

TAKING_JSON = [
    route
    for route in ROUTES
    if "application/json" in route.told.get("requestBody", {}).get("content", {})
]

# Fields that only the service sets; no request body has them.
OURS: dict[str, object] = {
    "id": f"run_{UNKNOWN}",
    "account_id": f"acc_{UNKNOWN}",
    "owner": "eve",
    "role": "admin",
    "status": "completed",
    "cost_usd": 0.0,
    "created_at": "2020-01-01T00:00:00.000Z",
    "__proto__": {},
}

DEEP = 100_000

BYTES = {
    "no JSON": b"{",
    "empty": b"",
    "a list": b"[]",
    "a string": b'"x"',
    "NaN": b'{"target": NaN}',
    "infinity": b'{"options": {"max_cost_usd": Infinity}}',
    "1e999": b'{"options": {"max_cost_usd": 1e999}}',
    "5000 digits": b'{"version": ' + b"9" * 5000 + b"}",
    "invalid UTF-8": b'{"name": "\xff\xfe"}',
    "a lone surrogate": b'{"name": "\\ud800"}',
    "a NUL": b'{"name": "a\\u0000b"}',
    "a member twice": b'{"name": "a", "name": "b"}',
    "10,000 nested brackets": b"[" * 10_000 + b"]" * 10_000,
    "10,000 nested objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "unclosed brackets": b'{"input": ' + b"[" * 10_000,
    "5000 digits in a member": b'{"name": 1' + b"0" * 5000 + b"}",
    "100,000 nested lists": b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "a half-open surrogate": b'{"\\udfff": 1}',
    "-Infinity": b'{"x": -Infinity}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
}


def check(answer: httpx.Response, wire: Wire | None = None) -> str:
    """Check that an answer has the form of every error, and return its code."""
    assert answer.headers["content-type"] == "application/json", answer.text
    body = answer.json()
    assert set(body) == {"error"}
    error = body["error"]
    assert set(error) <= {"code", "message", "details", "request_id"}
    assert ErrorCode[error["code"]].http_status is not None
    assert error["message"].endswith(".")
    assert error["request_id"] == answer.headers["x-request-id"]
    assert is_id(error["request_id"], Prefix.REQUEST)
    details = ["Traceback", 'File "', "site-packages", "toolkit/", ".py", "sqlite", "pydantic"]
    details += [str(wire.engine.settings.data_dir)] if wire else []
    assert not [word for word in details if word in answer.text]
    return str(error["code"])


def url(route: Route) -> str:
    """Return the path of a route, with an unknown id."""
    return route.at(f"{route.prefix}_{UNKNOWN}" if route.prefix else "no.such")


@pytest.mark.parametrize("path", DOCUMENT["paths"])
@ON_ITS_LOOP
async def test_rejects_other_methods(shared_wire: Wire, path: str) -> None:
    """Given a path, then each other method gets 405, and Allow names the methods of the path."""
    offered = {method.upper() for method in DOCUMENT["paths"][path]}
    offered |= {"HEAD"} if "GET" in offered else set()
    for method in set(METHODS) - offered:
        answer = await shared_wire.send(method, path.replace("{id}", "x"))
        assert answer.status_code == 405
        assert set(answer.headers["allow"].split(", ")) == offered
        if method != "HEAD":  # an answer to HEAD has no body
            assert check(answer, shared_wire) == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize("path", DOCUMENT["paths"])
@ON_ITS_LOOP
async def test_rejects_similar_paths(shared_wire: Wire, path: str) -> None:
    """Given a path that resembles a route, then 404: nothing is guessed or redirected."""
    near = path.replace("{id}", "x")
    paths = [f"{near}/", f"/{near}", f"{near}/x/y/z", near.upper(), f"/v2{near[3:]}", f"{near}%2f"]
    paths += [f"{near}%00/x/y", f"{near};x/y/z", near.replace("/", "%2F"), f"/v1/%2e%2e{near}/x/y"]
    for similar in paths:
        answer = await shared_wire.send("GET", similar)
        assert answer.status_code in (404, 405), (similar, answer.text)
        check(answer, shared_wire)


@pytest.mark.parametrize("route", name_parameters(TAKING_JSON))
@ON_ITS_LOOP
async def test_rejects_invalid_json(shared_wire: Wire, route: Route) -> None:
    """Given bytes that parsers reject or misread, then 400 for each body."""
    before = await shared_wire.rows()
    headers = {"Content-Type": "application/json"}
    is_optional = not route.told["requestBody"].get("required")
    for name, raw in BYTES.items():
        if name == "empty" and is_optional:
            continue
        answer = await shared_wire.send("POST", url(route), content=raw, headers=headers)
        assert answer.status_code == 400, (name, answer.text)
        assert check(answer, shared_wire) == "INVALID_REQUEST"
    assert await shared_wire.rows() == before


@pytest.mark.parametrize("route", name_parameters(TAKING_JSON))
@ON_ITS_LOOP
async def test_rejects_other_content_types(shared_wire: Wire, route: Route) -> None:
    """Given a valid body of another type, then 415, with or without an Idempotency-Key."""
    content = json.dumps(build_post_body(route.path)).encode()
    for kind in ("text/plain", "application/xml", "", "application/json-patch+json", "\xff", "a;b"):
        for key_headers in ({}, {"Idempotency-Key": "once"}):
            headers = {"Content-Type": kind.encode("latin-1"), **key_headers}
            answer = await shared_wire.send("POST", url(route), content=content, headers=headers)
            assert answer.status_code == 415, answer.text
            assert check(answer, shared_wire) == "UNSUPPORTED_MEDIA_TYPE"


@pytest.mark.parametrize("route", name_parameters(TAKING_JSON))
@ON_ITS_LOOP
async def test_rejects_fields_that_only_the_service_sets(shared_wire: Wire, route: Route) -> None:
    """Given a body with an owner, state, cost or id, then 400, and nothing is created."""
    before = await shared_wire.rows()
    for name, value in OURS.items():
        body = {**(build_post_body(route.path) or {}), name: value}
        answer = await shared_wire.send("POST", url(route), json=body)
        assert answer.status_code == 400, (name, answer.text)
        assert name in [detail["path"] for detail in answer.json()["error"]["details"]]
        check(answer, shared_wire)
    assert await shared_wire.rows() == before


@pytest.mark.parametrize("route", name_parameters(ROUTES))
@ON_ITS_LOOP
async def test_rejects_unknown_query_parameters(shared_wire: Wire, route: Route) -> None:
    """Given a query that a path does not accept, then 400, and a long name is cut."""
    body: dict[str, Any] = {"json": build_post_body(route.path)} if route in TAKING_JSON else {}
    for query in ("colour=red", "limit=1&limit=1", "%00=1", "%ff", "[]=x", "a" * 3000 + "=1"):
        answer = await shared_wire.send(route.method, f"{url(route)}?{query}", **body)
        assert answer.status_code == 400, (query, answer.text)
        assert check(answer, shared_wire) == "INVALID_REQUEST"
        assert len(answer.content) < 1000


LINES = {
    "no such version": b"GET /v1/health HTTP/9.9\r\nHost: x\r\n\r\n",
    "no method": b" /v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "spaces in the path": b"GET /v1/run s HTTP/1.1\r\nHost: x\r\n\r\n",
    "control characters": b"GET /v1/\x01\x02 HTTP/1.1\r\nHost: x\r\n\r\n",
    "no name of a header": b"GET /v1/health HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n",
    "a length that is none": b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    "two lengths": b"POST /v1/runs HTTP/1.1\r\nHost: x\r\n"
    b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "bytes": bytes(range(256)) + b"\r\n\r\n",
    "an absolute path": b"GET http://elsewhere.test/v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n",
    "a path that is none": b"GET v1/runs HTTP/1.1\r\nHost: x\r\n\r\n",
    "bytes above ASCII": b"GET /v1/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    "a percent sign alone": b"GET /v1/% HTTP/1.1\r\nHost: x\r\n\r\n",
    "half an encoding": b"GET /v1/runs/%f HTTP/1.1\r\nHost: x\r\n\r\n",
    "60,000 bytes of path": b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "60,000 bytes of query": b"GET /v1/health?" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "a star": b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tunnel": b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
}


def test_rejects_invalid_http(server: Server) -> None:
    """Given invalid HTTP, then an error, and other requests are served."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    for name, raw in LINES.items():
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as line:
            line.sendall(raw)
            answer = b""
            while not _is_complete(answer) and (part := line.recv(65536)):
                answer += part
        head, _, body = answer.partition(b"\r\n\r\n")
        status = head.split(b" ")[1] if head else b""
        assert status[:1] == b"4", (name, answer[:200])
        assert b"Traceback" not in body
        assert b".py" not in body
        assert json.loads(body)["error"]["code"] in ErrorCode.__members__, (name, body)
        assert httpx.get(f"{server.url}/v1/health").status_code == 200


def _is_complete(answer: bytes) -> bool:
    """Return whether an answer has all bytes of its content-length."""
    head, _, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.I)
    return length is not None and len(body) >= int(length.group(1))


HEAD = (
    b"POST /v1/account HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000000\r\n\r\n"
)


async def dribble_request(http: httpx.AsyncClient, head: bytes, part: bytes) -> tuple[bytes, float]:
    """Send a request part by part until the server closes; return the answer and the seconds."""
    address = http.base_url
    reader, writer = await asyncio.open_connection(address.host, address.port)
    watch = Watch()
    writer.write(head)

    async def dribble() -> None:
        while True:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02)

    dribbling = asyncio.create_task(dribble())
    answer = b""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while data := await reader.read(65536):
                answer += data
    except ConnectionError:
        pass  # cut while it was still sending
    finally:
        dribbling.cancel()
        await asyncio.gather(dribbling, return_exceptions=True)
        writer.close()
    return answer, watch.measure_elapsed_s()


async def test_disconnects_a_slow_body(settings: Settings) -> None:
    """Given a body that arrives byte by byte, then 400 after the timeout."""
    quick = settings.model_copy(update={"body_timeout_s": 0.3})
    async with serve_engine(quick) as http:
        (answer, seconds), health = await asyncio.gather(
            dribble_request(http, HEAD, b" "), http.get("/v1/health")
        )
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"did not arrive in time" in answer
    assert seconds < 4
    assert health.status_code == 200


async def test_disconnects_a_slow_head(settings: Settings) -> None:
    """Given a head that does not end, then the connection ends, also after an earlier request.

    A request that takes longer than that timeout to be answered is not affected.
    """
    quick = settings.model_copy(update={"head_timeout_s": 0.3})
    request = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
    async with serve_engine(quick) as http:
        for earlier in (b"", request):
            answer, seconds = await dribble_request(
                http, earlier + b"GET /v1/health HTTP/1.1\r\n", b"x: 1\r\n"
            )
            assert answer.count(b"HTTP/1.1 200") == bool(earlier)
            assert seconds < 4
        account = await http.post("/v1/account", json={"email": "ada@example.org"})
        headers = {"Authorization": f"Bearer {account.json()['data']['api_key']}"}
        card = {"name": "composition.layout", "target": "capability", "input": {"title": "Tea"}}
        run = (await http.post("/v1/runs", json=card, headers=headers)).json()["id"]
        events = await http.get(f"/v1/runs/{run}/events?after=99&wait=1", headers=headers)
    assert events.status_code == 200


async def test_disconnects_an_endless_head(settings: Settings) -> None:
    """Given headers that never end, then the connection ends; many requests are served."""
    async with serve_engine(settings.model_copy(update={"head_timeout_s": 60.0})) as http:
        request_line = b"GET /v1/health HTTP/1.1\r\n"
        answer, seconds = await dribble_request(
            http, request_line, b"x-long: " + b"1" * 60_000 + b"\r\n"
        )
        assert b" 200 " not in answer
        assert seconds < 4
        long = {"x-long": "1" * 20_000}
        async with httpx.AsyncClient(base_url=http.base_url, trust_env=False) as client:
            for _ in range(30):  # more bytes in total than one head may have
                assert (await client.get("/v1/health", headers=long)).status_code == 200
