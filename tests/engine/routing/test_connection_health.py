"""The circuit breaker, by a clock of its own."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

DOWN = ProviderError(ErrorCode.PROVIDER_UNAVAILABLE, "down")


@dataclass
class HealthClock:
    """Seconds that pass when they are told to."""

    now: float = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock() -> HealthClock:
    """A clock that stands still."""
    return HealthClock()


@pytest.fixture
def health(clock: HealthClock) -> ConnectionHealth:
    """A connection of which nothing is known yet."""
    return ConnectionHealth(failures=3, cooldown_s=5.0, clock=clock)


def fail(health: ConnectionHealth, times: int = 1, fault: ProviderError = DOWN) -> None:
    """Make calls that fail, where they are let through."""
    for _ in range(times):
        leave = health.admit()
        assert leave is not None
        health.record_failure(fault, leave)
        health.release(leave)


def test_it_opens_after_failures_in_a_row(health: ConnectionHealth, clock: HealthClock) -> None:
    """Given three failures in a row, then nothing is let through until it has cooled down."""
    fail(health, 2)
    health.record_success("m", 10)
    fail(health, 3)
    assert (health.state, health.admit()) == ("open", None)
    assert health.snapshot().wait_s == pytest.approx(5.0)
    assert "circuit breaker open" in health.snapshot().reason
    clock.now += 5.0
    assert (health.state, health.snapshot().wait_s) == ("half_open", 0.0)


def test_one_probe_decides(health: ConnectionHealth, clock: HealthClock) -> None:
    """Given it has cooled down, then one call goes through, and its success closes the breaker."""
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


def test_a_probe_that_fails_doubles_the_wait(health: ConnectionHealth, clock: HealthClock) -> None:
    """Given probes that fail, then each wait is twice the one before, and at most a minute."""
    fail(health, 3)
    waits = []
    for _ in range(6):
        waits.append(health.snapshot().wait_s)
        clock.now += waits[-1]
        fail(health)
    assert waits == pytest.approx([5, 10, 20, 40, 60, 60])


def test_a_probe_that_was_cancelled_leaves_room_for_another(
    health: ConnectionHealth, clock: HealthClock
) -> None:
    """Given a probe whose job was cancelled, then the next call may find out."""
    fail(health, 3)
    clock.now += 5.0
    probe = health.admit()
    assert probe is not None
    health.release(probe)
    assert health.admit() is not None


def test_an_old_call_that_ends_badly_is_no_probe(
    health: ConnectionHealth, clock: HealthClock
) -> None:
    """Given a call from before the breaker opened, when it fails late, then the probe goes on."""
    late = health.admit()
    assert late is not None
    fail(health, 3)
    clock.now += 5.0
    probe = health.admit()
    health.record_failure(DOWN, late)
    health.release(late)
    assert probe is not None
    assert health.state == "half_open"
    assert health.admit() is None  # the probe is still out


def test_half_of_the_calls_failing_opens_it(health: ConnectionHealth) -> None:
    """Given failures that are never three in a row, then their rate opens it all the same."""
    for _ in range(10):
        fail(health)
        health.record_success("m", 10)
        if health.state == "open":
            break
    fail(health)
    assert health.state == "open"


@pytest.mark.parametrize(
    "fault",
    [
        ProviderError(ErrorCode.PROVIDER_REJECTED, "no"),
        ProviderError(ErrorCode.PROVIDER_RATE_LIMITED, "slow down"),
        ProviderError(ErrorCode.PROVIDER_AUTH_FAILED, "wrong key"),
        ProviderError(ErrorCode.PROVIDER_BAD_RESPONSE, "raise max_tokens", retryable=False),
        ProviderError(ErrorCode.SECRET_UNRESOLVED, "no such variable"),
    ],
    ids=lambda fault: fault.code.name,
)
def test_what_does_not_speak_against_a_vendor(
    health: ConnectionHealth, fault: ProviderError
) -> None:
    """Given refusals, limits or pointers that lead nowhere, then the breaker stays closed."""
    fail(health, 30, fault)
    assert health.state == "closed"


def test_retry_after_holds_everyone_back(health: ConnectionHealth, clock: HealthClock) -> None:
    """Given a limit with Retry-After, then nobody calls before its time, and then all may."""
    fail(health, 1, ProviderError(ErrorCode.PROVIDER_RATE_LIMITED, "slow down", retry_after=7.0))
    assert (health.state, health.admit()) == ("closed", None)
    assert health.snapshot().wait_s == pytest.approx(7.0)
    clock.now += 7.0
    assert health.admit() is not None
    assert health.admit() is not None


def test_latencies_are_told_by_model(health: ConnectionHealth) -> None:
    """Given calls that worked, then median and 95th percentile are nearest ranks."""
    assert health.snapshot().error_rate is None
    for took in range(1, 101):
        health.record_success("m", float(took))
    condition = health.snapshot()
    assert (condition.latency["m"].p50, condition.latency["m"].p95) == (50, 95)
    assert condition.error_rate == 0


def test_what_is_kept_comes_back(health: ConnectionHealth, clock: HealthClock) -> None:
    """Given an open breaker, when a new process reads what was kept, then it is open there too."""
    health.record_success("m", 12.34)
    fail(health, 3)
    kept = SavedHealth.model_validate_json(health.to_saved().model_dump_json())
    again = ConnectionHealth(failures=3, cooldown_s=5.0, saved=kept, clock=clock)
    assert again.state == "open"
    assert again.snapshot().wait_s == pytest.approx(5.0, abs=0.5)
    assert again.snapshot().latency["m"].p50 == 12.3


@given(st.lists(st.booleans(), max_size=200))
def test_retries_never_pass_their_budget(works: list[bool]) -> None:
    """Given any weather, then retries are at most 20 and half of what worked."""
    budget = RetryBudget()
    retries = worked = 0
    for ok in works:
        if ok:
            worked += 1
            budget.refund()
        elif budget.take():
            retries += 1
        assert retries <= 20 + worked / 2


def test_a_test_of_the_key_counts() -> None:
    """Given a refused key, when a free test tells of it, then what failed before is forgotten."""
    health = ConnectionHealth(failures=5, cooldown_s=5.0)
    health.record_test(ErrorCode.PROVIDER_AUTH_FAILED)
    assert health.snapshot().error_rate == 1.0
    health.record_test(ErrorCode.SECRET_UNRESOLVED)
    assert health.snapshot().unresolved
    health.record_test(None)
    assert (health.snapshot().error_rate, health.snapshot().unresolved) == (None, False)


def test_the_snapshot_is_the_same_object_until_something_changes(
    health: ConnectionHealth, clock: HealthClock
) -> None:
    """Given a connection that does well, then its latencies are summarized once a second."""
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


def test_a_failure_is_seen_at_once(health: ConnectionHealth, clock: HealthClock) -> None:
    """Given a settled snapshot, then a failure, a cooldown and its end each replace it."""
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
