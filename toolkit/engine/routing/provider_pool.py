"""The providers of a capability: its vendors, their models and an account's connections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from toolkit.contract.connections import Connection
from toolkit.contract.jobs import Options
from toolkit.engine.ranking import RankedCandidate, RankingCache
from toolkit.engine.routing.connection_health import HealthSnapshot
from toolkit.engine.routing.routing_table import RoutingTables
from toolkit.plugins import Model, Vendor

# Of one vendor: every job's record shows the connections that were considered.
MAX_CONNECTIONS = 20
# Of one set of connections: pins are the caller's words.
MAX_TABLES = 128
_HEALTHY = HealthSnapshot()


@dataclass(frozen=True, slots=True)
class ProviderPool:
    """The vendors, models and connections that the router chooses from.

    Attributes:
        vendors: the vendors that can serve the capability, in catalogue order.
        models: the models that each vendor, serving or not, may be asked for; the default first.
        connections: the connections that the account may use, by vendor: its own, the newest first,
            then connections shared with it.
        health: the health of each connection, by its id.
        failed_ids: the ids of the connections that have failed this job.
        pinned_id: the id of the only connection that may be used; None if any may.
        usd_per_s: US dollars a second of a worker at the endpoint that the options name, if known.
        rankings: the cache of the rankings of its tables.
        tables: the routing tables of these connections in this health, by capability, policy, pin
            and day.
    """

    vendors: Sequence[Vendor]
    models: Mapping[str, Sequence[Model]]
    connections: Mapping[str, Sequence[Connection]]
    health: Mapping[str, HealthSnapshot] = field(default_factory=dict)
    failed_ids: frozenset[str] = frozenset()
    pinned_id: str | None = None
    usd_per_s: Decimal | None = None
    rankings: RankingCache = field(default_factory=RankingCache, repr=False, compare=False)
    tables: RoutingTables = field(default_factory=dict, repr=False, compare=False)

    def is_connected(self, provider: str) -> bool:
        """Check whether the account has any connection to a vendor."""
        return bool(self.connections.get(provider))

    def find_health(self, connection: Connection | None) -> HealthSnapshot:
        """Return the health of a connection; an unknown connection is healthy."""
        return _HEALTHY if connection is None else self.health.get(connection.id, _HEALTHY)

    def exclude(self, failed: frozenset[str]) -> "ProviderPool":
        """Return this pool for a job that some connections have failed: others come next."""
        return self if failed == self.failed_ids else replace(self, failed_ids=failed, tables={})

    def rank_connections(self, provider: str) -> Sequence[Connection]:
        """Return the connections to a vendor in the order in which they are used.

        A pinned connection comes first. Connections that have failed this job, or may not be called
        now, come last; of the others, the healthiest comes first. Among equals the account's own
        come before connections shared with it, and the newest first.
        """
        ranked = sorted(self.connections.get(provider, ()), key=self._make_sort_key)
        return ranked[:MAX_CONNECTIONS]

    def explain_order(self, connection: Connection) -> str:
        """Explain why another connection of the same vendor comes before the given connection."""
        first = self.rank_connections(connection.provider)[0]
        better, worse = self._make_sort_key(first), self._make_sort_key(connection)
        if better[:-1] == worse[:-1] and connection.shared and not first.shared:
            return f"connected; `{first.id}` is your own"
        if better == worse:
            return f"connected; `{first.id}` is newer"
        return f"connected; `{first.id}` is healthier"

    def find_connection(self, candidate: RankedCandidate) -> Connection:
        """Return the connection of a candidate."""
        pool = self.connections[candidate.provider]
        return next(connection for connection in pool if connection.id == candidate.connection_id)

    def has_spare(self, connection: Connection, options: Options) -> bool:
        """Check whether another connection of the vendor is left and the pin allows it."""
        return options.pin != connection.id and any(
            spare.id != connection.id and spare.id not in self.failed_ids
            for spare in self.connections.get(connection.provider, ())
        )

    def _make_sort_key(
        self, connection: Connection
    ) -> tuple[bool, bool, bool, bool, bool, float, bool]:
        state = self.find_health(connection)
        return (
            connection.id != self.pinned_id,
            connection.id in self.failed_ids,
            state.wait_s > 0,
            state.unresolved,
            state.state != "closed",
            state.error_rate or 0.0,
            connection.shared,
        )


def resolve_pin(options: Options, providers: ProviderPool) -> tuple[Options, ProviderPool]:
    """Resolve a pin to its vendor, with the pinned connection as the only choice.

    The pin of a connection that the account does not have stays, and nothing fits it.
    """
    provider, pinned_id = options.pin, None
    for vendor, pool in providers.connections.items():
        if any(connection.id == provider for connection in pool):
            provider, pinned_id = vendor, provider
            break
    if provider == options.provider:
        return options, providers
    pinned = options.model_copy(update={"provider": provider})
    return pinned, replace(providers, pinned_id=pinned_id, tables={})
