"""Databases that are absent, locked or lost."""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests._postgres import PostgresCluster
from tests.conftest import Server
from tests.contract.conftest import read_key, sign_up_client
from tests.server.conftest import Wire, call_app, open_wire
from tests.support.slow_capability import load_slow_registry
from tests.support.timing import PATIENCE_S, Watch, check_stays, wait_until, wait_until_async
from toolkit import Client, ErrorCode, ServiceError
from toolkit.engine.services import idempotency
from toolkit.sandbox import Fault, Faults
from toolkit.server.app import create_app
from toolkit.settings import Settings
from toolkit.store.writing import writer

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


class _Starter(logging.Handler):
    """Starts the database server at the first log line."""

    def __init__(self, cluster: PostgresCluster) -> None:
        super().__init__(logging.WARNING)
        self.starting = threading.Thread(target=cluster.start)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        if len(self.lines) == 1:
            self.starting.start()


def test_waits_for_the_database(tmp_path: Path, own_postgres: PostgresCluster) -> None:
    """Given a stopped database, when a client opens an engine, then it logs a line and waits."""
    url = own_postgres.create_database()
    own_postgres.stop()
    starter = _Starter(own_postgres)
    logging.getLogger("toolkit").addHandler(starter)
    try:
        with Client.local(tmp_path, sandbox=True, database=url) as client:
            assert client.runs.create("composition.layout", {"title": "Tea"}).wait().artifact_id
    finally:
        logging.getLogger("toolkit").removeHandler(starter)
    starter.starting.join()
    (line,) = starter.lines
    assert f"127.0.0.1:{own_postgres.port}" in line
    assert "up to 60 s" in line
    assert own_postgres.password not in line


def test_stops_waiting_after_the_configured_time(
    tmp_path: Path, own_postgres: PostgresCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a database that stays away, then the engine fails after the configured time."""
    url = own_postgres.create_database()
    own_postgres.stop()
    monkeypatch.setenv("TOOLKIT_DATABASE_WAIT_S", "0.2")
    with pytest.raises(ServiceError, match="cannot be reached") as error:
        Client.local(tmp_path, sandbox=True, database=url)
    assert error.value.code is ErrorCode.UNAVAILABLE
    own_postgres.start()


def test_fails_at_once_if_the_database_refuses(
    tmp_path: Path, postgres: PostgresCluster, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a wrong password or an unknown database, then the engine fails at once."""
    monkeypatch.setenv("TOOLKIT_DATABASE_WAIT_S", str(PATIENCE_S))
    watch = Watch()
    wrong_password = postgres_url.replace(postgres.password, "wrong-password")
    for url in (wrong_password, f"{postgres_url}_nowhere"):
        with pytest.raises(ServiceError):
            Client.local(tmp_path, sandbox=True, database=url)
    assert watch.measure_elapsed_s() < PATIENCE_S / 2


CARD = {"target": "capability", "name": "composition.layout", "input": {"title": "Tea"}}


@pytest.fixture
def lock_database(settings: Settings) -> Callable[[], AbstractContextManager[None]]:
    """Lock the database, as a backup or a shell in a transaction does."""

    @contextmanager
    def lock() -> Iterator[None]:
        with sqlite3.connect(settings.data_dir / "state.db", isolation_level=None) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")
        connection.close()

    return lock


Locked = Callable[[], AbstractContextManager[None]]


def test_lock_rejects_writes_and_serves_reads(
    server: Server, lock_database: Locked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a lock, then health and reads are answered, and work gets 503 with Retry-After."""
    for module in (writer, idempotency):
        monkeypatch.setattr(module, "REQUEST_WAIT_S", 0.3)
    with sign_up_client(server.url) as client, ThreadPoolExecutor(2) as threads:
        run = client.runs.create("composition.layout", CARD["input"]).wait()
        headers = {"Authorization": f"Bearer {read_key(client)}"}
        with lock_database(), httpx.Client(base_url=server.url, headers=headers) as http:
            bodies = ({"email": "bob@example.org"}, CARD)
            posts = [
                threads.submit(httpx.post, f"{server.url}{path}", json=body, headers=headers)
                for path, body in zip(("/v1/account", "/v1/runs"), bodies, strict=True)
            ]
            reads = 0
            while reads < 3 or not all(post.done() for post in posts):
                for path in ("/v1/health", f"/v1/runs/{run.id}", "/v1/artifacts", "/v1/usage"):
                    assert http.get(path).status_code == 200
                reads += 1
                wait(posts, timeout=0.05)  # because a reader without a pause meets the rate limit
            for post in posts:
                answer = post.result()
                assert answer.status_code == 503
                assert answer.json()["error"]["code"] == "UNAVAILABLE"
                assert int(answer.headers["retry-after"]) >= 1
        assert client.runs.create("composition.layout", CARD["input"]).wait().output
        assert len(client.runs.list()) == 2  # rejected work leaves no record


def test_lock_neither_loses_nor_repeats_running_work(
    settings: Settings, lock_database: Locked
) -> None:
    """Given a call that is answered during a lock, then its result is stored, and paid once."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=50))
    with Client.local(settings=settings, faults=faults) as client:
        run = client.runs.create("llm.generate", {"objective": "One line on tides"})
        wait_until(lambda: any(call.billed for call in faults.calls))
        with lock_database():
            # The answer usually arrives in this time; otherwise the test covers less.
            check_stays(lambda: client.health().status == "ok", 0.1)
        assert run.wait().status == "completed"
    assert sum(call.billed for call in faults.calls) == 1
