"""The health of a connection: circuit breaker, latencies, and whether it may be called now."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from toolkit.contract.base import Timestamp, now
from toolkit.contract.errors import ErrorCode
from toolkit.contract.jobs import BreakerState
from toolkit.plugins import ProviderError

MAX_LATENCIES = 100
MAX_OUTCOMES = 20
MAX_COOLDOWN_S = 60.0
# Of a connection that does well, latencies are summarized anew for each of its first calls, and
# then at most this often: the router compares them, and one more of many hardly moves a median.
SUMMARY_INTERVAL_S = 1.0
FEW_LATENCIES = 20
# The wait while another job probes whether a connection has recovered.
PROBE_WAIT_S = 0.25
# Maximum seconds of a `Retry-After` that are honored: then the vendor is tried again.
MAX_RETRY_AFTER_S = 3600.0

# The codes that say that a vendor is down. A refused input or key, or a limit that was reached,
# shows that it is up: the caller gets the error at once, and a rotated key works at once.
_DOWN_CODES = frozenset({ErrorCode.PROVIDER_UNAVAILABLE, ErrorCode.PROVIDER_TIMEOUT})
_NEUTRAL_CODES = frozenset(
    {ErrorCode.SECRET_UNRESOLVED, ErrorCode.NOT_FOUND, ErrorCode.REPLAY_MISS}
)


@dataclass(frozen=True, slots=True)
class Latency:
    """The latencies of recent calls in milliseconds: median and 95th percentile."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """The health of a connection at one moment, for the router.

    Attributes:
        state: state of its circuit breaker.
        wait_s: the seconds for which it should not be called; 0 if it may be called now.
        reason: the reason in words, if it should not be called.
        latency: the latency of each model that was called.
        error_rate: the share of the last calls that failed; None before the first.
        overbilled: the models that billed more than was reserved for them.
        unresolved: whether its pointer led to no secret when this process last asked for it.
    """

    state: BreakerState = "closed"
    wait_s: float = 0.0
    reason: str = ""
    latency: Mapping[str, Latency] = field(default_factory=dict)
    error_rate: float | None = None
    overbilled: frozenset[str] = frozenset()
    unresolved: bool = False


class SavedHealth(BaseModel):
    """The health that is kept in the store, so that the next process starts with it."""

    model_config = ConfigDict(extra="ignore")

    state: BreakerState = "closed"
    until: Timestamp | None = None
    cooldowns: int = 0
    latency_ms: dict[str, list[float]] = {}
    outcomes: list[bool] = []


@dataclass(frozen=True, slots=True)
class BreakerPosition:
    """The position of a circuit breaker.

    Attributes:
        is_open: whether it lets through no more than a probe.
        blocked_until: when the connection may be called again, by the monotonic clock.
        cooldowns: number of times in a row that it has opened.
    """

    is_open: bool
    blocked_until: float
    cooldowns: int


class Permit:
    """The permit to make one call."""


class ConnectionHealth:
    """The health of one connection, learned from its calls.

    The breaker opens after `failures` in a row, or when half of the last 20 calls failed; a rate
    limit does not count, because the vendor is up. It then lets nothing through for `cooldown_s`,
    and after that a single probe, whose success closes it; each probe that fails doubles the wait,
    up to a minute.

    Args:
        failures: number of failures in a row that open the breaker.
        cooldown_s: seconds for which it stays open the first time.
        saved: the health that an earlier process saved.
        clock: a monotonic clock, in seconds.

    >>> ConnectionHealth(failures=5, cooldown_s=5.0).snapshot().state
    'closed'
    """

    def __init__(
        self,
        *,
        failures: int,
        cooldown_s: float,
        saved: SavedHealth | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        saved = saved or SavedHealth()
        self._failures = failures
        self._cooldown_s = cooldown_s
        self._clock = clock
        self._open = saved.state != "closed"
        self._blocked_until = clock() + _find_seconds_left(saved.until)
        self._cooldowns = saved.cooldowns
        self._consecutive_failures = 0
        self._probe: Permit | None = None
        self._unresolved = False  # by this process: another may have the secret
        # The last result of `snapshot`; None once it may be outdated.
        self._snapshot: HealthSnapshot | None = None
        self._snapshot_at = 0.0
        self._has_later_latencies = False  # later than the latencies summarized in the snapshot
        self._outcomes = deque(saved.outcomes, maxlen=MAX_OUTCOMES)
        self._recent_failures: deque[bool] = deque(maxlen=MAX_OUTCOMES)
        self._latency_ms = {
            model: deque(latencies, maxlen=MAX_LATENCIES)
            for model, latencies in saved.latency_ms.items()
        }

    @property
    def state(self) -> BreakerState:
        """The breaker's state. `closed`: calls pass; `open`: none does; `half_open`: one probes."""
        if not self._open:
            return "closed"
        return "open" if self._blocked_until > self._clock() else "half_open"

    @property
    def is_troubled(self) -> bool:
        """True while its breaker is not closed, or it must not be called."""
        return self._open or self._blocked_until > self._clock()

    def get_position(self) -> BreakerPosition:
        """Return the position of its breaker."""
        return BreakerPosition(self._open, self._blocked_until, self._cooldowns)

    def set_position(self, position: BreakerPosition) -> None:
        """Set its breaker to the position that another engine published."""
        self._snapshot = None
        if self._open and not position.is_open:
            self._probe, self._consecutive_failures = None, 0
        self._open, self._cooldowns = position.is_open, position.cooldowns
        latest = self._clock() + MAX_RETRY_AFTER_S
        self._blocked_until = min(position.blocked_until, latest)

    def wait_for_probe(self) -> None:
        """Block calls for a moment, while another engine probes the connection."""
        self._snapshot = None
        self._blocked_until = max(self._blocked_until, self._clock() + PROBE_WAIT_S)

    @property
    def has_answered(self) -> bool:
        """True if any call of the connection has ever succeeded."""
        return bool(self._latency_ms)

    def snapshot(self) -> HealthSnapshot:
        """Return the health as of now, for the router; the same object while nothing changed."""
        if self._snapshot is not None and not (
            self._has_later_latencies and self._clock() - self._snapshot_at >= SUMMARY_INTERVAL_S
        ):
            return self._snapshot
        wait_s, reason = self._find_wait()
        snapshot = HealthSnapshot(
            state=self.state,
            wait_s=wait_s,
            reason=reason,
            latency={
                model: _summarize_latency(latencies)
                for model, latencies in self._latency_ms.items()
                if latencies
            },
            error_rate=self._compute_error_rate(),
            unresolved=self._unresolved,
        )
        if not self._open and wait_s <= 0:  # else it changes by itself, as time passes
            self._snapshot, self._snapshot_at = snapshot, self._clock()
            self._has_later_latencies = False
        return snapshot

    def _find_wait(self) -> tuple[float, str]:
        wait_s = self._blocked_until - self._clock()
        if wait_s > 0:
            lead = "circuit breaker open" if self._open else "paused by its vendor"
            return wait_s, f"{lead} for {wait_s:.1f} s"
        if self._open and self._probe is not None:
            return PROBE_WAIT_S, "being probed after failures"
        return 0.0, ""

    def _compute_error_rate(self) -> float | None:
        if not self._outcomes:
            return None
        return self._outcomes.count(False) / len(self._outcomes)

    def admit(self) -> Permit | None:
        """Return the permit to make a call now, or None; give it back by `release`."""
        if self._blocked_until > self._clock() or (self._open and self._probe is not None):
            return None
        permit = Permit()
        if self._open:
            self._probe = permit
        return permit

    def release(self, permit: Permit) -> None:
        """Take back the permit of a call that is over."""
        if self._probe is permit:
            self._probe = None

    def record_success(self, model: str, took_ms: float) -> bool:
        """Record a call that worked; return whether this changed the state of the breaker."""
        changed = self._open
        did_well = bool(self._outcomes) and False not in self._outcomes and not self._unresolved
        if changed or not did_well or len(self._latency_ms.get(model, ())) < FEW_LATENCIES:
            self._snapshot = None
        self._has_later_latencies = True
        self._open, self._probe = False, None
        self._unresolved = False
        self._consecutive_failures = self._cooldowns = 0
        self._outcomes.append(True)
        self._recent_failures.append(False)
        latencies = self._latency_ms.setdefault(model, deque(maxlen=MAX_LATENCIES))
        latencies.append(round(took_ms, 1))
        return changed

    def record_failure(self, error: ProviderError, permit: Permit) -> bool:
        """Record a call that failed; return whether this changed when the next may be made."""
        self._snapshot = None
        probing = self._probe is permit
        if error.code is ErrorCode.CREDENTIALS_MISSING:
            return False  # no longer shared with the account that asked: no call was made
        self._unresolved = error.code is ErrorCode.SECRET_UNRESOLVED
        if error.code in _NEUTRAL_CODES:
            return False
        garbled = error.code is ErrorCode.PROVIDER_BAD_RESPONSE and error.retryable
        against = error.code in _DOWN_CODES or garbled
        self._outcomes.append(error.code is ErrorCode.PROVIDER_REJECTED)
        self._recent_failures.append(against)
        if error.retry_after is not None and error.retryable:
            # This applies to everyone who uses this connection.
            self._blocked_until = max(
                self._blocked_until, self._clock() + min(error.retry_after, MAX_RETRY_AFTER_S)
            )
        if not against:
            self._consecutive_failures = 0
            if probing and error.code is not ErrorCode.PROVIDER_RATE_LIMITED:
                self._open, self._cooldowns = False, 0  # it answered, so it is up
            return probing or error.retry_after is not None
        self._consecutive_failures += 1
        if probing or (not self._open and self._should_trip()):
            self._trip()
            return True
        return error.retry_after is not None

    def record_test(self, error: ErrorCode | None) -> None:
        """Record the error of a free test of the key, or None if the vendor took the key.

        Earlier failures say nothing about a key that works now. A free test that is answered says
        nothing about paid calls: the breaker stays as it is.
        """
        self._snapshot = None
        self._unresolved = error is ErrorCode.SECRET_UNRESOLVED
        if error is None:
            self._outcomes.clear()
        elif error is ErrorCode.PROVIDER_AUTH_FAILED:
            self._outcomes.append(False)

    def _should_trip(self) -> bool:
        many = len(self._recent_failures) == MAX_OUTCOMES
        half = many and self._recent_failures.count(True) >= MAX_OUTCOMES / 2
        return self._consecutive_failures >= self._failures or half

    def _trip(self) -> None:
        wait_s = min(self._cooldown_s * 2**self._cooldowns, MAX_COOLDOWN_S)
        self._open = True
        self._cooldowns += 1
        self._blocked_until = max(self._blocked_until, self._clock() + wait_s)
        self._recent_failures.clear()  # once closed again, the breaker counts from zero

    def to_saved(self) -> SavedHealth:
        """Return the health that is worth saving for the next process."""
        wait_s = self._blocked_until - self._clock()
        until = (
            datetime.fromtimestamp(now().timestamp() + wait_s, now().tzinfo) if wait_s > 0 else None
        )
        return SavedHealth(
            state=self.state,
            until=until,
            cooldowns=self._cooldowns,
            latency_ms={model: list(latencies) for model, latencies in self._latency_ms.items()},
            outcomes=list(self._outcomes),
        )


class RetryBudget:
    """The budget of retries of one vendor: they must not multiply the load of an outage.

    Each retry takes one token of 20, and each call that works gives half a token back. In the long
    run at most every third call is therefore a retry.

    >>> budget = RetryBudget()
    >>> sum(budget.take() for _ in range(100))
    20
    """

    MAX_TOKENS = 20.0
    REFUND_TOKENS = 0.5

    def __init__(self) -> None:
        self._tokens = self.max_tokens = self.MAX_TOKENS

    def share(self, engines: int) -> None:
        """Set the maximum of the budget to one engine's share."""
        self.max_tokens = self.MAX_TOKENS / engines
        self._tokens = min(self._tokens, self.max_tokens)

    def take(self) -> bool:
        """Take a token for one more retry; return whether there was one."""
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def refund(self) -> None:
        """Give back part of a token for a call that worked."""
        self._tokens = min(self.max_tokens, self._tokens + self.REFUND_TOKENS)


def _summarize_latency(latencies: "deque[float]") -> Latency:
    ordered = sorted(latencies)
    return Latency(p50=_find_percentile(ordered, 0.5), p95=_find_percentile(ordered, 0.95))


def _find_percentile(ordered: list[float], share: float) -> float:
    """Return the nearest-rank percentile of a sorted list."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _find_seconds_left(until: datetime | None) -> float:
    """Return the seconds until a time by the wall clock, at least 0; also 0 for None.

    A process that starts has no other clock to compare with.
    """
    if until is None:
        return 0.0
    return min(max(0.0, until.timestamp() - time.time()), MAX_RETRY_AFTER_S)
