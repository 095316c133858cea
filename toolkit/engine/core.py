"""What every part of the engine is given: one value, made once when the engine opens."""

import json
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property

from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode, RequestError, not_found
from toolkit.engine.allowance import Allowances
from toolkit.engine.grants import Grants
from toolkit.engine.health import Condition
from toolkit.engine.lanes import Lanes
from toolkit.engine.offers import models_offered
from toolkit.engine.quota import Quotas
from toolkit.engine.reach import Reach
from toolkit.engine.router import Backends
from toolkit.engine.slots import Slots
from toolkit.engine.telemetry import Observer, Unobserved
from toolkit.plugins import Capability, Model, Vendor
from toolkit.store import Row, Store


@dataclass(kw_only=True)
class Core(Reach):
    """The engine's shared parts.

    Attributes:
        reproducible: whether the same work is to be routed alike in every process: what calls took
            and how many failed is then not weighed.
        making: ids of what this process is having made or deleted at a GPU cloud.
        observer: who is told of workflows, jobs and calls.
        endpoint_rates: US dollars a second of a worker at each endpoint that was looked at.
    """

    store: Store
    grants: Grants
    slots: Slots
    lanes: Lanes
    allowances: Allowances
    quotas: Quotas
    draining: bool = False
    reproducible: bool = False
    observer: Observer = field(default_factory=Unobserved)
    making: set[str] = field(default_factory=set)
    endpoint_rates: dict[str, Decimal | None] = field(default_factory=dict)

    async def backends(self, account_id: str, capability: Capability) -> Backends:
        """What the router weighs for a capability and an account, as of now."""
        vendors = self.registry.backends(capability)
        kind = capability.operation.kind if capability.operation else ""
        pool = await self.connection_pool(account_id)
        states = {one.id: self._condition(one) for some in pool.values() for one in some}
        return Backends(
            vendors=vendors,
            connections={},
            models={vendor.id: self.models(vendor, kind) for vendor in vendors},
            pool=pool,
            states=states,
            rates=self.endpoint_rates,
        ).without(frozenset())

    def _condition(self, connection: Connection) -> Condition:
        condition = self.lanes.of(connection).condition()
        return replace(condition, latency={}, error_rate=None) if self.reproducible else condition

    async def connections(self, account_id: str) -> dict[str, Connection]:
        """The newest connection an account has at each vendor."""
        return {p: pool[0] for p, pool in (await self.connection_pool(account_id)).items()}

    async def connection_pool(self, account_id: str) -> dict[str, list[Connection]]:
        """The connections an account has at each vendor, the newest first."""
        rows = await self.store.find("connections", account_id=account_id, deleted=False)
        found: dict[str, list[Connection]] = {}
        for row in reversed(rows):
            connection = Connection.model_validate_json(str(row["doc"]))
            self.lanes.of(connection, row["health"])
            found.setdefault(connection.provider, []).append(connection)
        return found

    async def load_rate(self, endpoint_id: str | None) -> None:
        """Have the price of an endpoint's worker at hand for the router."""
        if endpoint_id is None or endpoint_id in self.endpoint_rates:
            return
        row = await self.store.get("endpoints", endpoint_id)
        told = None if row is None else json.loads(str(row["doc"])).get("price_per_hour_usd")
        rate = None if told is None else Decimal(str(told)) / 3600
        self.endpoint_rates[endpoint_id] = rate

    async def cloud(self, account_id: str, kind: str) -> tuple[Vendor, Connection]:
        """The vendor that offers a kind of infrastructure, and the account's connection to it.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        offering = [v for v in self.registry.vendors.values() if kind in v.infrastructure]
        connections = await self.connections(account_id)
        for vendor in offering:
            if vendor.id in connections:
                return vendor, connections[vendor.id]
        names = ", ".join(vendor.id for vendor in offering)
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING, f"This needs a connection: register {names}."
        )

    async def owned(self, table: str, word: str, account_id: str, record_id: str) -> Row:
        """The row of something that an account has at a GPU cloud.

        Raises:
            RequestError: `NOT_FOUND`, for one that was deleted too.
        """
        row = await self.store.get(table, record_id)
        if row is None or row["account_id"] != account_id or row["status"] == "deleted":
            raise not_found(word, record_id)
        return row

    def models(self, vendor: Vendor, kind: str) -> list[Model]:
        """What a vendor may be asked for, the default first: the operator's choice, else all."""
        return models_offered(vendor, kind, self.settings.vendors.get(vendor.id))

    async def secret(self, connection: Connection) -> str:
        """What a connection's pointer leads to, if its account may go there.

        Raises:
            WorkError: `SECRET_UNRESOLVED`.
        """
        granted = await self.grants.of_connection(connection.id)
        return await self.resolver.resolve(
            connection.connection_type, connection.secret_ref, granted
        )

    @cached_property
    def services(self) -> dict[str, str]:
        """Base URLs of public services, and the ZIM file if there is one, by name."""
        services = {"encyclopedia": self.settings.encyclopedia_url}
        if self.settings.contact:
            services["contact"] = self.settings.contact
        if self.settings.zim_path is not None:
            services["zim"] = str(self.settings.zim_path)
        return services
