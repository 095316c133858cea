"""HEAD requests, and lists by pages."""

import asyncio
import base64
from typing import Any

import httpx
import pytest

from tests.server.conftest import (
    ON_ITS_LOOP,
    Wire,
    call_app,
    connect_caller,
    open_wire,
    serve_engine,
)
from tests.server.http.test_hostile import url
from tests.server.route_table import (
    ID_PREFIXES,
    LISTS,
    ROUTES,
    UNKNOWN,
    Route,
    create_resource,
    name_parameters,
)
from tests.support.slow_capability import build_nap_workflow, load_slow_registry
from tests.support.timing import PATIENCE_S
from toolkit.contract.ids import Prefix
from toolkit.server import create_app
from toolkit.settings import Settings

MAX_TOTAL = 2  # records that are counted in a test

DELETED = [
    route
    for route in LISTS
    if any(
        operation.method == "DELETE" and operation.path == f"{route.path}/{{id}}"
        for operation in ROUTES
    )
]


async def walk(wire: Wire, route: Route, limit: int, *, grows: bool = False) -> list[str]:
    """Return the ids of all pages; add a record to the list after each page if `grows`."""
    ids: list[str] = []
    cursor = ""
    while True:
        page = (await wire.send("GET", f"{route.path}?limit={limit}{cursor}")).json()["data"]
        assert page["count"] == len(page["items"]) <= limit
        ids += [item["id"] for item in page["items"]]
        if grows:
            await create_resource(wire, ID_PREFIXES[route.path])
        if page["next_cursor"] is None:
            return ids
        cursor = f"&cursor={page['next_cursor']}"


async def create_records(wire: Wire, route: Route, count: int) -> None:
    """Connect the caller, and create a number of records in the list of a route."""
    await connect_caller(wire)
    for _ in range(count):
        await create_resource(wire, ID_PREFIXES[route.path])


def test_every_list_has_a_prefix() -> None:
    """Given the lists with pages, then the prefix of their ids is known."""
    unknown = [route.path for route in LISTS if route.path not in ID_PREFIXES]
    assert not unknown, f"{unknown}: give its resource a prefix in toolkit/contract/operations"


@pytest.mark.parametrize("route", name_parameters(LISTS))
async def test_pages_are_stable_while_records_are_added(wire: Wire, route: Route) -> None:
    """Given a list that grows between pages, then each old record occurs once, newest first."""
    await create_records(wire, route, 5)
    old = await walk(wire, route, 200)
    assert old == sorted(old, reverse=True)
    assert len(old) >= 5
    assert await walk(wire, route, 2, grows=True) == old


@pytest.mark.parametrize("route", name_parameters(LISTS))
async def test_first_page_has_the_total(
    wire: Wire, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a list, then only its first page has the total, unless too many records match."""
    await create_records(wire, route, 3)
    count = len(await walk(wire, route, 200))

    async def read(query: str) -> tuple[int | None, str | None]:
        page = (await wire.send("GET", f"{route.path}?{query}")).json()["data"]
        return page["total"], page["next_cursor"]

    assert count >= 3
    assert (await read("limit=200"))[0] == count
    total, cursor = await read("limit=2")
    assert total == count
    assert await read("limit=2&cursor=") == (total, cursor)  # an empty cursor is the first page
    assert (await read(f"limit=2&cursor={cursor}"))[0] is None
    for module in (
        "toolkit.store.repository", "toolkit.store.list_search",
        "toolkit.engine.orchestration.runs", "toolkit.engine.services.connections",
    ):  # fmt: skip
        monkeypatch.setattr(f"{module}.MAX_TOTAL", MAX_TOTAL)
    assert (await read("limit=2"))[0] is None


@pytest.mark.parametrize("route", name_parameters(DELETED))
async def test_pages_are_stable_while_records_are_deleted(wire: Wire, route: Route) -> None:
    """Given deleted newest records, then no page loses an older record."""
    await create_records(wire, route, 6)
    ids = await walk(wire, route, 200)
    # These requests use the oldest key, which is not deleted.
    for record_id in ids[:3]:
        answer = await wire.send("DELETE", f"{route.path}/{record_id}")
        assert answer.status_code == 200, answer.text
    visible = set(await walk(wire, route, 200))
    expected = [record_id for record_id in ids if record_id in visible]
    assert expected[-3:] == ids[-3:]
    for limit in (1, 2, 3):
        assert await walk(wire, route, limit) == expected


@pytest.mark.parametrize("route", name_parameters(LISTS))
@ON_ITS_LOOP
async def test_rejects_an_invalid_limit_or_cursor(shared_wire: Wire, route: Route) -> None:
    """Given limits out of bounds and invalid or foreign cursors, then 400 names the parameter."""
    limits = ["0", "201", "-1", "1.0", "1e2", "", "ten", "٣", "+1", " 1", "9" * 400]
    other_prefix = next(kind for kind in Prefix if kind is not ID_PREFIXES[route.path])
    own_id = f"{ID_PREFIXES[route.path]}_{UNKNOWN}"
    texts = [
        f"{other_prefix}_{UNKNOWN}",
        own_id.upper(),
        own_id[:-1],
        own_id + "0",
        "' OR 1=1",
        "\x00",
    ]
    cursors = [base64.urlsafe_b64encode(text.encode()).decode() for text in texts]
    cursors += ["x", "é", "====", own_id, "a" * 4000]
    pairs = [("limit", value) for value in limits] + [("cursor", value) for value in cursors]
    for name, value in pairs:
        answer = await shared_wire.send("GET", route.path, params={name: value})
        assert answer.status_code == 400, (name, value, answer.text)
        assert answer.json()["error"]["details"][0]["path"] == name
    for value in ("1", "200"):
        answer = await shared_wire.send("GET", route.path, params={"limit": value})
        assert answer.status_code == 200
    unused_cursor = base64.urlsafe_b64encode(own_id.encode()).decode()
    assert (
        await shared_wire.send("GET", f"{route.path}?cursor={unused_cursor}")
    ).status_code == 200


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
