"""Calls to vendors that go wrong: tried again, handed to the next one, or left alone."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.support.engine_accounts import connect_account, run_to_end
from tests.support.timing import wait_until_async
from toolkit import sandbox
from toolkit.assembly import point_vendors_at_sandbox
from toolkit.contract.runs import Run, RunCreate
from toolkit.contract.workflows import WorkflowCreate
from toolkit.engine import Engine, Registry
from toolkit.engine.request_context import RequestContext
from toolkit.secrets import MappingResolver
from toolkit.settings import SANDBOX_URL, Settings, Timeouts

Fault = httpx.Response | Exception


class FaultTransport(httpx.AsyncBaseTransport):
    """The sandbox, with what is to go wrong on the way to each vendor, in order."""

    def __init__(self) -> None:
        self.cloud = httpx.ASGITransport(sandbox.create_app())
        self.ahead: dict[str, list[Fault]] = {}
        self.down: set[str] = set()
        self.slow_s = 0.0
        self.calls: list[str] = []
        self.inside = self.most = 0
        self.inside_at: Counter[str] = Counter()
        self.most_at: Counter[str] = Counter()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Let one request through, or not."""
        vendor = request.url.path.split("/")[1]
        self.calls.append(vendor)
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.inside_at[vendor] += 1
        self.most_at[vendor] = max(self.most_at[vendor], self.inside_at[vendor])
        try:
            await asyncio.sleep(self.slow_s)
        finally:
            self.inside -= 1
            self.inside_at[vendor] -= 1
        if vendor in self.down:
            return httpx.Response(503, json={}, request=request)
        if self.ahead.get(vendor):
            fault = self.ahead[vendor].pop(0)
            if isinstance(fault, Exception):
                raise fault
            return httpx.Response(
                fault.status_code, headers=fault.headers, content=fault.content, request=request
            )
        return await self.cloud.handle_async_request(request)


class AttemptBench:
    """An engine under some weather, with an account that has connected what it is told."""

    def __init__(self, engine: Engine, weather: FaultTransport, context: RequestContext) -> None:
        self.engine, self.weather, self.context = engine, weather, context

    async def run(
        self,
        name: str = "llm.generate",
        given: Mapping[str, object] = {"objective": "One line on tea"},
        **options: object,
    ) -> Run:
        """A run, over."""
        return await run_to_end(self.engine, self.context, name, given, **options)

    async def is_retrying(self) -> bool:
        """Tell whether a run waits before it calls again."""
        runs = await self.engine.runs.list(self.context, 50, None)
        return any(run.status_detail == "retrying" for run in runs)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Breakers and patience that a test can wait for."""
    update = {"breaker_cooldown_s": 0.2, "max_cooldown_wait_s": 5.0, "max_concurrent_calls": 4}
    return settings.model_copy(update=update)


@asynccontextmanager
async def open_bench(
    settings: Settings, *connected: str, keys: MappingResolver | None = None, **openai: object
) -> AsyncIterator[AttemptBench]:
    """An engine whose account has connected these vendors; the settings of one are changed."""
    registry, weather = Registry.load(), FaultTransport()
    vendors = point_vendors_at_sandbox(settings, registry, sandbox.VENDOR_PATHS)
    vendors["openai"] = vendors["openai"].model_copy(update=openai)
    engine = await Engine.open(
        settings.model_copy(
            update={"vendors": vendors, "encyclopedia_url": f"{SANDBOX_URL}/encyclopedia"}
        ),
        transport=weather,
        resolver=keys or MappingResolver(sandbox.SANDBOX_KEYS),
        registry=registry,
    )
    yield AttemptBench(engine, weather, await connect_account(engine, *connected))
    await engine.close(0)


@pytest.fixture
async def bench(settings: Settings) -> AsyncIterator[AttemptBench]:
    """An engine whose account has connected every vendor."""
    async with open_bench(settings, *Registry.load().vendors) as bench:
        yield bench


def status(code: int, **headers: str) -> Fault:
    """An answer with a failing status."""
    return httpx.Response(code, headers=headers, json={})


PASSING: dict[str, Callable[[], Fault]] = {
    "500": lambda: status(500),
    "429": lambda: status(429, **{"Retry-After": "0"}),
    "an HTML page": lambda: httpx.Response(502, html="<h1>Bad gateway</h1>"),
    "refused": lambda: httpx.ConnectError("refused"),
    "dropped": lambda: httpx.ReadError("dropped"),
    "too slow": lambda: httpx.ReadTimeout("slow"),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
async def test_what_may_pass_is_tried_again(
    bench: AttemptBench, fault: Callable[[], Fault]
) -> None:
    """Given a fault that passes, then the same vendor is called again, and each try is written."""
    bench.weather.ahead["minimax"] = [fault()]
    run = await bench.run()
    assert run.status == "completed", run.error
    assert [a.status for a in run.attempts] == ["failed", "completed"]
    assert {a.provider for a in run.attempts} == {"minimax"}
    assert run.attempts[0].error is not None


async def test_the_next_vendor_takes_over(bench: AttemptBench) -> None:
    """Given a vendor that stays down, then the next allowed one is called; a pin forbids that."""
    bench.weather.ahead["minimax"] = [status(500) for _ in range(6)]
    run = await bench.run()
    assert run.provider == "anthropic"
    assert [a.provider for a in run.attempts] == ["minimax"] * 3 + ["anthropic"]
    pinned = await bench.run(provider="minimax")
    assert (pinned.status, pinned.error and pinned.error.code) == ("failed", "PROVIDER_UNAVAILABLE")
    assert {a.provider for a in pinned.attempts} == {"minimax"}


async def test_a_refused_input_is_sent_once(bench: AttemptBench) -> None:
    """Given an input that the vendor refuses, then nobody is asked again."""
    bench.weather.ahead["minimax"] = [status(400)]
    run = await bench.run()
    assert (run.status, run.error and run.error.code) == ("failed", "PROVIDER_REJECTED")
    assert bench.weather.calls == ["minimax"]
    assert run.cost_incurred_usd == 0


@pytest.mark.parametrize(
    ("code", "error", "options"),
    [
        (401, "PROVIDER_AUTH_FAILED", {}),
        (400, "PROVIDER_REJECTED", {"fallback_on_rejection": True}),
    ],
    ids=["a bad key", "a refused input, on demand"],
)
async def test_the_next_vendor_is_called_at_once(
    bench: AttemptBench, code: int, error: str, options: dict[str, object]
) -> None:
    """Given a refusal that another vendor may not share, then the next one is called at once."""
    bench.weather.ahead["minimax"] = [status(code)]
    run = await bench.run(**options)
    assert run.status == "completed"
    assert [a.provider for a in run.attempts] == ["minimax", "anthropic"]
    assert [a.error and a.error.code for a in run.attempts] == [error, None]
    assert [a.http_status for a in run.attempts] == [code, None]


async def test_work_that_may_have_been_done_is_not_done_twice(bench: AttemptBench) -> None:
    """Given speech whose answer was lost, then it is not asked for again and counts as spent."""
    bench.weather.ahead["minimax"] = [httpx.ReadError("lost")]
    run = await bench.run("speech.generate", {"text": "Tea is served."})
    assert run.status == "failed"
    assert bench.weather.calls == ["minimax"]
    assert run.cost_incurred_usd == run.attempts[0].cost_usd == run.reservation_usd
    assert run.cost_incurred_usd > 0


async def test_a_node_is_retried_as_often_as_it_may(bench: AttemptBench) -> None:
    """Given max_retries, when a node fails for good reasons, then the same job runs once more."""
    bench.weather.ahead["minimax"] = [status(503) for _ in range(3)]
    options = {"provider": "minimax"}
    node = {"capability": "llm.generate", "input": {"objective": "Tea"}, "options": options}
    body = {"name": "w", "max_retries": 2, "nodes": [{"id": "a", **node}]}
    engine = bench.engine
    workflow = await engine.workflows.create(bench.context, WorkflowCreate.model_validate(body))
    await engine.wait(bench.context, workflow.id, 20)
    done = await engine.workflows.get(bench.context, workflow.id)
    assert (done.status, done.retries, done.nodes[0].retry_count) == ("completed", 1, 1)
    job = await engine.jobs.get(bench.context, done.nodes[0].job_id or "")
    assert len(job.attempts) == 4


async def test_a_reply_over_the_limit_fails_its_run_only(bench: AttemptBench) -> None:
    """Given an answer larger than is read, then its run alone fails."""
    limit = bench.engine.settings.reply_limit_bytes
    bench.weather.ahead["minimax"] = [httpx.Response(200, content=b" " * (limit + 1))]
    run = await bench.run(provider="minimax")
    assert (run.status, run.error and run.error.code) == ("failed", "PROVIDER_BAD_RESPONSE")
    assert (await bench.run()).status == "completed"


async def test_the_budget_counts_every_try(bench: AttemptBench) -> None:
    """Given a budget for one call, when its answer is lost, then no second one is made."""
    once = (await bench.run(provider="minimax")).estimated_cost_usd
    assert once is not None
    bench.weather.calls.clear()
    bench.weather.ahead["minimax"] = [httpx.ReadTimeout("slow")]
    run = await bench.run(provider="minimax", max_cost_usd=once * 1.5)
    assert (run.status, run.error and run.error.code) == ("failed", "BUDGET_EXCEEDED")
    assert bench.weather.calls == ["minimax"]
    assert run.cost_incurred_usd <= once * 1.5


async def test_an_outage_is_found_out_once(bench: AttemptBench) -> None:
    """Given a vendor that is down, when many jobs want it, then few of them ever call it."""
    bench.weather.down, bench.weather.slow_s = {"minimax"}, 0.005
    runs = await asyncio.gather(*(bench.run() for _ in range(40)))
    assert {run.status for run in runs} == {"completed"}
    assert "minimax" not in {run.provider for run in runs}
    # Four at once until five in a row have failed, and a probe each time it has cooled down.
    assert bench.weather.calls.count("minimax") <= 12


async def test_a_vendor_that_recovers_is_used_again(bench: AttemptBench) -> None:
    """Given a breaker that opened, when the vendor is back, then a probe closes it."""
    bench.weather.down = {"minimax"}
    await asyncio.gather(*(bench.run() for _ in range(8)))
    bench.weather.down = set()
    pinned = await bench.run(provider="minimax")
    assert pinned.status == "completed", pinned.error
    assert (await bench.run()).provider == "minimax"


async def test_a_job_waits_for_the_soonest_inside_its_patience(
    bench: AttemptBench, settings: Settings
) -> None:
    """Given that nobody may be called for now, then a job waits; and gives up if it is too long."""
    ahead = bench.weather.ahead
    ahead["minimax"] = [status(429, **{"Retry-After": "1"})]
    first = asyncio.create_task(bench.run(provider="minimax"))
    await wait_until_async(bench.is_retrying)
    second = await bench.run(provider="minimax")
    assert (second.status, len(second.attempts)) == ("completed", 1)
    assert second.latency_ms is not None
    assert second.latency_ms > 700
    assert (await first).status == "completed"
    ahead["minimax"] = [status(429, **{"Retry-After": "25"})]
    waiting = asyncio.create_task(bench.run(provider="minimax"))
    await wait_until_async(bench.is_retrying)
    refused = await bench.run(provider="minimax")
    assert refused.error is not None
    assert (refused.status, refused.error.code) == ("failed", "PROVIDER_UNAVAILABLE")
    assert "the next call is possible in" in refused.error.message
    assert refused.attempts == []
    waiting.cancel()


async def test_a_connection_has_so_many_calls_at_once(bench: AttemptBench) -> None:
    """Given more jobs than a connection takes at once, then the others wait their turn."""
    bench.weather.slow_s = 0.05
    runs = await asyncio.gather(*(bench.run(provider="minimax") for _ in range(20)))
    assert {run.status for run in runs} == {"completed"}
    assert bench.weather.most == 4


async def test_a_rotated_key_works_at_once(settings: Settings) -> None:
    """Given a key that is refused, when the pointer leads to another by then, then it is tried."""
    keys = MappingResolver(sandbox.SANDBOX_KEYS | {"MINIMAX_API_KEY": "outdated"})
    async with open_bench(settings, "minimax", keys=keys) as bench:
        (made,) = await bench.engine.connections.list(bench.context, 1, None)
        tested = await bench.engine.connections.test(bench.context, made.id)
        assert (tested.resolved, tested.accepted) == (True, False)
        keys.invalidate = lambda *_: keys.__init__(sandbox.SANDBOX_KEYS)  # type: ignore[method-assign,misc]
        run = await bench.run()
        assert run.status == "completed", run.error
        assert [a.status for a in run.attempts] == ["failed", "completed"]
        tested = await bench.engine.connections.test(bench.context, made.id)
        assert (tested.resolved, tested.accepted) == (True, True)


async def test_what_is_known_of_a_connection_outlives_the_process(
    bench: AttemptBench, settings: Settings
) -> None:
    """Given calls that were made, when another engine opens, then its router knows of them."""
    await bench.run(provider="minimax")
    other = await Engine.open(bench.engine.settings, transport=bench.weather)
    body = {"name": "llm.generate", "input": {"objective": "Tea"}}
    route = await other.runs.route(bench.context, RunCreate.model_validate(body))
    (minimax,) = [c for c in route.candidates if c.provider == "minimax" and not c.excluded]
    assert minimax.latency_p50_ms is not None
    assert minimax.error_rate == 0
    await other.close(0)


async def test_a_tier_names_its_model(settings: Settings) -> None:
    """Given an operator's models by tier, then wishes choose among those alone."""
    tiers = {"text": {"economy": "gpt-6-luna", "premium": "gpt-6.1-sol"}}
    async with open_bench(settings, "openai", models=tiers) as bench:
        best, cheap = await bench.run(optimize_for="quality"), await bench.run(optimize_for="cost")
    assert str(best.model).startswith("gpt-6.1-sol")
    assert str(cheap.model).startswith("gpt-6-luna")
    assert best.routing is not None
    offered = {c.model for c in best.routing.candidates if c.provider == "openai"}
    assert offered == {"gpt-6-luna", "gpt-6.1-sol"}


@pytest.mark.parametrize("deadline", [{"first_byte_s": 0.05}, {"total_s": 0.05}])
async def test_an_answer_that_does_not_begin_in_time(
    bench: AttemptBench, deadline: dict[str, float]
) -> None:
    """Given a deadline for the first byte or for all, then a slow vendor is given up."""
    vendors = bench.engine.settings.vendors
    slow = vendors["minimax"].model_copy(update={"timeouts": Timeouts.model_validate(deadline)})
    vendors["minimax"] = slow
    bench.weather.slow_s = 0.3
    run = await bench.run(provider="minimax")
    assert (run.status, run.error and run.error.code) == ("failed", "PROVIDER_TIMEOUT")


async def test_a_public_service_has_three_calls_at_once(bench: AttemptBench) -> None:
    """Given many who look something up, then the encyclopedia has three of them at a time."""
    bench.weather.slow_s = 0.01
    topics = ["Tea", "Jazz", "Chess", "Bread", "Moon", "Soil", "Clock", "Coffee"]
    asked = [bench.run("research.gather", {"topic": topic}) for topic in topics]
    await asyncio.gather(*asked)
    assert "encyclopedia" in bench.weather.calls
    assert bench.weather.most_at["encyclopedia"] == 3


async def test_public_services_are_told_whom_to_contact(settings: Settings) -> None:
    """Given an operator's contact, then the encyclopedia is told it, and no vendor is."""
    seen: dict[str, str] = {}

    class Listener(FaultTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            seen[request.url.path.split("/")[1]] = request.headers.get("user-agent", "")
            return await super().handle_async_request(request)

    told = {"contact": "ops@example.org", "encyclopedia_url": f"{SANDBOX_URL}/encyclopedia"}
    engine = await Engine.open(settings.model_copy(update=told), transport=Listener())
    context = await connect_account(engine)
    await run_to_end(engine, context, "research.gather", {"topic": "Tea"})
    await engine.close(0)
    assert "(ops@example.org)" in seen["encyclopedia"]
