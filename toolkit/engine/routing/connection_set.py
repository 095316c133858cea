"""The connections that an account may use, and the pools that are made of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TypeAlias

from toolkit.contract.connections import Connection
from toolkit.engine.routing.connection_gate import ConnectionGate
from toolkit.engine.routing.connection_health import HealthSnapshot
from toolkit.engine.routing.provider_pool import ProviderPool

MakePool: TypeAlias = Callable[
    [Mapping[str, Sequence[Connection]], Mapping[str, HealthSnapshot]], ProviderPool
]


class ConnectionSet:
    """The connections that an account may use, with the health of each, and pools by capability.

    A pool, and the routing tables that are compiled of it, serve until the health of one of the
    connections changes. The set itself is as old as the configuration: whoever keeps it sees to
    that.

    Args:
        by_provider: the connections to each vendor.
        gates: the gate of each of them, in the same order.
        has_statistics: whether latencies and error rates count.
    """

    def __init__(
        self,
        by_provider: Mapping[str, Sequence[Connection]],
        gates: Sequence[ConnectionGate],
        *,
        has_statistics: bool = True,
    ) -> None:
        self.by_provider = by_provider
        self._all = [one for some in by_provider.values() for one in some]
        self._gates = gates
        self._has_statistics = has_statistics
        self._snapshots: list[HealthSnapshot] = []
        self._health: Mapping[str, HealthSnapshot] = {}
        self._pools: dict[str, tuple[date, ProviderPool]] = {}  # as many as there are capabilities

    def snapshot_health(self) -> Mapping[str, HealthSnapshot]:
        """Return the health of each connection, by its id; the same object while none changed."""
        found = [gate.snapshot_health() for gate in self._gates]
        if found != self._snapshots:
            self._snapshots = found
            self._health = {
                one.id: self._complete_snapshot(one, snapshot)
                for one, snapshot in zip(self._all, found, strict=True)
            }
            self._pools = {}
        return self._health

    def find_pool(self, capability: str, today: date, make: MakePool) -> ProviderPool:
        """Return the pool of a capability, as of now.

        Args:
            capability: its name.
            today: the day whose prices the pool has.
            make: makes the pool, of connections and their health.
        """
        health = self.snapshot_health()
        day, pool = self._pools.get(capability, (today, None))
        if pool is None or day != today:
            pool = make(self.by_provider, health)
            self._pools[capability] = today, pool
        return pool

    def _complete_snapshot(
        self, connection: Connection, snapshot: HealthSnapshot
    ) -> HealthSnapshot:
        """Add what is stored with a connection; leave out statistics where they do not count."""
        overbilled = frozenset(connection.overbilled)
        if self._has_statistics:
            return replace(snapshot, overbilled=overbilled) if overbilled else snapshot
        return replace(snapshot, overbilled=overbilled, latency={}, error_rate=None)
