"""Calls to vendors that fail: retried, passed on to the next vendor, or not repeated."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.engine.fault_transport import Fault, FaultTransport, open_faulty_engine
from tests.support.engine_accounts import connect_account, run_to_end
from tests.support.timing import wait_until_async
from toolkit import sandbox
from toolkit.contract.runs import Run, RunCreate
from toolkit.contract.workflows import WorkflowCreate
from toolkit.engine import Engine, Registry
from toolkit.engine.request_context import RequestContext
from toolkit.secrets import MappingResolver
from toolkit.settings import Settings, Timeouts

TEA: Mapping[str, object] = {"objective": "One line on tea"}


class AttemptBench:
    """An engine on a transport with faults, and an account with connections."""

    def __init__(self, engine: Engine, cloud: FaultTransport, context: RequestContext) -> None:
        self.engine, self.cloud, self.context = engine, cloud, context

    async def run(
        self, name: str = "llm.generate", fields: Mapping[str, object] = TEA, **options: object
    ) -> Run:
        """Do a run to its end."""
        return await run_to_end(self.engine, self.context, name, fields, **options)

    async def is_retrying(self) -> bool:
        """Return whether a run waits before its next call."""
        runs = await self.engine.runs.list(self.context, 50, None)
        return any(run.status_detail == "retrying" for run in runs)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings with short cooldowns."""
    update = {"breaker_cooldown_s": 0.2, "max_cooldown_wait_s": 5.0, "max_concurrent_calls": 4}
    return settings.model_copy(update=update)


@asynccontextmanager
async def open_bench(
    settings: Settings, *connected: str, keys: MappingResolver | None = None, **openai: object
) -> AsyncIterator[AttemptBench]:
    """Open an engine whose account has connected vendors; OpenAI may have other settings."""
    cloud = FaultTransport()
    engine = await open_faulty_engine(settings, cloud, keys, **openai)
    yield AttemptBench(engine, cloud, await connect_account(engine, *connected))
    await engine.close(0)


@pytest.fixture
async def bench(settings: Settings) -> AsyncIterator[AttemptBench]:
    """An engine whose account has connected every vendor."""
    simulated = [id for id in Registry.load().vendors if id in sandbox.VENDOR_PATHS]
    async with open_bench(settings, *simulated) as bench:
        yield bench


def status(code: int, **headers: str) -> Fault:
    """Build an answer with a failing status."""
    return httpx.Response(code, headers=headers, json={})


TRANSIENT: dict[str, Callable[[], Fault]] = {
    "500": lambda: status(500),
    "429": lambda: status(429, **{"Retry-After": "0"}),
    "an HTML page": lambda: httpx.Response(502, html="<h1>Bad gateway</h1>"),
    "refused": lambda: httpx.ConnectError("refused"),
    "dropped": lambda: httpx.ReadError("dropped"),
    "too slow": lambda: httpx.ReadTimeout("slow"),
}


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT)
async def test_retries_transient_faults(bench: AttemptBench, fault: Callable[[], Fault]) -> None:
    """Given a transient fault, then the same vendor is called again, and each attempt is kept."""
    bench.cloud.faults["minimax"] = [fault()]
    run = await bench.run()
    assert run.status == "completed", run.error
    assert [a.status for a in run.attempts] == ["failed", "completed"]
    assert {a.provider for a in run.attempts} == {"minimax"}
    assert run.attempts[0].error is not None


async def test_falls_back_to_the_next_vendor(bench: AttemptBench) -> None:
    """Given a vendor that stays down, then the next vendor is called, unless it is pinned."""
    bench.cloud.faults["minimax"] = [status(500) for _ in range(6)]
    run = await bench.run()
    assert run.provider == "anthropic"
    assert [a.provider for a in run.attempts] == ["minimax"] * 3 + ["anthropic"]
    pinned = await bench.run(provider="minimax")
    assert (pinned.status, pinned.error and pinned.error.code) == ("failed", "PROVIDER_UNAVAILABLE")
    assert {a.provider for a in pinned.attempts} == {"minimax"}


async def test_sends_a_rejected_input_once(bench: AttemptBench) -> None:
    """Given an input that the vendor rejects, then no vendor is called again."""
    bench.cloud.faults["minimax"] = [status(400)]
    run = await bench.run()
    assert (run.status, run.error and run.error.code) == ("failed", "PROVIDER_REJECTED")
    assert bench.cloud.calls == ["minimax"]
    assert run.cost_incurred_usd == 0


@pytest.mark.parametrize(
    ("code", "error", "options"),
    [
        (401, "PROVIDER_AUTH_FAILED", {}),
        (400, "PROVIDER_REJECTED", {"fallback_on_rejection": True}),
    ],
    ids=["a bad key", "a rejected input, by option"],
)
async def test_falls_back_without_a_retry(
    bench: AttemptBench, code: int, error: str, options: dict[str, object]
) -> None:
    """Given a rejection that another vendor may not share, then the next is called at once."""
    bench.cloud.faults["minimax"] = [status(code)]
    run = await bench.run(**options)
    assert run.status == "completed"
    assert [a.provider for a in run.attempts] == ["minimax", "anthropic"]
    assert [a.error and a.error.code for a in run.attempts] == [error, None]
    assert [a.http_status for a in run.attempts] == [code, None]


async def test_does_not_repeat_work_that_may_have_been_done(bench: AttemptBench) -> None:
    """Given speech whose answer was lost, then it is not requested again and counts as spent."""
    bench.cloud.faults["minimax"] = [httpx.ReadError("lost")]
    run = await bench.run("speech.generate", {"text": "Tea is served."})
    assert run.status == "failed"
    assert bench.cloud.calls == ["minimax"]
    assert run.cost_incurred_usd == run.attempts[0].cost_usd == run.reservation_usd
    assert run.cost_incurred_usd > 0


async def test_retries_a_node_up_to_max_retries(bench: AttemptBench) -> None:
    """Given max_retries, when a node fails, then the same job is retried."""
    bench.cloud.faults["minimax"] = [status(503) for _ in range(3)]
    options = {"provider": "minimax"}
    node = {"capability": "llm.generate", "input": {"objective": "Tea"}, "options": options}
    body = {"name": "w", "max_retries": 2, "nodes": [{"id": "a", **node}]}
    engine = bench.engine
    workflow = await engine.workflows.create(bench.context, WorkflowCreate.model_validate(body))
    await engine.wait(bench.context, workflow.id, 20)
    workflow = await engine.workflows.get(bench.context, workflow.id)
    assert (workflow.status, workflow.retries, workflow.nodes[0].retry_count) == ("completed", 1, 1)
    job = await engine.jobs.get(bench.context, workflow.nodes[0].job_id or "")
    assert len(job.attempts) == 4


async def test_a_reply_over_the_limit_fails_its_run_only(bench: AttemptBench) -> None:
    """Given an answer larger than the limit, then only its run fails."""
    limit = bench.engine.settings.reply_limit_bytes
    bench.cloud.faults["minimax"] = [httpx.Response(200, content=b" " * (limit + 1))]
    run = await bench.run(provider="minimax")
    assert (run.status, run.error and run.error.code) == ("failed", "PROVIDER_BAD_RESPONSE")
    assert (await bench.run()).status == "completed"


async def test_the_budget_counts_every_attempt(bench: AttemptBench) -> None:
    """Given a budget for one call, when its answer is lost, then no second call is made."""
    cost = (await bench.run(provider="minimax")).estimated_cost_usd
    assert cost is not None
    bench.cloud.calls.clear()
    bench.cloud.faults["minimax"] = [httpx.ReadTimeout("slow")]
    run = await bench.run(provider="minimax", max_cost_usd=cost * 1.5)
    assert (run.status, run.error and run.error.code) == ("failed", "BUDGET_EXCEEDED")
    assert bench.cloud.calls == ["minimax"]
    assert run.cost_incurred_usd <= cost * 1.5


async def test_stops_calling_a_vendor_that_is_down(bench: AttemptBench) -> None:
    """Given a vendor that is down, when many jobs prefer it, then its breaker stops most calls."""
    bench.cloud.down, bench.cloud.delay_s = {"minimax"}, 0.005
    runs = await asyncio.gather(*(bench.run() for _ in range(40)))
    assert {run.status for run in runs} == {"completed"}
    assert "minimax" not in {run.provider for run in runs}
    # Four at once until five in a row have failed, then a probe after each cooldown.
    assert bench.cloud.calls.count("minimax") <= 12


async def test_waits_for_a_cooldown_up_to_a_limit(bench: AttemptBench) -> None:
    """Given a vendor that cools down, then a job waits, or fails if the wait is too long."""
    bench.cloud.faults["minimax"] = [status(429, **{"Retry-After": "1"})]
    first = asyncio.create_task(bench.run(provider="minimax"))
    await wait_until_async(bench.is_retrying)
    second = await bench.run(provider="minimax")
    assert (second.status, len(second.attempts)) == ("completed", 1)
    assert second.latency_ms is not None
    assert second.latency_ms > 700
    assert (await first).status == "completed"
    bench.cloud.faults["minimax"] = [status(429, **{"Retry-After": "25"})]
    waiting = asyncio.create_task(bench.run(provider="minimax"))
    await wait_until_async(bench.is_retrying)
    refused = await bench.run(provider="minimax")
    assert refused.error is not None
    assert (refused.status, refused.error.code) == ("failed", "PROVIDER_UNAVAILABLE")
    assert "the next call is possible in" in refused.error.message
    assert refused.attempts == []
    waiting.cancel()


async def test_reads_a_rotated_key_after_a_rejection(settings: Settings) -> None:
    """Given a rejected key, when its pointer has another key by then, then that key is tried."""
    keys = MappingResolver(sandbox.SANDBOX_KEYS | {"MINIMAX_API_KEY": "outdated"})
    async with open_bench(settings, "minimax", keys=keys) as bench:
        (connection,) = await bench.engine.connections.list(bench.context, 1, None)
        tested = await bench.engine.connections.test(bench.context, connection.id)
        assert (tested.resolved, tested.accepted) == (True, False)
        keys.invalidate = lambda *_: keys.__init__(sandbox.SANDBOX_KEYS)  # type: ignore[method-assign,misc]
        run = await bench.run()
        assert run.status == "completed", run.error
        assert [a.status for a in run.attempts] == ["failed", "completed"]
        tested = await bench.engine.connections.test(bench.context, connection.id)
        assert (tested.resolved, tested.accepted) == (True, True)


async def test_keeps_the_health_of_a_connection_across_engines(bench: AttemptBench) -> None:
    """Given calls of an engine, when another engine opens, then its router knows their latency."""
    await bench.run(provider="minimax")
    second = await Engine.open(bench.engine.settings, transport=bench.cloud)
    body = {"name": "llm.generate", "input": {"objective": "Tea"}}
    route = await second.runs.route(bench.context, RunCreate.model_validate(body))
    (minimax,) = [c for c in route.candidates if c.provider == "minimax" and not c.excluded]
    assert minimax.latency_p50_ms is not None
    assert minimax.error_rate == 0
    await second.close(0)


async def test_chooses_among_the_operators_models_by_tier(settings: Settings) -> None:
    """Given an operator's models by tier, then policies choose among these models only."""
    tiers = {"text": {"economy": "gpt-6-luna", "premium": "gpt-6.1-sol"}}
    async with open_bench(settings, "openai", models=tiers) as bench:
        best, cheap = await bench.run(optimize_for="quality"), await bench.run(optimize_for="cost")
    assert str(best.model).startswith("gpt-6.1-sol")
    assert str(cheap.model).startswith("gpt-6-luna")
    assert best.routing is not None
    offered = {c.model for c in best.routing.candidates if c.provider == "openai"}
    assert offered == {"gpt-6-luna", "gpt-6.1-sol"}


async def test_fails_if_the_first_byte_is_late(bench: AttemptBench) -> None:
    """Given a deadline for the first byte, when the vendor is slower, then the call times out."""
    vendors = bench.engine.settings.vendors
    slow = vendors["minimax"].model_copy(update={"timeouts": Timeouts(first_byte_s=0.05)})
    vendors["minimax"] = slow
    bench.cloud.delay_s = 0.3
    run = await bench.run(provider="minimax")
    assert (run.status, run.error and run.error.code) == ("failed", "PROVIDER_TIMEOUT")


async def test_limits_concurrent_calls_of_a_public_service(bench: AttemptBench) -> None:
    """Given many look-ups, then the encyclopedia has three of them at a time."""
    bench.cloud.delay_s = 0.01
    topics = ["Tea", "Jazz", "Chess", "Bread", "Moon", "Soil", "Clock", "Coffee"]
    await asyncio.gather(*(bench.run("research.gather", {"topic": topic}) for topic in topics))
    assert "encyclopedia" in bench.cloud.calls
    assert bench.cloud.most_at["encyclopedia"] == 3


async def test_sends_the_operators_contact_to_public_services(settings: Settings) -> None:
    """Given an operator's contact, then requests to the encyclopedia name it."""
    agents: dict[str, str] = {}

    class Listener(FaultTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            agents[request.url.path.split("/")[1]] = request.headers.get("user-agent", "")
            return await super().handle_async_request(request)

    settings = settings.model_copy(update={"contact": "ops@example.org"})
    engine = await open_faulty_engine(settings, Listener())
    context = await connect_account(engine)
    await run_to_end(engine, context, "research.gather", {"topic": "Tea"})
    await engine.close(0)
    assert "(ops@example.org)" in agents["encyclopedia"]
