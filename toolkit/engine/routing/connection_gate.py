"""The gate of each connection: its health, its limit of concurrent calls, and the queue."""

import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError

from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.observer import GateState
from toolkit.engine.routing.connection_health import (
    ConnectionHealth,
    HealthSnapshot,
    Permit,
    RetryBudget,
    SavedHealth,
)
from toolkit.plugins import ProviderError
from toolkit.settings import Settings
from toolkit.store import Store, UpdateRow

# A connection that has never answered may have a wrong key or a vendor that is down: few calls
# find that out as well as many.
INITIAL_CONCURRENCY = 2
# A change of statistics alone is written at most this often.
SAVE_INTERVAL_S = 1.0


class CircuitOpen(Exception):  # noqa: N818 - no error: the job is routed anew
    """Raised when a waiting call is let in and the circuit breaker of its connection is open."""


class ConnectionGate:
    """The gate that all calls of this process to one connection pass.

    Attributes:
        retry_budget: what is left of the vendor's retry budget; shared by its connections.
    """

    def __init__(
        self,
        connection: Connection,
        health: ConnectionHealth,
        at_once: int,
        retries: RetryBudget,
        store: Store,
    ) -> None:
        self.retry_budget = retries
        self._connection_id, self._provider = connection.id, connection.provider
        self._health = health
        first = at_once if health.has_answered else min(INITIAL_CONCURRENCY, at_once)
        self._semaphore, self._held_back = FairSemaphore(first), at_once - first
        self._store = store
        self._saved_at = 0.0

    def snapshot_health(self) -> HealthSnapshot:
        """Return the health of the connection, for the router."""
        return self._health.snapshot()

    def snapshot_state(self) -> GateState:
        """Return the state of the connection, for the operator."""
        return GateState(self._provider, self._health.state, self._semaphore.waiting_count)

    @asynccontextmanager
    async def acquire(self, group: str) -> AsyncIterator[Permit]:
        """Wait for a place and a permit for one call; groups are served round-robin.

        Raises:
            CircuitOpen: when its turn came, the connection was not to be called.
        """
        await self._semaphore.acquire(group)
        try:
            permit = self._health.admit()
            if permit is None:
                raise CircuitOpen
            try:
                yield permit
            finally:
                self._health.release(permit)
        finally:
            self._semaphore.release()

    def record_success(self, model: str, took_ms: float) -> None:
        """Record a call that worked."""
        self.retry_budget.refund()
        self._semaphore.widen(self._held_back)
        self._held_back = 0
        self._save_health(urgent=self._health.record_success(model, took_ms))

    def record_failure(self, error: ProviderError, permit: Permit) -> None:
        """Record the failure of the call that this was the permit for."""
        self._save_health(urgent=self._health.record_failure(error, permit))

    def record_test(self, error: ErrorCode | None) -> None:
        """Record the error that a test of the connection had; none if the vendor took its key."""
        self._health.record_test(error)
        self._save_health(urgent=True)

    def _save_health(self, *, urgent: bool) -> None:
        """Save the connection's health in its row; the last writer wins, which is good enough."""
        if not urgent and time.monotonic() - self._saved_at < SAVE_INTERVAL_S:
            return
        self._saved_at = time.monotonic()
        doc = self._health.to_saved().model_dump_json()
        saved = UpdateRow("connections", self._connection_id, {"health": doc})
        self._store.write([saved], eager=False)


class GateRegistry:
    """The gates of this process, each made when its connection is first used."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._gates: dict[str, ConnectionGate] = {}
        self._budgets: defaultdict[str, RetryBudget] = defaultdict(RetryBudget)

    def get_gate(self, connection: Connection, saved: Any = None) -> ConnectionGate:
        """Return the gate of a connection.

        Args:
            connection: the connection.
            saved: the health in its row, for a gate that has yet to be made.
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
            gate = ConnectionGate(connection, health, at_once, budget, self._store)
            self._gates[connection.id] = gate
        return gate

    def list_states(self) -> list[GateState]:
        """Return the state of every connection that was used."""
        return [gate.snapshot_state() for gate in self._gates.values()]


def _read_saved(saved: object) -> SavedHealth | None:
    try:
        return SavedHealth.model_validate_json(saved) if isinstance(saved, str) else None
    except ValidationError:
        return None  # statistics are not worth a failure
