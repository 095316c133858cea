"""Batches of the sandbox: their times, their place in the log, and faults of single items."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from tests.sandbox.conftest import client_for
from toolkit.sandbox import SANDBOX_KEYS, Fault, Faults, create_app
from toolkit.sandbox.batches import BATCH_S

BATCHES = "/anthropic/v1/messages/batches"
HEADERS = {"anthropic-version": "2023-06-01"}


class SetClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now_s


@pytest.fixture
def faults() -> Faults:
    """The faults and the log of the cloud."""
    return Faults()


@pytest.fixture
def clock() -> SetClock:
    """The clock of the cloud."""
    return SetClock()


@pytest.fixture
def app(faults: Faults, clock: SetClock) -> Starlette:
    """The cloud."""
    app = create_app(faults=faults)
    app.state.sandbox.clock = clock
    return app


@pytest.fixture
def client(app: Starlette) -> httpx.AsyncClient:
    """A client of Anthropic."""
    client = client_for(app, "ANTHROPIC_API_KEY")
    client.headers.update(HEADERS)
    return client


async def create_batch(client: httpx.AsyncClient, count: int) -> str:
    """Create a batch, and return its id."""
    message = {"role": "user", "content": "One line about tea"}
    params = {"model": "claude-haiku-5-5", "max_tokens": 20, "messages": [message]}
    requests = [{"custom_id": f"row_{n}", "params": params} for n in range(count)]
    answer = await client.post(BATCHES, json={"requests": requests})
    assert answer.status_code == 200, answer.text
    id: str = answer.json()["id"]
    return id


async def look_at(client: httpx.AsyncClient, id: str) -> Any:
    """Return the batch."""
    return (await client.get(f"{BATCHES}/{id}")).json()


async def test_batch_ends_after_its_duration(
    client: httpx.AsyncClient, clock: SetClock, faults: Faults
) -> None:
    """Given a batch, then half of its items are billed halfway, and all when it ends."""
    id = await create_batch(client, 4)
    for share, billed in ((0.0, 0), (0.5, 2), (0.99, 3), (1.0, 4), (3.0, 4)):
        clock.now_s = share * BATCH_S
        batch = await look_at(client, id)
        assert (batch["processing_status"] == "ended") == (share >= 1)
        assert sum(call.billed for call in faults.calls if call.batch_id == id) == billed


async def test_cancelled_batch_keeps_the_answers_it_has(
    client: httpx.AsyncClient, clock: SetClock, faults: Faults
) -> None:
    """Given a batch that is cancelled halfway, then only half of it is answered, even later."""
    id = await create_batch(client, 4)
    clock.now_s = BATCH_S / 2
    await client.post(f"{BATCHES}/{id}/cancel")
    assert (await look_at(client, id))["processing_status"] == "canceling"
    clock.now_s = 9 * BATCH_S
    batch = await look_at(client, id)
    assert batch["processing_status"] == "ended"
    assert batch["request_counts"]["succeeded"] == batch["request_counts"]["canceled"] == 2
    assert sum(call.billed for call in faults.calls) == 2


async def test_each_item_is_answered_once(
    client: httpx.AsyncClient, clock: SetClock, faults: Faults
) -> None:
    """Given many polls at once, then each item is answered once."""
    id = await create_batch(client, 30)
    clock.now_s = BATCH_S
    await asyncio.gather(*(look_at(client, id) for _ in range(5)))
    items = [call.custom_id for call in faults.calls if call.billed]
    assert sorted(items) == sorted(f"row_{n}" for n in range(30))


async def test_times_of_batches_are_set_by_faults(
    client: httpx.AsyncClient, clock: SetClock, faults: Faults
) -> None:
    """Given a duration and an expiry, then a batch expires with the items that it has answered."""
    faults.batch_time("anthropic", lasts_s=100, expires_s=25)
    id = await create_batch(client, 4)
    clock.now_s = 24
    assert (await look_at(client, id))["processing_status"] == "in_progress"
    clock.now_s = 25
    counts = (await look_at(client, id))["request_counts"]
    assert (counts["succeeded"], counts["expired"]) == (1, 3)


async def test_faults_of_items_and_of_clients_are_apart(
    client: httpx.AsyncClient, clock: SetClock, faults: Faults
) -> None:
    """Given a fault without a custom id, then it affects clients only; with one, items only."""
    faults.fail("anthropic", status=529, custom_id_contains="", times=2)
    id = await create_batch(client, 4)
    clock.now_s = BATCH_S
    counts = (await look_at(client, id))["request_counts"]
    assert (counts["succeeded"], counts["errored"]) == (2, 2)
    id = await create_batch(client, 1)
    clock.now_s = 2 * BATCH_S
    faults.fail("anthropic", status=529, path_contains="/v1/messages", times=1)
    assert (await client.get(f"{BATCHES}/{id}")).status_code == 529
    assert (await look_at(client, id))["request_counts"]["succeeded"] == 1


async def test_limits_the_number_of_requests(
    app: Starlette, client: httpx.AsyncClient, clock: SetClock
) -> None:
    """Given a request more than the vendor accepts, then the batch is refused or fails."""
    requests = [{"custom_id": f"row_{n}", "params": {}} for n in range(100_001)]
    assert (await client.post(BATCHES, json={"requests": requests})).status_code == 400
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {}}
    async with client_for(app, "OPENAI_API_KEY") as openai:
        data = b"\n".join([json.dumps(line).encode()] * 50_001)
        form: Any = {"files": {"file": ("a.jsonl", data)}, "data": {"purpose": "batch"}}
        file_id = (await openai.post("/openai/v1/files", **form)).json()["id"]
        body = {"endpoint": line["url"], "completion_window": "24h", "input_file_id": file_id}
        id = (await openai.post("/openai/v1/batches", json=body)).json()["id"]
        clock.now_s = BATCH_S
        batch = (await openai.get(f"/openai/v1/batches/{id}")).json()
    assert batch["status"] == "failed"
    assert "too_many_tasks" in [error["code"] for error in batch["errors"]["data"]]


async def test_limits_the_size_of_a_batch(app: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given more bytes than the vendor accepts, then the batch or its file is refused."""
    wires = "toolkit.sandbox.wires"
    for module in ("openai_batches", "anthropic_batches", "google_batches"):
        monkeypatch.setattr(f"{wires}.{module}.MAX_BYTES", 10)
    async with client_for(app, "ANTHROPIC_API_KEY") as client:
        answer = await client.post(BATCHES, json={"requests": []}, headers=HEADERS)
        assert answer.status_code == 413
    async with client_for(app, "OPENAI_API_KEY") as client:
        form: Any = {"files": {"file": ("a.jsonl", b"{}" * 6)}, "data": {"purpose": "batch"}}
        assert (await client.post("/openai/v1/files", **form)).status_code == 413
    async with client_for(app, "GEMINI_API_KEY") as client:
        path = "/google/v1beta/models/gemini-3.8-flash:batchGenerateContent"
        headers = {"x-goog-api-key": SANDBOX_KEYS["GEMINI_API_KEY"]}
        answer = await client.post(path, json={"batch": {}}, headers=headers)
        assert "limit" in answer.json()["error"]["message"]


def test_items_have_no_connection_to_damage() -> None:
    """Given damage to a connection for items, then the fault is refused."""
    with pytest.raises(ValueError, match="an item of a batch has none"):
        Fault("openai", custom_id_contains="", mangle="drop")
