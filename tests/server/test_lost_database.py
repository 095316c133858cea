"""Answers of a server whose database is stopped or hangs."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests._postgres import PostgresCluster
from tests.server.conftest import Wire, call_app, open_wire
from tests.support.slow_capability import load_slow_registry
from tests.support.timing import wait_until_async
from toolkit.server.app import create_app
from toolkit.settings import Settings

# More than a probe takes, and less than the driver waits for a silent server.
PROBE_S = 4.0
READY = "/v1/health?ready=true"


@pytest.fixture
async def wire(settings: Settings, own_postgres: PostgresCluster) -> AsyncIterator[Wire]:
    """A signed-up caller of an engine on a database that may fail."""
    shared = settings.model_copy(update={"database": None})
    fields = {**shared.model_dump(exclude_unset=True), "database": own_postgres.create_database()}
    async with open_wire(Settings(**fields), load_slow_registry()) as wire:
        yield wire


async def is_ready(wire: Wire) -> bool:
    """Return whether the engine accepts new work."""
    return (await wire.http.get(READY)).status_code == 200


async def test_answers_probes_while_the_database_hangs(
    wire: Wire, own_postgres: PostgresCluster
) -> None:
    """Given a database that hangs, then probes report it at once, and the server recovers."""
    assert await is_ready(wire)
    with own_postgres.hang():
        alive = await asyncio.wait_for(wire.http.get("/v1/health"), PROBE_S)
        assert (alive.status_code, alive.json()["status"]) == (200, "degraded")
        ready = await asyncio.wait_for(wire.http.get(READY), PROBE_S)
        assert (ready.status_code, ready.json()["error"]["code"]) == (503, "UNAVAILABLE")
        assert int(ready.headers["Retry-After"]) > 0
    await wait_until_async(lambda: is_ready(wire), "it is ready again")


async def test_ends_a_stream_if_the_database_is_lost(
    wire: Wire, own_postgres: PostgresCluster
) -> None:
    """Given a stream of events, when the database stops, then the stream ends in order."""
    nap = {"name": "test.nap", "target": "capability", "input": {"seconds": 60}}
    run_id = (await wire.send("POST", "/v1/runs", json=nap)).json()["id"]
    sent: list[dict[str, Any]] = []

    async def record(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = {**wire.headers, "Accept": "text/event-stream"}
    path = f"/v1/runs/{run_id}/events"
    streaming = asyncio.create_task(call_app(create_app(wire.engine), path, headers, record))
    await wait_until_async(
        lambda: any(b"run.queued" in message.get("body", b"") for message in sent)
    )
    own_postgres.stop()
    await streaming
    assert sent[0]["status"] == 200
    assert sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}
    own_postgres.start()


async def test_rejects_requests_while_the_database_is_stopped(
    wire: Wire, own_postgres: PostgresCluster
) -> None:
    """Given a stopped database, then reads and work get 503 with Retry-After, until it is back."""
    own_postgres.stop()
    body = {"name": "composition.layout", "input": {"title": "Tea"}}
    for answer in (
        await wire.send("POST", "/v1/runs", json=body),
        await wire.send("GET", "/v1/runs"),
        await wire.http.get(READY),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "UNAVAILABLE")
        assert int(answer.headers["Retry-After"]) > 0
    assert (await wire.http.get("/v1/health")).json()["status"] == "degraded"
    own_postgres.start()
    await wait_until_async(lambda: is_ready(wire), "it is ready again")
    assert (await wire.send("POST", "/v1/runs", json=body)).status_code == 202
