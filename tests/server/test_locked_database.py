"""A database that another connection locks: reads go on, writes are rejected, nothing is lost."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager

import httpx
import pytest

from tests.conftest import Server
from tests.contract.conftest import read_key, sign_up_client
from tests.support.timing import check_stays, wait_until
from toolkit import Client
from toolkit.engine.services import idempotency
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings
from toolkit.store.writing import writer

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
