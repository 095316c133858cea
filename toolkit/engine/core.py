"""What every part of the engine is given: one value, made once when the engine opens."""

from dataclasses import dataclass, field, replace
from functools import cached_property

from toolkit.contract.connections import Connection
from toolkit.contract.errors import not_found
from toolkit.engine.allowance import Allowances
from toolkit.engine.driver import Driver
from toolkit.engine.health import Condition
from toolkit.engine.lanes import Lanes
from toolkit.engine.limiter import FairLimiter
from toolkit.engine.registry import Registry
from toolkit.engine.router import Backends
from toolkit.engine.telemetry import Observer, Unobserved
from toolkit.plugins import Access, Capability, Model, Vendor
from toolkit.secrets import SecretResolver
from toolkit.settings import TIERS, Settings, Timeouts
from toolkit.store import Row, Store


@dataclass
class Core:
    """The engine's shared parts.

    Attributes:
        reproducible: whether the same work is to be routed alike in every process: what calls took
            and how many failed is then not weighed.
        observer: who is told of workflows, jobs and calls.
    """

    settings: Settings
    store: Store
    registry: Registry
    driver: Driver
    resolver: SecretResolver
    slots: FairLimiter
    lanes: Lanes
    allowances: Allowances
    draining: bool = False
    reproducible: bool = False
    observer: Observer = field(default_factory=Unobserved)
    _timeouts: dict[tuple[str, str], Timeouts] = field(default_factory=dict)

    def timeouts(self, vendor_id: str, capability_id: str = "") -> Timeouts:
        """How long a call may take; worked out once, as every job asks."""
        found = self._timeouts.get((vendor_id, capability_id))
        if found is None:
            found = self.settings.timeouts_of(vendor_id, capability_id)
            self._timeouts[vendor_id, capability_id] = found
        return found

    async def backends(self, account_id: str, capability: Capability) -> Backends:
        """What the router weighs for a capability and an account, as of now."""
        vendors = self.registry.backends(capability)
        kind = capability.operation.kind if capability.operation else ""
        connections = await self.connections(account_id) if vendors else {}
        return Backends(
            vendors=vendors,
            connections=connections,
            models={vendor.id: self.models(vendor, kind) for vendor in vendors},
            conditions={
                provider: self._condition(connection)
                for provider, connection in connections.items()
            },
        )

    def _condition(self, connection: Connection) -> Condition:
        condition = self.lanes.of(connection).condition()
        return replace(condition, latency={}, error_rate=None) if self.reproducible else condition

    async def connections(self, account_id: str) -> dict[str, Connection]:
        """The newest connection an account has at each vendor."""
        rows = await self.store.find("connections", account_id=account_id, deleted=False)
        found: dict[str, Connection] = {}
        for row in rows:
            connection = Connection.model_validate_json(str(row["doc"]))
            self.lanes.of(connection, row["health"])
            found[connection.provider] = connection
        return found

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
        offered = {model.id: model for model in vendor.models if model.kind == kind}
        settings = self.settings.vendors.get(vendor.id)
        chosen = settings.models.get(kind) if settings else None
        if isinstance(chosen, str):
            return [offered.get(chosen, Model(chosen, kind))]
        if chosen:
            return [
                replace(offered.get(name, Model(name, kind)), quality=TIERS[tier])
                for tier, name in chosen.items()
            ]
        default = vendor.model_for(kind)
        return sorted(offered.values(), key=lambda model: model is not default)

    async def access(
        self,
        vendor: Vendor,
        connection: Connection,
        model: str,
        *,
        endpoint: str | None = None,
        pod: str | None = None,
        resume: str | None = None,
    ) -> Access:
        """Resolve a connection's pointer and put together what a vendor's flow needs.

        Raises:
            WorkError: `SECRET_UNRESOLVED`.
        """
        settings = self.settings.vendors.get(vendor.id)
        return Access(
            base_urls={**vendor.base_urls, **(settings.base_urls if settings else {})},
            secret=await self.resolver.resolve(connection.connection_type, connection.secret_ref),
            model=model,
            endpoint=endpoint,
            pod=pod,
            resume=resume,
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
