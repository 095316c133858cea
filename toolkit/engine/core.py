"""What every part of the engine is given: one value, made once when the engine opens."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from toolkit.contract.connections import Connection
from toolkit.engine.driver import Driver
from toolkit.engine.registry import Registry
from toolkit.engine.router import Backends
from toolkit.plugins import Access, Capability, Model, Vendor
from toolkit.secrets import SecretResolver
from toolkit.settings import Settings
from toolkit.store import Store


@dataclass
class Observed:
    """How long calls to each vendor have taken lately: a moving average in milliseconds."""

    latency_ms: dict[str, float] = field(default_factory=dict)

    def record(self, vendor: str, took_ms: float) -> None:
        """Take one call into account."""
        before = self.latency_ms.get(vendor, took_ms)
        self.latency_ms[vendor] = 0.8 * before + 0.2 * took_ms


@dataclass
class Core:
    """The engine's shared parts."""

    settings: Settings
    store: Store
    registry: Registry
    driver: Driver
    resolver: SecretResolver
    slots: asyncio.Semaphore
    observed: Observed = field(default_factory=Observed)
    draining: bool = False

    async def backends(self, account_id: str, capability: Capability) -> Backends:
        """What the router weighs for a capability and an account, as of now."""
        vendors = self.registry.backends(capability)
        kind = capability.operation.kind if capability.operation else ""
        return Backends(
            vendors=vendors,
            connections=await self.connections(account_id) if vendors else {},
            models={vendor.id: self.model(vendor, kind) for vendor in vendors},
            latency_ms=self.observed.latency_ms,
        )

    async def connections(self, account_id: str) -> dict[str, Connection]:
        """The newest connection an account has at each vendor."""
        rows = await self.store.find("connections", account_id=account_id, deleted=False)
        found = (Connection.model_validate_json(str(row["doc"])) for row in rows)
        return {connection.provider: connection for connection in found}

    def model(self, vendor: Vendor, kind: str) -> Model | None:
        """The model to ask a vendor for: the operator's choice, else the vendor's default."""
        chosen = self.vendor_models(vendor).get(kind)
        if chosen is None:
            return vendor.model_for(kind)
        offered = (m for m in vendor.models if m.id == chosen and m.kind == kind)
        return next(offered, Model(chosen, kind))

    def vendor_models(self, vendor: Vendor) -> Mapping[str, str]:
        """The operator's choice of models at a vendor, by kind."""
        settings = self.settings.vendors.get(vendor.id)
        return settings.models if settings else {}

    def timeout_s(self, vendor_id: str) -> float:
        """The longest one call to a vendor may take, in seconds."""
        settings = self.settings.vendors.get(vendor_id)
        return (settings.timeout_s if settings else None) or self.settings.timeout_s

    async def access(
        self,
        vendor: Vendor,
        connection: Connection,
        model: str,
        *,
        endpoint: str | None = None,
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
            resume=resume,
        )

    @cached_property
    def services(self) -> dict[str, str]:
        """Base URLs of public services, and the ZIM file if there is one, by name."""
        services = {"encyclopedia": self.settings.encyclopedia_url}
        if self.settings.zim_path is not None:
            services["zim"] = str(self.settings.zim_path)
        return services
