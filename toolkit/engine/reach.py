"""How vendors are reached: what it takes to ask one, without anything that is kept here."""

from dataclasses import dataclass, field
from typing import TypeVar

from toolkit.contract.connections import Connection
from toolkit.engine.driver import NO_HOOKS, Driver
from toolkit.engine.registry import Registry
from toolkit.plugins import Access, Operation, Reply, Vendor
from toolkit.secrets import SecretResolver
from toolkit.settings import Settings, Timeouts

R = TypeVar("R", bound=Reply)


@dataclass(kw_only=True)
class Reach:
    """The vendors, the way to them, and who resolves the pointers to their keys."""

    settings: Settings
    registry: Registry
    driver: Driver
    resolver: SecretResolver
    _timeouts: dict[tuple[str, str], Timeouts] = field(default_factory=dict)

    def timeouts(self, vendor_id: str, capability_id: str = "") -> Timeouts:
        """How long a call may take; worked out once, as every job asks."""
        found = self._timeouts.get((vendor_id, capability_id))
        if found is None:
            found = self.settings.timeouts_of(vendor_id, capability_id)
            self._timeouts[vendor_id, capability_id] = found
        return found

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
            secret=await self.secret(connection),
            model=model,
            endpoint=endpoint,
            pod=pod,
            resume=resume,
            vendor=vendor.id,
        )

    async def secret(self, connection: Connection) -> str:
        """What a connection's pointer leads to.

        Raises:
            WorkError: `SECRET_UNRESOLVED`.
        """
        return await self.resolver.resolve(connection.connection_type, connection.secret_ref)

    async def ask(self, vendor: Vendor, connection: Connection, operation: Operation[R]) -> R:
        """Ask a vendor about its infrastructure, once.

        Raises:
            VendorFault: its failure.
            WorkError: `SECRET_UNRESOLVED`.
        """
        access = await self.access(vendor, connection, "")
        flow = vendor.infrastructure[operation.kind](operation, access)
        timeouts = self.timeouts(vendor.id)
        reply: R = await self.driver.run(flow, NO_HOOKS, timeouts=timeouts, via=vendor.id)
        return reply
