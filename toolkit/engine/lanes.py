"""The gate of each connection: its health, its limit of concurrent calls, and the queue."""

import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError

from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode
from toolkit.engine.health import Condition, Health, Pass, RetryBudget, Saved
from toolkit.engine.limiter import FairLimiter
from toolkit.engine.telemetry import LaneState
from toolkit.plugins import VendorFault
from toolkit.settings import Settings
from toolkit.store import Store, Update

# A connection that has never answered may have a wrong key or a vendor that is down: few calls
# find that out as well as many.
AT_FIRST = 2
# A change of statistics alone is written at most this often.
SAVE_EVERY_S = 1.0


class CoolingDown(Exception):  # noqa: N818 - no error: the job is routed anew
    """Raised when a waiting call is let in and the circuit breaker of its connection is open."""


class Lane:
    """The gate that all calls of this process to one connection pass.

    Attributes:
        retries: what is left of the vendor's retry budget; shared by its connections.
    """

    def __init__(
        self,
        connection: Connection,
        health: Health,
        at_once: int,
        retries: RetryBudget,
        store: Store,
    ) -> None:
        self.retries = retries
        self._connection_id, self._provider = connection.id, connection.provider
        self._health = health
        first = at_once if health.known else min(AT_FIRST, at_once)
        self._limiter, self._held_back = FairLimiter(first), at_once - first
        self._store = store
        self._saved_at = 0.0

    def condition(self) -> Condition:
        """Return the health of the connection, for the router."""
        return self._health.condition()

    def state(self) -> LaneState:
        """Return the state of the connection, for the operator."""
        return LaneState(self._provider, self._health.state, self._limiter.waiting)

    @asynccontextmanager
    async def turn(self, group: str) -> AsyncIterator[Pass]:
        """Wait for a place and a permit for one call; groups are served round-robin.

        Raises:
            CoolingDown: when its turn came, the connection was not to be called.
        """
        await self._limiter.acquire(group)
        try:
            leave = self._health.admit()
            if leave is None:
                raise CoolingDown
            try:
                yield leave
            finally:
                self._health.done(leave)
        finally:
            self._limiter.release()

    def succeeded(self, model: str, took_ms: float) -> None:
        """Record a call that worked."""
        self.retries.refund()
        self._limiter.widen(self._held_back)
        self._held_back = 0
        self._save(urgent=self._health.succeeded(model, took_ms))

    def failed(self, fault: VendorFault, leave: Pass) -> None:
        """Record the failure of the call that this was the permit for."""
        self._save(urgent=self._health.failed(fault, leave))

    def note_test(self, error: ErrorCode | None) -> None:
        """Record the error that a test of the connection had; none if the vendor took its key."""
        self._health.note_test(error)
        self._save(urgent=True)

    def _save(self, *, urgent: bool) -> None:
        """Save the connection's health in its row; the last writer wins, which is good enough."""
        if not urgent and time.monotonic() - self._saved_at < SAVE_EVERY_S:
            return
        self._saved_at = time.monotonic()
        doc = self._health.saved().model_dump_json()
        saved = Update("connections", self._connection_id, {"health": doc})
        self._store.write([saved], eager=False)


class Lanes:
    """The gates of this process, each made when its connection is first used."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._lanes: dict[str, Lane] = {}
        self._budgets: defaultdict[str, RetryBudget] = defaultdict(RetryBudget)

    def of(self, connection: Connection, saved: Any = None) -> Lane:
        """Return the gate of a connection.

        Args:
            connection: the connection.
            saved: the health in its row, for a gate that has yet to be made.
        """
        lane = self._lanes.get(connection.id)
        if lane is None:
            health = Health(
                failures=self._settings.breaker_failures,
                cooldown_s=self._settings.breaker_cooldown_s,
                saved=_read(saved),
            )
            at_once = self._settings.calls_at_once(connection.provider)
            budget = self._budgets[connection.provider]
            lane = Lane(connection, health, at_once, budget, self._store)
            self._lanes[connection.id] = lane
        return lane

    def states(self) -> list[LaneState]:
        """Return the state of every connection that was used."""
        return [lane.state() for lane in self._lanes.values()]


def _read(saved: object) -> Saved | None:
    try:
        return Saved.model_validate_json(saved) if isinstance(saved, str) else None
    except ValidationError:
        return None  # statistics are not worth a failure
