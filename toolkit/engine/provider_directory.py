"""The providers that an account may use: their models, its connections and GPU clouds."""

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from toolkit.contract.base import now
from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.ids import Prefix, is_id
from toolkit.contract.jobs import Options
from toolkit.contract.money import from_wire_usd
from toolkit.engine.access.shares import Shares, read_connection
from toolkit.engine.provider_context import find_hosts
from toolkit.engine.ranking import RankingCache
from toolkit.engine.records import Records
from toolkit.engine.routing.connection_gate import GateRegistry
from toolkit.engine.routing.connection_set import ConnectionSet
from toolkit.engine.routing.model_offers import find_named_model, list_offered_models
from toolkit.engine.routing.provider_pool import ProviderPool
from toolkit.engine.routing.provider_selection import ProviderSelection
from toolkit.engine.routing.registry import Registry
from toolkit.plugins import Capability, Model, Vendor
from toolkit.settings import Settings
from toolkit.store import AccountScope, ConfigurationCache, ReadScope, Row, Store

log = logging.getLogger(__name__)

# Of one set of connections: the named providers are the caller's words.
MAX_POOLS = 128


class ProviderDirectory:
    """The finder of the present vendors, models and connections for work.

    Args:
        settings: settings, with the operator's models of each vendor.
        registry: capabilities and vendors.
        store: store of the connections.
        records: repositories over the store.
        shares: connections that accounts own and share.
        gates: gates of the connections.
        has_statistics: whether latencies and error rates count; without them, the same work is
            routed alike in every process.
    """

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        store: Store,
        records: Records,
        shares: Shares,
        gates: GateRegistry,
        *,
        has_statistics: bool,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._store = store
        self._records = records
        self._shares = shares
        self._gates = gates
        self._has_statistics = has_statistics
        self._connections: ConfigurationCache[ReadScope, ConnectionSet] = ConfigurationCache(
            store, self._load_connections
        )
        self._rankings = RankingCache()
        self._replaced = frozenset(
            vendor.id
            for vendor in registry.vendors.values()
            if find_hosts(vendor, settings).is_other
        )
        self._models: dict[str, tuple[date, Mapping[str, Sequence[Model]]]] = {}

    async def find_providers(
        self, scope: ReadScope, capability: Capability, options: Options
    ) -> ProviderPool:
        """Find the vendors, models and connections for a capability and a scope, as of now.

        If the options name an endpoint or a pod, its vendor is called through the connection that
        rented it, unless they name another of the account's own; never through a shared connection.

        Raises:
            RequestError: `PROVIDER_NOT_ALLOWED` for such a pin.
        """
        connection_set = await self._connections.find(scope)
        if options.endpoint_id is None and options.compute_id is None:
            return self._make_pool(capability, connection_set, options)
        place = await self._find_place(scope, options)
        pool = self._exclude_lent(connection_set.by_provider, options)
        owners = (name.partition("/")[0] for name in ProviderSelection.of(options).only)
        names_connection = any(is_id(owner, Prefix.CONNECTION) for owner in owners)
        if place is not None and not names_connection:
            try:
                connection = await self.find_renter(place)
                pool[connection.provider] = [connection]
            except RequestError:
                # Another key may belong to another account at the vendor, which lacks this place.
                pool = {p: connections for p, connections in pool.items() if not self._rents(p)}
        rate = None if place is None else _find_rate(place)
        return self._make_pool(capability, self._make_connection_set(pool), options, rate)

    def _make_pool(
        self,
        capability: Capability,
        connection_set: ConnectionSet,
        options: Options,
        usd_per_s: Decimal | None = None,
    ) -> ProviderPool:
        """Find the pool of a capability among the pools of some connections, or make it."""
        connection_set.refresh()
        pools, key = connection_set.pools, (capability.name, options.provider, now().date())
        pool = pools.get(key)
        if pool is None:
            if len(pools) >= MAX_POOLS:
                pools.clear()
            pool = pools[key] = self._build_pool(capability, connection_set, options, usd_per_s)
        return pool

    def _build_pool(
        self,
        capability: Capability,
        connection_set: ConnectionSet,
        options: Options,
        usd_per_s: Decimal | None,
    ) -> ProviderPool:
        """Build the pool of a capability from some connections, with the models that are named."""
        vendors = self._registry.find_vendors(capability)
        kind = capability.operation.kind if capability.operation else ""
        models = self._find_models(kind)
        selection = ProviderSelection.of(options)
        for vendor in vendors:
            group = connection_set.by_provider.get(vendor.id, ())
            names = selection.list_named_models(vendor.id, group)
            named = [self.find_named_model(vendor, kind, name) for name in names]
            if named:
                offers = [] if selection.is_pin else models[vendor.id]
                models = {**models, vendor.id: list({m.id: m for m in (*named, *offers)}.values())}
        return ProviderPool(
            vendors=vendors,
            models=models,
            connections=connection_set.by_provider,
            health=connection_set.health,
            usd_per_s=usd_per_s,
            selection=selection,
            replaced=self._replaced,
            rankings=self._rankings,
        )

    def _make_connection_set(
        self, connections: Mapping[str, Sequence[Connection]]
    ) -> ConnectionSet:
        gates = [
            self._gates.get_gate(connection)
            for group in connections.values()
            for connection in group
        ]
        return ConnectionSet(connections, gates, has_statistics=self._has_statistics)

    async def list_connections(self, scope: ReadScope) -> Mapping[str, Sequence[Connection]]:
        """List the connections to each vendor that an account may use.

        Its own connections come before shared connections, each newest first.
        """
        return (await self._connections.find(scope)).by_provider

    async def _load_connections(self, scope: ReadScope) -> ConnectionSet:
        """Load a scope's connections, and make the gate of each, by the health in its row."""
        by_provider: dict[str, list[Connection]] = {}
        own_rows, shared_rows = (
            await self._shares.list_own(scope),
            await self._shares.list_shared(scope),
        )
        for connection, row in (*own_rows, *shared_rows):
            self._gates.get_gate(connection, row["health"])
            by_provider.setdefault(connection.provider, []).append(connection)
        return self._make_connection_set(by_provider)

    def _exclude_lent(
        self, pool: Mapping[str, Sequence[Connection]], options: Options
    ) -> dict[str, Sequence[Connection]]:
        """Return the connections without those shared by others to vendors of infrastructure.

        An endpoint or pod belongs to the account that rented it, and another account's key does not
        reach it.

        Raises:
            RequestError: `PROVIDER_NOT_ALLOWED` if the options pin such a connection.
        """
        usable_pool: dict[str, Sequence[Connection]] = {}
        for provider, group in pool.items():
            shared_connections = [
                connection for connection in group if connection.shared and self._rents(provider)
            ]
            if any(connection.id == options.pin for connection in shared_connections):
                raise RequestError(
                    ErrorCode.PROVIDER_NOT_ALLOWED,
                    "A connection that is shared with you cannot use your endpoint or pod: pin a"
                    " connection of your own, or none.",
                )
            connections = [
                connection for connection in group if connection not in shared_connections
            ]
            if connections:
                usable_pool[provider] = connections
        return usable_pool

    async def _find_place(self, scope: ReadScope, options: Options) -> Row | None:
        """Find the row of the endpoint or pod that the options name.

        Returns None if they name none, or the account does not have it.
        """
        if options.endpoint_id is not None:
            return await self._records.endpoints.find_row(scope, options.endpoint_id)
        if options.compute_id is not None:
            return await self._records.compute.find_row(scope, options.compute_id)
        return None

    async def find_renter(self, place: Row) -> Connection:
        """Find the connection that rented an endpoint or pod.

        If it was deleted, another connection of the owner with an equal pointer is found.

        Raises:
            RequestError: `CREDENTIALS_MISSING` if there is neither.
        """
        renter = await self._store.get_row("connections", str(place["connection_id"]))
        if renter is None:
            raise RequestError(
                ErrorCode.CREDENTIALS_MISSING,
                "The connection that created this resource is gone: connect its vendor again with"
                " the same secret_ref.",
            )
        connection = read_connection(renter)
        if not renter["deleted"]:
            self._gates.get_gate(connection, renter["health"])
            return connection
        pointer = (connection.connection_type, connection.secret_ref)
        for candidate, row in await self._shares.list_own(AccountScope(str(place["account_id"]))):
            is_same = (candidate.connection_type, candidate.secret_ref) == pointer
            if is_same and candidate.provider == connection.provider:
                self._gates.get_gate(candidate, row["health"])
                return candidate
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING,
            f"The connection that rented it was deleted: connect {connection.provider} again with"
            " the same pointer.",
        )

    def _rents(self, provider: str) -> bool:
        vendor = self._registry.vendors.get(provider)
        return vendor is not None and bool(vendor.infrastructure)

    async def mark_overbilled(self, connection_id: str, model: str) -> None:
        """Mark a model that billed more than its bound: no process uses it under a budget again."""
        row = await self._store.get_row("connections", connection_id)
        if row is not None:
            connection = read_connection(row)
            connection.overbilled = sorted({*connection.overbilled, model})
            log.warning("%s billed more for %s than its bound", connection.provider, model)
            await self.save_connection(connection)

    async def save_connection(self, connection: Connection) -> None:
        """Save the present state of a connection."""
        await self._store.write([self._records.connections.make_update(connection)])

    async def find_cloud(self, scope: ReadScope, kind: str) -> tuple[Vendor, Connection]:
        """Find the vendor that offers a kind of infrastructure, and the account's connection to it.

        Rented resources are billed by the hour to the key's owner, so the account must own the key.

        Raises:
            RequestError: `CREDENTIALS_MISSING`; `FORBIDDEN` if a connection is only shared with it.
        """
        offering = [v for v in self._registry.vendors.values() if kind in v.infrastructure]
        pool = await self.list_connections(scope)
        for vendor in offering:
            first = next(iter(pool.get(vendor.id, ())), None)
            if first is not None and not first.shared:
                return vendor, first
        names = ", ".join(vendor.id for vendor in offering)
        if any(vendor.id in pool for vendor in offering):
            raise RequestError(
                ErrorCode.FORBIDDEN,
                "A connection that is shared with you is only for runs, because rented resources"
                f" are billed by the hour: register {names} yourself.",
            )
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING, f"This needs a connection: register {names}."
        )

    def list_models(self, vendor: Vendor, kind: str) -> Sequence[Model]:
        """List the models that a vendor may be asked for today, the default first."""
        return self._find_models(kind)[vendor.id]

    def find_named_model(self, vendor: Vendor, kind: str, name: str) -> Model:
        """Find the model of a name, at today's prices; an unknown model has no list price."""
        settings = self._settings.vendors.get(vendor.id)
        return find_named_model(vendor, kind, name, settings, now().date())

    def _find_models(self, kind: str) -> Mapping[str, Sequence[Model]]:
        today = now().date()
        day, models = self._models.get(kind, (None, {}))
        if day != today:
            settings = self._settings.vendors
            models = {
                vendor.id: list_offered_models(vendor, kind, settings.get(vendor.id), today)
                for vendor in self._registry.vendors.values()
            }
            self._models[kind] = today, models
        return models


def _find_rate(place: Row) -> Decimal | None:
    """Return a worker's US dollars a second by its endpoint's first price; None if unknown."""
    price = json.loads(str(place["doc"])).get("price_per_hour_usd")
    return None if price is None else from_wire_usd(price) / 3600
