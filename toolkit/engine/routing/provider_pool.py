"""The providers of a capability: its vendors, their models and an account's connections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from toolkit.contract.connections import Connection
from toolkit.contract.jobs import Options
from toolkit.engine.ranking import RankedCandidate, RankingCache
from toolkit.engine.routing.connection_health import HealthSnapshot
from toolkit.engine.routing.provider_selection import ProviderSelection
from toolkit.engine.routing.routing_table import RoutingTables
from toolkit.plugins import Model, Vendor

# Of one vendor: every job's record shows the connections that were considered.
MAX_CONNECTIONS = 20
# Of one set of connections: pins and lists are the caller's words.
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
        selection: the providers, connections and models that the request leaves.
        usd_per_s: US dollars a second of a worker at the endpoint that the options name, if known.
        replaced: the ids of the vendors that another server replaces, by the settings.
        rankings: the cache of the rankings of its tables.
        tables: the routing tables of these connections in this health, by capability, policy, pin
            and day.
        served: the requests that `check_servable` found to be servable, by capability, place and
            needs.
    """

    vendors: Sequence[Vendor]
    models: Mapping[str, Sequence[Model]]
    connections: Mapping[str, Sequence[Connection]]
    health: Mapping[str, HealthSnapshot] = field(default_factory=dict)
    failed_ids: frozenset[str] = frozenset()
    selection: ProviderSelection = field(default_factory=ProviderSelection)
    usd_per_s: Decimal | None = None
    replaced: frozenset[str] = frozenset()
    rankings: RankingCache = field(default_factory=RankingCache, repr=False, compare=False)
    tables: RoutingTables = field(default_factory=dict, repr=False, compare=False)
    served: set[tuple[object, ...]] = field(default_factory=set, repr=False, compare=False)

    def is_connected(self, provider: str) -> bool:
        """Check whether the account has a connection to a vendor that the selection admits."""
        return any(map(self.selection.admits_connection, self.connections.get(provider, ())))

    def find_provider(self, owner: str) -> str | None:
        """Find the vendor of an id that names a vendor or a connection."""
        if owner in self.models or any(vendor.id == owner for vendor in self.vendors):
            return owner
        pairs = ((p, c.id) for p, pool in self.connections.items() for c in pool)
        return next((provider for provider, id in pairs if id == owner), None)

    def admits(self, provider: str, model: Model | None) -> bool:
        """Check whether the selection admits a model, through any present or new connection."""
        return any(
            self.selection.explain_exclusion(provider, connection, model) is None
            for connection in (None, *self.connections.get(provider, ()))
        )

    def find_health(self, connection: Connection | None) -> HealthSnapshot:
        """Return the health of a connection; an unknown connection is healthy."""
        return _HEALTHY if connection is None else self.health.get(connection.id, _HEALTHY)

    def exclude(self, failed: frozenset[str]) -> "ProviderPool":
        """Return this pool with other failed connections, which are used only after all others."""
        return self if failed == self.failed_ids else replace(self, failed_ids=failed, tables={})

    def select(self, options: Options) -> "ProviderPool":
        """Return this pool with the selection of a request."""
        selection = ProviderSelection.of(options)
        if selection == self.selection:
            return self
        return replace(self, selection=selection, tables={}, served=set())

    def rank_connections(self, provider: str) -> Sequence[Connection]:
        """Return the first `MAX_CONNECTIONS` connections to a vendor, in the order of their use.

        Connections that the selection admits come first. Connections that have failed this job, or
        may not be called now, come last; of the others, the healthiest comes first. Among equals
        the account's own come before connections shared with it, and the newest first.
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
        """Check whether another connection of the vendor may still be tried for this job.

        It may not if the options name this connection as the only choice.
        """
        return options.pin != connection.id and any(
            spare.id != connection.id and spare.id not in self.failed_ids
            for spare in self.connections.get(connection.provider, ())
        )

    def _make_sort_key(
        self, connection: Connection
    ) -> tuple[bool, bool, bool, bool, bool, float, bool]:
        state = self.find_health(connection)
        return (
            not self.selection.admits_connection(connection),
            connection.id in self.failed_ids,
            state.wait_s > 0,
            state.unresolved,
            state.state != "closed",
            state.error_rate or 0.0,
            connection.shared,
        )
