"""Overload, and fair turns of CPU work."""

import asyncio
import math
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.server.conftest import POINTER, call_app
from tests.support.served_process import open_account, serve_process
from toolkit import Client
from toolkit.client import Run
from toolkit.contract.account import AccountCreate
from toolkit.engine import Engine
from toolkit.local import open_engine
from toolkit.sandbox import Fault, Faults
from toolkit.server import create_app
from toolkit.settings import Settings

Answer = tuple[int, dict[bytes, bytes], float]

BURST, BURSTS, PLACES = 300, 3, 16

LINE = {"target": "capability", "name": "llm.generate", "input": {"objective": "One line on tea"}}


class Service:
    """A server over an engine with a slow vendor, so that accepted work does not end."""

    def __init__(self, engine: Engine) -> None:
        self._app = create_app(engine)
        self._engine = engine

    async def sign_up(self, email: str) -> str:
        """Create an account with a connection, and return its key."""
        account = await self._engine.accounts.sign_up(AccountCreate(email=email), "")
        await self.post(account.api_key, "/v1/providers/connections", POINTER)
        return account.api_key

    async def post(self, key: str, path: str, body: dict[str, Any]) -> Answer:
        """Return the status and headers of an answer, and its seconds."""
        sent: list[dict[str, Any]] = []

        async def record(message: dict[str, Any]) -> None:
            sent.append(message)

        headers = {"authorization": f"Bearer {key}"}
        began = time.perf_counter()
        await call_app(self._app, path, headers, record, "POST", json=body)
        return sent[0]["status"], dict(sent[0]["headers"]), time.perf_counter() - began

    async def burst(self, key: str) -> list[Answer]:
        """Send a burst of requests for work at once."""
        return await asyncio.gather(*(self.post(key, "/v1/runs", LINE) for _ in range(BURST)))


async def open_service(settings: Settings, places: int) -> tuple[Engine, Service]:
    """Open a service with a number of places."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=20_000, times=None))
    update = {
        "max_admitting": places, "rate_limit_burst": 10_000, "connection_test_s": 0.0,
        "data_dir": settings.data_dir / str(places),
    }  # fmt: skip
    engine = await open_engine(settings.model_copy(update=update), faults=faults)
    return engine, Service(engine)


def find_p99_s(answers: list[Answer]) -> float:
    """Return the 99th percentile of the seconds of accepted requests."""
    times_s = sorted(seconds for status, _, seconds in answers if status == 202)
    return times_s[math.ceil(len(times_s) * 0.99) - 1]


async def test_rejects_a_part_of_a_burst(settings: Settings) -> None:
    """Given a burst, then requests without a place get 503, and later requests are accepted."""
    engine, service = await open_service(settings, PLACES)
    try:
        key, bobs_key = [await service.sign_up(f"{name}@example.org") for name in ("ada", "bob")]
        *answers, bobs_answer = await asyncio.gather(
            *(service.post(key, "/v1/runs", LINE) for _ in range(BURST)),
            service.post(bobs_key, "/v1/runs", LINE),
        )
        statuses = Counter(status for status, _, _ in answers)
        assert set(statuses) == {202, 503}
        assert statuses[202] >= PLACES // 2
        rejections = [headers for status, headers, _ in answers if status == 503]
        assert {headers[b"retry-after"] for headers in rejections} == {b"1"}
        assert bobs_answer[0] == 202  # an account gets at most half of the places
        assert (await service.post(key, "/v1/runs", LINE))[0] == 202
        assert (await service.post(key, "/v1/account/keys", {}))[0] == 201
    finally:
        await engine.close(0)


async def test_accepted_requests_stay_fast(settings: Settings) -> None:
    """Given bursts, then the slowest accepted request waits for a few others, and not for all.

    Both are measured in turns, because other programs may use the cores for a while.
    """
    services = {n: await open_service(settings, n) for n in (PLACES, 100 * BURST)}
    worst: dict[int, list[float]] = {places: [] for places in services}
    try:
        keys = {n: await service.sign_up("a@example.org") for n, (_, service) in services.items()}
        for turn in range(1 + 2 * BURSTS):
            for places, (_, service) in services.items():
                p99_s = find_p99_s(await service.burst(keys[places]))
                worst[places] += [p99_s] if turn else []  # the first burst warms the caches
    finally:
        for engine, _ in services.values():
            await engine.close(0)
    assert min(worst[PLACES]) < min(worst[100 * BURST]) / 2


LARGE, SMALL = 3000, 200

MANY = 6

# Rounding of the timestamps and times, and the writes before and after the work.
MARGIN_MS = 250


def start_card(client: Client, side: int) -> Run:
    """Start a card of a width and height."""
    return client.runs.create("composition.layout", {"title": "Tea", "width": side, "height": side})


def test_large_cards_of_one_account_do_not_delay_another_account(tmp_path: Path) -> None:
    """Given a queue of large cards, then another account's card ends early."""
    with (
        serve_process(tmp_path / "data") as (_, url),
        Client(base_url=url, api_key=open_account(url, "busy")) as busy_client,
        Client(base_url=url, api_key=open_account(url, "other")) as client,
    ):
        start_card(client, SMALL).wait()  # starts the first worker process
        large = [start_card(busy_client, LARGE) for _ in range(MANY)]
        small = start_card(client, SMALL).wait().record
        assert large[-1].refresh().record.status != "completed", "it waited for all large cards"
        records = [run.wait().record for run in large]
    for run in [small, *records]:
        assert run.completed_at is not None
        elapsed_ms = (run.completed_at - run.created_at).total_seconds() * 1000
        counted_ms = (run.queue_ms or 0) + (run.latency_ms or 0)
        assert abs(elapsed_ms - counted_ms) < MARGIN_MS, run
    waits = [run.queue_ms or 0 for run in records]
    works = [run.latency_ms or 0 for run in records]
    # The last card waits for the work of the others, of which two or three run at once.
    assert waits[-1] > sum(works[:-1]) / 4, (waits, works)
