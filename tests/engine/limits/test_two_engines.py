"""Limits of two engines on one data directory or database hold for both together."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from tests.engine.fault_transport import FaultTransport, open_faulty_engine
from tests.support.engine_accounts import connect_account, run_to_end
from tests.support.timing import wait_until_async
from toolkit.contract.account import AccountCreate
from toolkit.contract.errors import ServiceError
from toolkit.contract.runs import Run
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.settings import Settings

VENDOR = "openai"


class Team:
    """Engines on one data directory, which call the same vendor for the same account."""

    def __init__(self, engines: list[Engine], cloud: FaultTransport, caller: RequestContext):
        self.engines, self.cloud, self.caller = engines, cloud, caller

    async def run(self, engine: Engine, number: int = 0) -> Run:
        """Have an engine do a run, and return its record."""
        fields = {"objective": f"One line on tea, number {number}"}
        return await run_to_end(engine, self.caller, "llm.generate", fields, provider=VENDOR)

    async def run_everywhere(self, count: int) -> list[Run]:
        """Have each engine do this number of runs at once."""
        engines = [engine for engine in self.engines for _ in range(count)]
        return await asyncio.gather(*(self.run(engine, i) for i, engine in enumerate(engines)))


OpenTeam = Callable[..., Any]


@pytest.fixture
async def open_team(shared: Settings) -> AsyncIterator[OpenTeam]:
    """Opens two engines with changed settings, the second while the first is open."""
    async with AsyncExitStack() as stack:

        async def open_team(vendor: dict[str, Any] | None = None, **update: object) -> Team:
            cloud, engines = FaultTransport(), []
            for _ in range(2):
                changed = shared.model_copy(update=update)
                engine = await open_faulty_engine(changed, cloud, **(vendor or {}))
                stack.push_async_callback(engine.close, 0)
                engines.append(engine)
            caller = await connect_account(engines[0])
            if not await engines[0].connections.list(caller, 1, None):  # not if opened again
                await connect_account(engines[0], VENDOR)
            await wait_until_async(lambda: not engines[0].core.deployment.is_alone)
            return Team(engines, cloud, caller)

        yield open_team


@pytest.mark.parametrize(("limit", "count"), [(3, 12), (1, 3)])
async def test_limits_calls_of_a_connection_across_engines(
    open_team: OpenTeam, limit: int, count: int
) -> None:
    """Given a concurrency limit, then both engines together keep it, and all runs complete."""
    team = await open_team(max_concurrent_calls=limit)
    team.cloud.delay_s = 0.05
    runs = await team.run_everywhere(count)
    assert {run.status for run in runs} == {"completed"}
    assert min(limit, 2) <= team.cloud.most <= limit


async def test_applies_a_lower_limit_after_a_restart(open_team: OpenTeam) -> None:
    """Given engines that restart with a lower concurrency limit, then they keep the new limit."""
    team = await open_team(max_concurrent_calls=8)
    await team.run_everywhere(4)
    for engine in team.engines:
        await engine.close(0)
    team = await open_team(max_concurrent_calls=2)
    team.cloud.delay_s = 0.05
    await team.run_everywhere(12)
    assert 1 < team.cloud.most <= 2


async def test_the_last_engine_has_all_slots(open_team: OpenTeam) -> None:
    """Given two engines, when one closes, then the other uses the whole limit."""
    team = await open_team(max_concurrent_calls=3)
    await team.run_everywhere(2)
    await team.engines.pop().close(0)
    await wait_until_async(lambda: team.engines[0].core.deployment.is_alone)
    team.cloud.delay_s, team.cloud.most = 0.5, 0
    running = asyncio.create_task(team.run_everywhere(9))
    await wait_until_async(lambda: team.cloud.inside.total() == 3)
    team.cloud.delay_s = 0.0
    await running
    assert team.cloud.most == 3


async def test_shares_the_request_rate_of_a_vendor(open_team: OpenTeam) -> None:
    """Given a rate of 40 calls a second, then both engines together keep it."""
    team = await open_team({"requests_per_minute": 2400})
    runs = await team.run_everywhere(10)
    assert {run.status for run in runs} == {"completed"}
    assert len(team.cloud.times) == 20
    took_s = max(team.cloud.times) - min(team.cloud.times)
    assert took_s > 19 / 40 * 0.8, "less a share for the shortest time between an engine's calls"


async def test_shares_a_cooldown(open_team: OpenTeam) -> None:
    """Given a 429 with `Retry-After` to an engine, then the other engine waits as well."""
    team = await open_team(max_cooldown_wait_s=0.0, retries=0)
    assert [run.status for run in await team.run_everywhere(1)] == ["completed"] * 2
    team.cloud.faults[VENDOR] = [httpx.Response(429, headers={"Retry-After": "600"}, json={})]
    assert (await team.run(team.engines[0])).status == "failed"
    core = team.engines[1].core
    connections = await core.directory.list_connections(team.caller.scope)
    gate = core.gates.get_gate(connections[VENDOR][0])
    await wait_until_async(lambda: gate.snapshot_health().wait_s > 500)


async def test_shares_the_state_of_a_circuit_breaker(open_team: OpenTeam) -> None:
    """Given an outage seen by an engine, then both breakers open, and one probe closes them."""
    team = await open_team(
        breaker_failures=2, breaker_cooldown_s=0.3, max_cooldown_wait_s=0.0, retries=0
    )
    assert [run.status for run in await team.run_everywhere(1)] == ["completed"] * 2
    team.cloud.down.add(VENDOR)
    for _ in range(2):
        assert (await team.run(team.engines[0])).status == "failed"

    def list_states() -> list[str]:
        return [engine.list_connection_states()[0].breaker for engine in team.engines]

    await wait_until_async(lambda: "closed" not in list_states())
    team.cloud.down.clear()
    await wait_until_async(lambda: list_states() == ["half_open"] * 2)
    calls = len(team.cloud.calls)
    assert (await team.run(team.engines[1])).status == "completed"
    assert len(team.cloud.calls) == calls + 1
    await wait_until_async(lambda: list_states() == ["closed"] * 2)


async def test_limits_requests_of_a_key_across_engines(open_team: OpenTeam) -> None:
    """Given a burst of ten requests, then both engines together answer ten."""
    team = await open_team(rate_limit_per_s=0.001, rate_limit_burst=10)
    created = await team.engines[0].accounts.create(AccountCreate(email="ada@example.org"))

    async def is_answered(engine: Engine) -> bool:
        try:
            await engine.accounts.authenticate(created.api_key)
        except ServiceError as error:
            return not error.retry_after
        return True

    answers = await asyncio.gather(*(is_answered(engine) for engine in team.engines * 15))
    assert sum(answers) == 10


async def test_a_new_engine_counts_earlier_requests(shared: Settings) -> None:
    """Given requests to a first engine, when a second engine opens, then they count there too."""
    settings = shared.model_copy(update={"rate_limit_per_s": 0.001, "rate_limit_burst": 4})
    first = await Engine.open(settings)
    created = await first.accounts.create(AccountCreate(email="ada@example.org"))
    for _ in range(3):
        await first.accounts.authenticate(created.api_key)
    second = await Engine.open(settings)
    try:
        await second.accounts.authenticate(created.api_key)
        with pytest.raises(ServiceError, match="requests a second"):
            await second.accounts.authenticate(created.api_key)
        await first.close(0)
        await wait_until_async(lambda: second.core.deployment.is_alone)
        with pytest.raises(ServiceError, match="requests a second"):
            await second.accounts.authenticate(created.api_key)
    finally:
        await second.close(0)
