"""More work at once than can be accepted: some is refused, and what is accepted stays fast."""

import asyncio
import math
import time
from collections import Counter
from typing import Any

from tests.server.conftest import POINTER, call_app
from toolkit.contract.account import AccountCreate
from toolkit.engine import Engine
from toolkit.local import open_engine
from toolkit.sandbox import Fault, Faults
from toolkit.server import create_app
from toolkit.settings import Settings

BURST, BURSTS, PLACES = 300, 3, 16
LINE = {"target": "capability", "name": "llm.generate", "input": {"objective": "One line on tea"}}


class Service:
    """A server over an engine whose vendor is slow, so that work is accepted and not done."""

    def __init__(self, engine: Engine) -> None:
        self._app = create_app(engine)
        self._engine = engine

    async def sign_up(self, email: str) -> str:
        """The key of a new account with a connection."""
        account = await self._engine.accounts.sign_up(AccountCreate(email=email), "")
        await self.post(account.api_key, "/v1/providers/connections", POINTER)
        return account.api_key

    async def post(
        self, key: str, path: str, body: dict[str, Any]
    ) -> tuple[int, dict[bytes, bytes], float]:
        """The status and headers of an answer, and the seconds that it took."""
        sent: list[dict[str, Any]] = []

        async def keep(message: dict[str, Any]) -> None:
            sent.append(message)

        headers = {"authorization": f"Bearer {key}"}
        began = time.perf_counter()
        await call_app(self._app, path, headers, keep, "POST", json=body)
        return sent[0]["status"], dict(sent[0]["headers"]), time.perf_counter() - began

    async def burst(self, key: str) -> list[tuple[int, dict[bytes, bytes], float]]:
        """So many requests for work at once."""
        return await asyncio.gather(*(self.post(key, "/v1/runs", LINE) for _ in range(BURST)))


async def open_service(settings: Settings, places: int) -> tuple[Engine, Service]:
    """A service with so many places."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=20_000, times=None))
    update = {
        "max_admitting": places, "rate_limit_burst": 10_000, "connection_test_s": 0.0,
        "data_dir": settings.data_dir / str(places),
    }  # fmt: skip
    engine = await open_engine(settings.model_copy(update=update), faults=faults)
    return engine, Service(engine)


def find_p99_s(answers: list[tuple[int, dict[bytes, bytes], float]]) -> float:
    """The 99th percentile of the time that accepted requests took."""
    taken = sorted(seconds for status, _, seconds in answers if status == 202)
    return taken[math.ceil(len(taken) * 0.99) - 1]


async def test_a_burst_is_refused_in_part(settings: Settings) -> None:
    """Given a burst, then what has no place is 503 at once, and more is accepted afterwards."""
    engine, service = await open_service(settings, PLACES)
    try:
        key, other = await service.sign_up("a@example.org"), await service.sign_up("b@example.org")
        *answers, others = await asyncio.gather(
            *(service.post(key, "/v1/runs", LINE) for _ in range(BURST)),
            service.post(other, "/v1/runs", LINE),
        )
        statuses = Counter(status for status, _, _ in answers)
        assert set(statuses) == {202, 503}
        assert statuses[202] >= PLACES // 2
        assert {headers[b"retry-after"] for status, headers, _ in answers if status == 503} == {
            b"1"
        }
        assert others[0] == 202  # half of the places are not for one account
        assert (await service.post(key, "/v1/runs", LINE))[0] == 202
        assert (await service.post(key, "/v1/account/keys", {}))[0] == 201
    finally:
        await engine.close(0)


async def test_what_is_accepted_stays_fast(settings: Settings) -> None:
    """Given bursts, then the slowest of what is accepted waits for few, and not for all.

    Both are measured in turns, as others may have the cores for a while.
    """
    services = {n: await open_service(settings, n) for n in (PLACES, 100 * BURST)}
    worst: dict[int, list[float]] = {places: [] for places in services}
    try:
        keys = {n: await one.sign_up("a@example.org") for n, (_, one) in services.items()}
        for turn in range(1 + 2 * BURSTS):
            for places, (_, service) in services.items():
                took_s = find_p99_s(await service.burst(keys[places]))
                worst[places] += [took_s] if turn else []  # the first one warms
    finally:
        for engine, _ in services.values():
            await engine.close(0)
    assert min(worst[PLACES]) < min(worst[100 * BURST]) / 2
