"""HEAD on every route that answers GET: the same status and headers, and no body."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.server.conftest import ON_ITS_LOOP, Wire, call_app, open_wire, serve_engine
from tests.server.http.test_hostile import url
from tests.server.route_table import ROUTES, Route, name_parameters
from tests.support.slow_capability import build_nap_workflow, load_slow_registry
from tests.support.timing import PATIENCE_S
from toolkit.server import create_app
from toolkit.settings import Settings

READS = [route for route in ROUTES if route.method == "GET"]
OWN = ("x-request-id", "date")
ARTIFACT = b"leaves" * 200_000  # several pieces of a download


def select_headers(answer: httpx.Response) -> dict[str, str]:
    """Return the headers of an answer that do not differ by request."""
    return {name: value for name, value in answer.headers.items() if name not in OWN}


async def compare(wire: Wire, path: str, **headers: str) -> httpx.Response:
    """Check that HEAD answers like GET, and return the answer to GET."""
    read = await wire.send("GET", path, headers=headers)
    head = await wire.send("HEAD", path, headers=headers)
    assert head.status_code == read.status_code
    assert select_headers(head) == select_headers(read)
    assert head.content == b""
    return read


@pytest.mark.parametrize("route", name_parameters(READS))
@ON_ITS_LOOP
async def test_head_answers_like_get(shared_wire: Wire, route: Route) -> None:
    """Given a route that answers GET, when HEAD is sent, then only the body is missing."""
    await compare(shared_wire, url(route))
    await compare(shared_wire, f"{url(route)}?colour=red")
    await compare(Wire(shared_wire.http, shared_wire.engine), url(route))


async def test_head_of_an_artifact_has_its_size(wire: Wire) -> None:
    """Given an artifact of several pieces, then HEAD reports its size, whole or of a range."""
    file = {"file": ("leaves.bin", ARTIFACT, "application/octet-stream")}
    artifact = (await wire.send("POST", "/v1/artifacts", files=file)).json()["data"]
    await compare(wire, f"/v1/artifacts/{artifact['id']}")
    at = f"/v1/artifacts/{artifact['id']}/content"
    answer = await compare(wire, at)
    assert answer.headers["content-length"] == str(len(ARTIFACT))
    part = await compare(wire, at, Range="bytes=0-4")
    assert (part.status_code, part.headers["content-length"]) == (206, "5")
    beyond = await compare(wire, at, Range=f"bytes={len(ARTIFACT)}-")
    assert beyond.status_code == 416


async def test_head_of_a_stream_ends(settings: Settings) -> None:
    """Given a running workflow, when HEAD asks for its stream, then the answer ends at once."""
    sent: list[dict[str, Any]] = []

    async def record(message: dict[str, Any]) -> None:  # httpx's transport reads no body of HEAD
        sent.append(message)

    async with open_wire(settings, load_slow_registry()) as wire:
        body = build_nap_workflow(2, 60).to_dict()
        workflow = await wire.send("POST", "/v1/workflows", json=body)
        events = f"/v1/workflows/{workflow.json()['data']['id']}/events"
        app, headers = create_app(wire.engine), {**wire.headers, "Accept": "text/event-stream"}
        async with asyncio.timeout(PATIENCE_S / 2):
            for path in (events, "/v1/workflows", "/openapi.json", "/v1/none"):
                await call_app(app, path, headers, record, "HEAD")
    stream = dict(sent[0]["headers"])
    assert stream[b"content-type"].startswith(b"text/event-stream")
    assert b"content-length" not in stream
    assert not any(message.get("body") for message in sent)


async def test_connection_is_reused_after_head(settings: Settings) -> None:
    """Given a server, when HEAD and GET alternate on a connection, then no body is in between."""
    async with serve_engine(settings) as http:
        for path in ("/v1/health", "/openapi.json", "/v1/capabilities", "/v1/none"):
            head, read = await http.head(path), await http.get(path)
            assert head.status_code == read.status_code
            assert head.headers["content-length"] == read.headers["content-length"]
            assert read.json()
