"""The gate of each connection: its health, its limit of concurrent calls, and the queue."""

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError

from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.concurrency.token_buckets import UnitPace
from toolkit.engine.limits.deployment import Deployment
from toolkit.engine.limits.paces import MARGIN, SharedPaces
from toolkit.engine.limits.places import SharedPlaces
from toolkit.engine.observer import GateState
from toolkit.engine.routing.connection_health import (
    ConnectionHealth,
    HealthSnapshot,
    Permit,
    RetryBudget,
    SavedHealth,
)
from toolkit.engine.routing.shared_health import SharedHealth
from toolkit.plugins import ProviderError
from toolkit.settings import Settings
from toolkit.store import Store, UpdateRow

# A connection that has never answered may have a wrong key or a vendor that is down: few calls
# reveal that as well as many.
INITIAL_CONCURRENCY = 2
# A change of statistics alone is written at most this often.
SAVE_INTERVAL_S = 1.0
# The tokens of this many seconds may be used at once after a pause: vendors count by the minute.
TOKEN_BURST_S = 5.0


class CircuitOpen(Exception):  # noqa: N818 - no error: the job is routed anew
    """Raised when a waiting call is let in and the circuit breaker of its connection is open."""


class ConnectionGate:
    """The gate that all calls of this process to one connection pass.

    Its limits are shared with the gates of other engines.

    Attributes:
        retry_budget: the rest of the vendor's retry budget; shared by its connections.
    """

    def __init__(
        self,
        connection: Connection,
        health: ConnectionHealth,
        at_once: int,
        paces: Mapping[str, UnitPace],
        retries: RetryBudget,
        store: Store,
        deployment: Deployment,
    ) -> None:
        self.retry_budget = retries
        self._connection_id, self._provider = connection.id, connection.provider
        self._health = health
        self._at_once, self._is_trusted = at_once, health.has_answered
        first = at_once if self._is_trusted else min(INITIAL_CONCURRENCY, at_once)
        self._semaphore = FairSemaphore(first)
        row_id = f"connection:{connection.id}"
        self._places = SharedPlaces(row_id, first, self._semaphore, deployment)
        self._paces = SharedPaces(row_id, paces, deployment)
        self._shared_health = SharedHealth(row_id, health, deployment)
        self._store = store
        self._saved_at = 0.0

    def snapshot_health(self) -> HealthSnapshot:
        """Return the health of the connection, for the router."""
        return self._health.snapshot()

    def snapshot_state(self) -> GateState:
        """Return the state of the connection, for the operator."""
        return GateState(self._provider, self._health.state, self._semaphore.waiting_count)

    @property
    def is_full(self) -> bool:
        """Return True if a call would have to wait until another has ended."""
        return self._semaphore.is_full

    @asynccontextmanager
    async def acquire(
        self, group: str, units: Mapping[str, float] | None = None
    ) -> AsyncIterator[Permit]:
        """Wait until the limits on calls at once and by the minute allow a call; yield its permit.

        Args:
            group: the group of the call; groups are served round-robin.
            units: the units that the call is expected to use of the vendor's limits by the minute.

        Raises:
            CircuitOpen: the connection must not be called when the call's turn comes.
        """
        await self._places.acquire(group)
        try:
            await self._paces.wait(units or {})
            is_probe = self._health.state == "half_open"
            if is_probe and not await self._shared_health.claim_probe():
                self._health.wait_for_probe()
            permit = self._health.admit()
            if permit is None:
                raise CircuitOpen
            try:
                yield permit
            finally:
                self._health.release(permit)
                if is_probe:
                    self._shared_health.release_probe()
        finally:
            self._places.release(group)

    def record_units(self, expected: Mapping[str, float], actual: Mapping[str, float]) -> None:
        """Record the units that a call used, given the units it was expected to use."""
        for name, units in actual.items():
            self._paces.adjust(name, units - expected.get(name, 0.0))

    def record_success(self, model: str, took_ms: float) -> None:
        """Record a call that worked; the first one raises the limit of concurrent calls."""
        self.retry_budget.refund()
        if not self._is_trusted:
            self._is_trusted = True
            self._places.set_limit(self._at_once)
        self._save_health(urgent=self._health.record_success(model, took_ms))

    def record_failure(self, error: ProviderError, permit: Permit) -> None:
        """Record the failure of the call that held this permit."""
        self._save_health(urgent=self._health.record_failure(error, permit))

    def record_test(self, error: ErrorCode | None) -> None:
        """Record the error of a test of the connection, or None if the vendor took its key."""
        self._health.record_test(error)
        self._save_health(urgent=True)

    def _save_health(self, *, urgent: bool) -> None:
        """Save the connection's health in its row; the last writer wins, which is good enough.

        Urgent news is also published to other engines; the rest is saved once in `SAVE_INTERVAL_S`.
        """
        if not urgent and time.monotonic() - self._saved_at < SAVE_INTERVAL_S:
            return
        self._saved_at = time.monotonic()
        if urgent:
            self._shared_health.publish()
        doc = self._health.to_saved().model_dump_json()
        saved = UpdateRow("connections", self._connection_id, {"health": doc})
        self._store.write([saved], eager=False)


class GateRegistry:
    """The gates of this process, each made when its connection is first used."""

    def __init__(self, settings: Settings, store: Store, deployment: Deployment) -> None:
        self._settings = settings
        self._store = store
        self._deployment = deployment
        deployment.watch_engines(self._share_retries)
        self._gates: dict[str, ConnectionGate] = {}
        self._budgets: defaultdict[str, RetryBudget] = defaultdict(RetryBudget)

    def get_gate(self, connection: Connection, saved: Any = None) -> ConnectionGate:
        """Return the gate of a connection.

        Args:
            connection: the connection.
            saved: the health in the connection's row, used if the gate must be made.
        """
        gate = self._gates.get(connection.id)
        if gate is None:
            health = ConnectionHealth(
                failures=self._settings.breaker_failures,
                cooldown_s=self._settings.breaker_cooldown_s,
                saved=_read_saved(saved),
            )
            at_once = self._settings.get_max_concurrent_calls(connection.provider)
            budget = self._budgets[connection.provider]
            budget.share(len(self._deployment.engines))
            gate = ConnectionGate(
                connection,
                health,
                at_once,
                self._make_paces(connection.provider),
                budget,
                self._store,
                self._deployment,
            )
            self._gates[connection.id] = gate
        return gate

    def _make_paces(self, provider: str) -> dict[str, UnitPace]:
        """Make the paces of a connection to a vendor from the limits that its operator states."""
        vendor = self._settings.vendors.get(provider)
        if vendor is None:
            return {}
        paces = {}
        if vendor.requests_per_minute is not None:
            paces["requests"] = UnitPace(vendor.requests_per_minute * MARGIN / 60, 0.0)
        if vendor.tokens_per_minute is not None:
            per_s = vendor.tokens_per_minute * MARGIN / 60
            paces["tokens"] = UnitPace(per_s, per_s * TOKEN_BURST_S)
        return paces

    def _share_retries(self) -> None:
        """Set the maximum of all retry budgets to one engine's share of the deployment's."""
        for budget in self._budgets.values():
            budget.share(len(self._deployment.engines))

    def list_states(self) -> list[GateState]:
        """Return the state of every connection that was used."""
        return [gate.snapshot_state() for gate in self._gates.values()]


def _read_saved(saved: object) -> SavedHealth | None:
    try:
        return SavedHealth.model_validate_json(saved) if isinstance(saved, str) else None
    except ValidationError:
        return None  # statistics are not worth a failure
