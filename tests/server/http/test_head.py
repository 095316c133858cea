"""HEAD on every route that answers GET: the same status and headers, and no body."""

import asyncio

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.server.conftest import Wire, serve_engine
from tests.server.http.test_hostile import url
from tests.server.route_table import ROUTES, Route, name_parameters
from tests.support.slow_capability import build_nap_workflow, load_slow_registry
from tests.support.timing import PATIENCE_S
from toolkit.local import open_engine
from toolkit.server import create_app
from toolkit.settings import Settings

READS = [route for route in ROUTES if route.method == "GET"]
OWN = ("x-request-id", "date")
STREAM = {"Accept": "text/event-stream"}
ARTIFACT = b"leaves" * 200_000  # several pieces of a download


def shown_headers(answer: httpx.Response) -> dict[str, str]:
    """The headers of an answer, without those that differ by request."""
    return {name: value for name, value in answer.headers.items() if name not in OWN}


async def compare(wire: Wire, path: str, **headers: str) -> httpx.Response:
    """Hold what HEAD answers to what GET answers, which is returned."""
    read = await wire.send("GET", path, headers=headers)
    head = await wire.send("HEAD", path, headers=headers)
    assert head.status_code == read.status_code
    assert shown_headers(head) == shown_headers(read)
    assert head.content == b""
    return read


@pytest.mark.parametrize("route", name_parameters(READS))
async def test_head_answers_like_get(wire: Wire, route: Route) -> None:
    """Given a route that answers GET, when HEAD is sent, then only the body is missing."""
    await compare(wire, url(route))
    await compare(wire, f"{url(route)}?colour=red")
    wire.headers = {}
    await compare(wire, url(route))


async def test_head_of_a_record_and_its_bytes(wire: Wire) -> None:
    """Given an artifact of several pieces, then HEAD tells its size, whole and of a range."""
    file = {"file": ("leaves.bin", ARTIFACT, "application/octet-stream")}
    stored = (await wire.send("POST", "/v1/artifacts", files=file)).json()["data"]
    await compare(wire, f"/v1/artifacts/{stored['id']}")
    at = f"/v1/artifacts/{stored['id']}/content"
    whole = await compare(wire, at)
    assert whole.headers["content-length"] == str(len(ARTIFACT))
    part = await compare(wire, at, Range="bytes=0-4")
    assert (part.status_code, part.headers["content-length"]) == (206, "5")
    beyond = await compare(wire, at, Range=f"bytes={len(ARTIFACT)}-")
    assert beyond.status_code == 416


class _SentOnly:
    """An app that keeps what another sends: the transport of httpx reads no body of HEAD."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def keep(message: Message) -> None:
            self.bodies.append(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, keep)


async def test_head_of_a_stream_ends(settings: Settings) -> None:
    """Given a workflow that runs, when HEAD asks for its stream, then the answer ends at once."""
    engine = await open_engine(settings, registry=load_slow_registry())
    app = _SentOnly(create_app(engine))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://service.test") as http:
        wire = Wire(http, engine)
        wire.headers = await wire.sign_up("ada@example.org")
        body = build_nap_workflow(2, 60).to_dict()
        made = await wire.send("POST", "/v1/workflows", json=body)
        at = f"/v1/workflows/{made.json()['data']['id']}"
        app.bodies.clear()
        async with asyncio.timeout(PATIENCE_S / 2):
            head = await wire.send("HEAD", f"{at}/events", headers=STREAM)
        assert head.headers["content-type"].startswith("text/event-stream")
        assert "content-length" not in head.headers
        await wire.send("HEAD", "/v1/workflows")
        await wire.send("HEAD", "/openapi.json")
        await wire.send("HEAD", "/v1/none")
        assert not any(app.bodies)
        await wire.send("POST", f"{at}/cancel")
    await engine.close(0)


async def test_a_connection_is_used_again_after_head(settings: Settings) -> None:
    """Given a server, when HEAD and GET are sent in turn, then no byte of a body is in between."""
    async with serve_engine(settings) as http:
        for path in ("/v1/health", "/openapi.json", "/v1/capabilities", "/v1/none"):
            head, read = await http.head(path), await http.get(path)
            assert head.status_code == read.status_code
            assert head.headers["content-length"] == read.headers["content-length"]
            assert read.json()
