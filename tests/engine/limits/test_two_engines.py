"""Two engines on one data directory or database: what one of them may do, both may do together."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from tests.engine.execution.test_attempts import FaultTransport
from tests.support.engine_accounts import connect_account
from tests.support.timing import wait_until_async
from toolkit import sandbox
from toolkit.assembly import point_vendors_at_sandbox
from toolkit.contract.account import AccountCreate
from toolkit.contract.errors import ServiceError
from toolkit.contract.runs import Run, RunCreate
from toolkit.engine import Engine, Registry
from toolkit.engine.request_context import RequestContext
from toolkit.secrets import MappingResolver
from toolkit.settings import SANDBOX_URL, Settings, VendorSettings

VENDOR = "openai"


class TimedTransport(FaultTransport):
    """The sandbox, which notes when each call comes."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Let one request through."""
        self.times.append(time.monotonic())
        return await super().handle_async_request(request)


class Team:
    """Engines on one data directory, which call the same vendor for the same account."""

    def __init__(self, engines: list[Engine], cloud: TimedTransport, caller: RequestContext):
        self.engines, self.cloud, self.caller = engines, cloud, caller

    async def run(self, engine: Engine, number: int = 0) -> Run:
        """A run of one engine, over."""
        given = {"objective": f"One line on tea, number {number}"}
        options = {"provider": VENDOR}
        body = {"name": "llm.generate", "input": given, "options": options}
        run = await engine.runs.create(self.caller, RunCreate.model_validate(body))
        await engine.wait(self.caller, run.id, 60)
        return await engine.runs.get(self.caller, run.id)

    async def run_everywhere(self, count: int) -> list[Run]:
        """So many runs of each engine, at once."""
        engines = [engine for engine in self.engines for _ in range(count)]
        return await asyncio.gather(*(self.run(one, i) for i, one in enumerate(engines)))


OpenTeam = Callable[..., Any]


@pytest.fixture
async def open_team(shared: Settings) -> AsyncIterator[OpenTeam]:
    """Opens two engines with other settings, the second while the first is there."""
    async with AsyncExitStack() as stack:

        async def open_team(vendor: dict[str, object] | None = None, **update: object) -> Team:
            registry, cloud = Registry.load(), TimedTransport()
            vendors = point_vendors_at_sandbox(shared, registry, sandbox.VENDOR_PATHS)
            own = vendors[VENDOR].model_dump() | (vendor or {})
            vendors[VENDOR] = VendorSettings.model_validate(own)
            told = {"vendors": vendors, "encyclopedia_url": f"{SANDBOX_URL}/encyclopedia"}
            engines = []
            for _ in range(2):
                engine = await Engine.open(
                    shared.model_copy(update=told | update),
                    transport=cloud,
                    resolver=MappingResolver(sandbox.SANDBOX_KEYS),
                    registry=registry,
                )
                stack.push_async_callback(engine.close, 0)
                engines.append(engine)
            caller = await connect_account(engines[0])
            if not await engines[0].connections.list(caller, 1, None):  # as if opened anew
                await connect_account(engines[0], VENDOR)
            await wait_until_async(lambda: not engines[0].core.deployment.is_alone)
            return Team(engines, cloud, caller)

        yield open_team


async def test_calls_of_one_connection_are_counted_together(open_team: OpenTeam) -> None:
    """Given room for three calls, then both engines together have three in flight at most."""
    team = await open_team(max_concurrent_calls=3)
    team.cloud.slow_s = 0.005
    runs = await team.run_everywhere(12)
    assert {run.status for run in runs} == {"completed"}
    assert 1 < team.cloud.most <= 3


async def test_a_limit_that_is_lowered_holds_after_a_restart(open_team: OpenTeam) -> None:
    """Given engines that are opened anew with room for fewer calls, then no more are in flight."""
    team = await open_team(max_concurrent_calls=8)
    await team.run_everywhere(4)
    for engine in team.engines:
        await engine.close(0)
    team = await open_team(max_concurrent_calls=2)
    team.cloud.slow_s = 0.005
    await team.run_everywhere(12)
    assert 1 < team.cloud.most <= 2


async def test_one_place_goes_round(open_team: OpenTeam) -> None:
    """Given room for one call, then neither engine keeps it for itself."""
    team = await open_team(max_concurrent_calls=1)
    runs = await team.run_everywhere(3)
    assert {run.status for run in runs} == {"completed"}
    assert team.cloud.most == 1


async def test_an_engine_that_is_left_alone_has_all_places(open_team: OpenTeam) -> None:
    """Given an engine that closes, then the other asks nobody any more."""
    team = await open_team(max_concurrent_calls=3)
    await team.run_everywhere(2)
    await team.engines.pop().close(0)
    await wait_until_async(lambda: team.engines[0].core.deployment.is_alone)
    team.cloud.slow_s, team.cloud.most = 0.5, 0
    running = asyncio.create_task(team.run_everywhere(9))
    await wait_until_async(lambda: team.cloud.inside == 3)
    team.cloud.slow_s = 0.0
    await running
    assert team.cloud.most == 3


async def test_a_vendors_requests_a_minute_are_shared(open_team: OpenTeam) -> None:
    """Given 40 calls a second, then both engines together take as long as one would."""
    team = await open_team({"requests_per_minute": 2400})
    runs = await team.run_everywhere(10)
    assert {run.status for run in runs} == {"completed"}
    assert len(team.cloud.times) == 20
    took_s = max(team.cloud.times) - min(team.cloud.times)
    assert took_s > 19 / 40 * 0.8, "but for the least time between two calls of one engine"


async def test_what_a_vendor_asks_of_one_is_asked_of_all(open_team: OpenTeam) -> None:
    """Given a 429 that names a time, then the other engine leaves the vendor alone, too."""
    team = await open_team(max_cooldown_wait_s=0.0, retries=0)
    assert [run.status for run in await team.run_everywhere(1)] == ["completed"] * 2
    team.cloud.ahead[VENDOR] = [httpx.Response(429, headers={"Retry-After": "600"}, json={})]
    assert (await team.run(team.engines[0])).status == "failed"
    core = team.engines[1].core
    gate = core.gates.get_gate(
        (await core.directory.list_connections(team.caller.scope))[VENDOR][0]
    )
    await wait_until_async(lambda: gate.snapshot_health().wait_s > 500)


async def test_a_breaker_opens_and_closes_for_all(open_team: OpenTeam) -> None:
    """Given a vendor that is down for one engine, then both leave it, and one probe is made."""
    team = await open_team(
        breaker_failures=2, breaker_cooldown_s=0.3, max_cooldown_wait_s=0.0, retries=0
    )
    assert [run.status for run in await team.run_everywhere(1)] == ["completed"] * 2
    team.cloud.down.add(VENDOR)
    for _ in range(2):
        assert (await team.run(team.engines[0])).status == "failed"
    states = [lambda one=one: one.list_connection_states()[0].breaker for one in team.engines]
    await wait_until_async(lambda: all(state() != "closed" for state in states))
    team.cloud.down.clear()
    await wait_until_async(lambda: all(state() == "half_open" for state in states))
    calls = len(team.cloud.calls)
    assert (await team.run(team.engines[1])).status == "completed"
    assert len(team.cloud.calls) == calls + 1
    await wait_until_async(lambda: all(state() == "closed" for state in states))


async def test_requests_of_one_key_are_counted_together(open_team: OpenTeam) -> None:
    """Given a burst of ten, then both engines together answer ten."""
    team = await open_team(rate_limit_per_s=0.001, rate_limit_burst=10)
    created = await team.engines[0].accounts.create(AccountCreate(email="ada@example.org"))

    async def ask(engine: Engine) -> bool:
        try:
            await engine.accounts.authenticate(created.api_key)
        except ServiceError as error:
            return not error.retry_after
        return True

    answers = await asyncio.gather(*(ask(one) for one in team.engines * 15))
    assert sum(answers) == 10


async def test_what_was_asked_alone_counts_beside_others(shared: Settings) -> None:
    """Given requests of an engine alone, then another one has what is left of the burst."""
    rare = shared.model_copy(update={"rate_limit_per_s": 0.001, "rate_limit_burst": 4})
    first = await Engine.open(rare)
    created = await first.accounts.create(AccountCreate(email="ada@example.org"))
    for _ in range(3):
        await first.accounts.authenticate(created.api_key)
    second = await Engine.open(rare)
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
