"""The connections that an account may use, and the health of each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolkit.contract.connections import Connection
from toolkit.engine.routing.connection_gate import ConnectionGate
from toolkit.engine.routing.connection_health import HealthSnapshot
from toolkit.engine.routing.provider_pool import ProviderPool


class ConnectionSet:
    """The connections that an account may use, with the health of each, and provider pools.

    The pools serve until the health of one of the connections changes. The set itself is as old
    as the configuration; its owner replaces it when the configuration changes.

    Attributes:
        by_provider: the connections to each vendor.
        health: the health of each connection by its id, as of the last `refresh`.
        pools: the provider pools that were made since the health last changed, by capability,
            named providers and day.

    Args:
        by_provider: the connections to each vendor.
        gates: the gate of each connection, in the same order.
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
        self.health: Mapping[str, HealthSnapshot] = {}
        self.pools: dict[tuple[object, ...], ProviderPool] = {}
        self._all = [connection for pool in by_provider.values() for connection in pool]
        self._gates = gates
        self._has_statistics = has_statistics
        self._snapshots: list[HealthSnapshot] = []

    def refresh(self) -> None:
        """Update the health of each connection; if it changed, drop the pools."""
        snapshots = [gate.snapshot_health() for gate in self._gates]
        if snapshots != self._snapshots:
            self._snapshots = snapshots
            self.health = {
                connection.id: self._complete_snapshot(connection, snapshot)
                for connection, snapshot in zip(self._all, snapshots, strict=True)
            }
            self.pools = {}

    def _complete_snapshot(
        self, connection: Connection, snapshot: HealthSnapshot
    ) -> HealthSnapshot:
        """Return a snapshot with stored facts added, without statistics if they do not count."""
        overbilled = frozenset(connection.overbilled)
        if self._has_statistics:
            return replace(snapshot, overbilled=overbilled) if overbilled else snapshot
        return replace(snapshot, overbilled=overbilled, latency={}, error_rate=None)
