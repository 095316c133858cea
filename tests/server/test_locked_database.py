"""A database that another connection keeps locked: read on, refused in good time, nothing lost."""

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
    """Keeps the database locked, as a backup or a shell in mid-transaction does."""

    @contextmanager
    def lock() -> Iterator[None]:
        with sqlite3.connect(settings.data_dir / "state.db", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")
        other.close()

    return lock


Locked = Callable[[], AbstractContextManager[None]]


def test_reading_goes_on_and_writing_is_refused_in_good_time(
    server: Server, lock_database: Locked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a lock, then health and reads are answered, and work is 503 with Retry-After."""
    for module in (writer, idempotency):
        monkeypatch.setattr(module, "REQUEST_WAIT_S", 0.3)
    with sign_up_client(server.url) as client, ThreadPoolExecutor(2) as threads:
        done = client.runs.create("composition.layout", CARD["input"]).wait()
        headers = {"Authorization": f"Bearer {read_key(client)}"}
        with lock_database(), httpx.Client(base_url=server.url, headers=headers) as http:
            bodies = ({"email": "bob@example.org"}, CARD)
            posts = [
                threads.submit(httpx.post, f"{server.url}{path}", json=body, headers=headers)
                for path, body in zip(("/v1/account", "/v1/runs"), bodies, strict=True)
            ]
            reads = 0
            while reads < 3 or not all(post.done() for post in posts):
                for path in ("/v1/health", f"/v1/runs/{done.id}", "/v1/artifacts", "/v1/usage"):
                    assert http.get(path).status_code == 200
                reads += 1
                wait(posts, timeout=0.05)  # a reader without a pause meets the rate limit first
            for post in posts:
                answer = post.result()
                assert answer.status_code == 503
                assert answer.json()["error"]["code"] == "UNAVAILABLE"
                assert int(answer.headers["retry-after"]) >= 1
        assert client.runs.create("composition.layout", CARD["input"]).wait().output
        assert len(client.runs.list()) == 2  # nothing is left of what was refused


def test_work_under_way_is_neither_lost_nor_paid_twice(
    settings: Settings, lock_database: Locked
) -> None:
    """Given a call that is answered while the database is locked, then its result is kept."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=50))
    with Client.local(settings=settings, faults=faults) as client:
        run = client.runs.create("llm.generate", {"objective": "One line on tides"})
        wait_until(lambda: any(call.billed for call in faults.calls))
        with lock_database():
            # The answer comes meanwhile; if it does not, less is tried.
            check_stays(lambda: client.health().status == "ok", 0.1)
        assert run.wait().status == "completed"
    assert sum(call.billed for call in faults.calls) == 1
