"""The health of a connection, and waits before retries."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.timing import PATIENCE_S
from toolkit import Client
from toolkit.contract.errors import ErrorCode
from toolkit.engine.routing.connection_health import (
    FEW_LATENCIES,
    MAX_LATENCIES,
    SUMMARY_INTERVAL_S,
    ConnectionHealth,
    RetryBudget,
    SavedHealth,
)
from toolkit.plugins import ProviderError
from toolkit.sandbox import Faults
from toolkit.settings import Settings

DOWN = ProviderError(ErrorCode.PROVIDER_UNAVAILABLE, "down")


@dataclass
class HealthClock:
    """A clock that a test advances."""

    now: float = 1000.0

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now


@pytest.fixture
def clock() -> HealthClock:
    """A clock that a test advances."""
    return HealthClock()


@pytest.fixture
def health(clock: HealthClock) -> ConnectionHealth:
    """A connection without any calls yet."""
    return ConnectionHealth(failures=3, cooldown_s=5.0, clock=clock)


def fail(health: ConnectionHealth, times: int = 1, error: ProviderError = DOWN) -> None:
    """Make calls that fail."""
    for _ in range(times):
        permit = health.admit()
        assert permit is not None
        health.record_failure(error, permit)
        health.release(permit)


def test_opens_after_consecutive_failures(health: ConnectionHealth, clock: HealthClock) -> None:
    """Given three failures in a row, then no call passes until the cooldown is over."""
    fail(health, 2)
    health.record_success("m", 10)
    fail(health, 3)
    assert (health.state, health.admit()) == ("open", None)
    assert health.snapshot().wait_s == pytest.approx(5.0)
    assert "circuit breaker open" in health.snapshot().reason
    clock.now += 5.0
    assert (health.state, health.snapshot().wait_s) == ("half_open", 0.0)


def test_closes_after_a_successful_probe(health: ConnectionHealth, clock: HealthClock) -> None:
    """Given an open breaker after its cooldown, then a single probe passes, and success closes."""
    fail(health, 3)
    clock.now += 5.0
    probe = health.admit()
    assert probe is not None
    assert health.admit() is None
    assert health.snapshot().wait_s > 0
    health.record_success("m", 10)
    health.release(probe)
    assert health.state == "closed"
    assert health.admit() is not None


def test_doubles_the_cooldown_after_a_failed_probe(
    health: ConnectionHealth, clock: HealthClock
) -> None:
    """Given probes that fail, then each cooldown is twice the last, and at most a minute."""
    fail(health, 3)
    waits = []
    for _ in range(6):
        waits.append(health.snapshot().wait_s)
        clock.now += waits[-1]
        fail(health)
    assert waits == pytest.approx([5, 10, 20, 40, 60, 60])


def test_allows_another_probe_after_a_cancelled_probe(
    health: ConnectionHealth, clock: HealthClock
) -> None:
    """Given a probe whose job was cancelled, then the next call is a probe."""
    fail(health, 3)
    clock.now += 5.0
    probe = health.admit()
    assert probe is not None
    health.release(probe)
    assert health.admit() is not None


def test_ignores_late_failures_of_earlier_calls(
    health: ConnectionHealth, clock: HealthClock
) -> None:
    """Given a call from before the breaker opened, when it fails late, then the probe goes on."""
    late = health.admit()
    assert late is not None
    fail(health, 3)
    clock.now += 5.0
    assert health.admit() is not None
    health.record_failure(DOWN, late)
    health.release(late)
    assert health.state == "half_open"
    assert health.admit() is None  # because the probe is not over


def test_opens_at_a_failure_rate_of_half(health: ConnectionHealth) -> None:
    """Given failures that are never three in a row, then their rate opens the breaker."""
    for _ in range(10):
        fail(health)
        health.record_success("m", 10)
        if health.state == "open":
            break
    fail(health)
    assert health.state == "open"


@pytest.mark.parametrize(
    "error",
    [
        ProviderError(ErrorCode.PROVIDER_REJECTED, "no"),
        ProviderError(ErrorCode.PROVIDER_RATE_LIMITED, "slow down"),
        ProviderError(ErrorCode.PROVIDER_AUTH_FAILED, "wrong key"),
        ProviderError(ErrorCode.PROVIDER_BAD_RESPONSE, "raise max_tokens", retryable=False),
        ProviderError(ErrorCode.SECRET_UNRESOLVED, "no such variable"),
    ],
    ids=lambda error: error.code.name,
)
def test_stays_closed_if_the_vendor_is_up(health: ConnectionHealth, error: ProviderError) -> None:
    """Given rejections, rate limits or missing secrets, then the breaker stays closed."""
    fail(health, 30, error)
    assert health.state == "closed"


def test_retry_after_holds_everyone_back(health: ConnectionHealth, clock: HealthClock) -> None:
    """Given a rate limit with Retry-After, then no call passes before its time is over."""
    fail(health, 1, ProviderError(ErrorCode.PROVIDER_RATE_LIMITED, "slow down", retry_after=7.0))
    assert (health.state, health.admit()) == ("closed", None)
    assert health.snapshot().wait_s == pytest.approx(7.0)
    clock.now += 7.0
    assert health.admit() is not None
    assert health.admit() is not None


def test_summarizes_latencies_by_model(health: ConnectionHealth) -> None:
    """Given successful calls, then median and 95th percentile are nearest ranks."""
    assert health.snapshot().error_rate is None
    for latency_ms in range(1, 101):
        health.record_success("m", float(latency_ms))
    snapshot = health.snapshot()
    assert (snapshot.latency["m"].p50, snapshot.latency["m"].p95) == (50, 95)
    assert snapshot.error_rate == 0


def test_restores_saved_health(health: ConnectionHealth, clock: HealthClock) -> None:
    """Given an open breaker, when a new process loads the saved health, then it is open there."""
    health.record_success("m", 12.34)
    fail(health, 3)
    saved = SavedHealth.model_validate_json(health.to_saved().model_dump_json())
    restored = ConnectionHealth(failures=3, cooldown_s=5.0, saved=saved, clock=clock)
    assert restored.state == "open"
    assert restored.snapshot().wait_s == pytest.approx(5.0, abs=0.5)
    assert restored.snapshot().latency["m"].p50 == 12.3


@given(st.lists(st.booleans(), max_size=200))
def test_retries_never_pass_their_budget(outcomes: list[bool]) -> None:
    """Given any outcomes, then retries are at most 20 plus half of the successes."""
    budget = RetryBudget()
    retries = successes = 0
    for is_success in outcomes:
        if is_success:
            successes += 1
            budget.refund()
        elif budget.take():
            retries += 1
        assert retries <= 20 + successes / 2


def test_records_free_tests_of_the_key() -> None:
    """Given a rejected key, when a free test succeeds, then earlier failures are forgotten."""
    health = ConnectionHealth(failures=5, cooldown_s=5.0)
    health.record_test(ErrorCode.PROVIDER_AUTH_FAILED)
    assert health.snapshot().error_rate == 1.0
    health.record_test(ErrorCode.SECRET_UNRESOLVED)
    assert health.snapshot().unresolved
    health.record_test(None)
    assert (health.snapshot().error_rate, health.snapshot().unresolved) == (None, False)


def test_reuses_the_snapshot_of_a_healthy_connection(
    health: ConnectionHealth, clock: HealthClock
) -> None:
    """Given a connection without failures, then its latencies are summarized once a second."""
    for _ in range(FEW_LATENCIES):
        before = health.snapshot()
        health.record_success("m", 10)
        assert health.snapshot() is not before, "each of the first calls counts at once"
    settled = health.snapshot()
    for _ in range(MAX_LATENCIES):
        health.record_success("m", 30)
    assert health.snapshot() is settled
    clock.now += SUMMARY_INTERVAL_S
    assert health.snapshot().latency["m"].p50 == 30


def test_replaces_the_snapshot_after_a_failure(
    health: ConnectionHealth, clock: HealthClock
) -> None:
    """Given a reused snapshot, then a failure, a cooldown and its end each replace it."""
    for _ in range(FEW_LATENCIES + 1):
        health.record_success("m", 10)
    assert health.snapshot().error_rate == 0.0
    fail(health)
    assert health.snapshot().error_rate == pytest.approx(1 / 20)
    health.record_success("m", 10)
    fail(health, 3)
    first = health.snapshot().wait_s
    clock.now += 1.0
    assert health.snapshot().wait_s == pytest.approx(first - 1.0)
    clock.now += first
    assert health.snapshot().state == "half_open"


TIDES = {"objective": "One line on tides"}


@pytest.fixture
def client(settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client of two providers, which waits at most 0.6 s before a retry at the same provider."""
    patient = settings.model_copy(update={"retry_cap_s": 0.6, "retries": 2})
    with Client.local(settings=patient, faults=faults) as client:
        for connection in client.connections.list():
            if connection.record.provider not in ("minimax", "openai"):
                client.connections.delete(connection.id)
        yield client


def test_waits_as_long_as_the_vendor_asks(client: Client, faults: Faults) -> None:
    """Given an answer with Retry-After, then the same vendor is called again no sooner."""
    faults.fail("openai", status=429, headers={"Retry-After": "0.4"}, times=1)
    run = client.runs.create("llm.generate", TIDES, provider="openai").wait()
    assert [attempt.status for attempt in run.record.attempts] == ["failed", "completed"]
    first, second = [call for call in faults.calls if call.path.endswith("/completions")]
    assert second.at_s - first.at_s >= 0.4


def test_backs_off_exponentially(
    settings: Settings, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given failures without Retry-After, and the longest jitter, then each wait doubles."""
    monkeypatch.setattr(random, "uniform", lambda _, longest: longest)
    patient = settings.model_copy(update={"retry_base_s": 0.05, "retries": 3})
    faults.fail("openai", status=503, times=3)
    with Client.local(settings=patient, faults=faults) as client:
        assert client.runs.create("llm.generate", TIDES, provider="openai").wait(PATIENCE_S)
    calls = [call.at_s for call in faults.calls if call.path.endswith("/completions")]
    waits = [later - earlier for earlier, later in pairwise(calls)]
    assert len(waits) == 3
    assert all(wait >= minimum for wait, minimum in zip(waits, (0.05, 0.1, 0.2), strict=True))


def test_waits_for_the_provider_with_the_shortest_cooldown(client: Client, faults: Faults) -> None:
    """Given two providers that cool down, then a run waits for the shorter of the two times."""
    for provider, wait_s in (("minimax", "3600"), ("openai", "1")):
        faults.fail(provider, status=429, headers={"Retry-After": wait_s}, times=1)
        failed = client.runs.create("llm.generate", TIDES, provider=provider).wait(check=False)
        assert failed.error.code == "PROVIDER_RATE_LIMITED"
    assert client.runs.create("llm.generate", TIDES).wait().provider == "openai"
