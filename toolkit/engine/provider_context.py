"""The context for calls of vendors, without a store."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import httpx

from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.contract.key_shapes import find_key_fault
from toolkit.engine.routing.registry import Registry
from toolkit.engine.transport.driver import NO_HOOKS, Driver
from toolkit.engine.transport.redaction import redact_reply
from toolkit.plugins import Access, Operation, ProviderError, Reply, Vendor
from toolkit.plugins.key_redaction import redact_message
from toolkit.secrets import SecretResolver
from toolkit.settings import SANDBOX_URL, Settings, Timeouts

R = TypeVar("R", bound=Reply)
MAX_REFUSAL_SETS = 1024  # connections and models whose refused parameters this process remembers


class VendorHosts(NamedTuple):
    """The hosts of a vendor, by the settings.

    Attributes:
        base_urls: base URLs of the vendor, by name.
        is_other: whether another server replaces the vendor.
    """

    base_urls: dict[str, str]
    is_other: bool


@dataclass(kw_only=True)
class ProviderContext:
    """The vendors, the driver that calls them, and the resolver of pointers to their keys."""

    settings: Settings
    registry: Registry
    driver: Driver
    resolver: SecretResolver
    _timeouts: dict[tuple[str, str], Timeouts] = field(default_factory=dict)
    _known_hosts: dict[str, VendorHosts] = field(default_factory=dict)
    _refusals: dict[tuple[str | None, ...], set[str]] = field(default_factory=dict)

    def get_timeouts(self, vendor_id: str, capability_id: str = "") -> Timeouts:
        """Return the timeouts of a call; computed once, because every job needs them."""
        timeouts = self._timeouts.get((vendor_id, capability_id))
        if timeouts is None:
            timeouts = self.settings.resolve_timeouts(vendor_id, capability_id)
            self._timeouts[vendor_id, capability_id] = timeouts
        return timeouts

    async def resolve_access(
        self,
        vendor: Vendor,
        connection: Connection,
        model: str,
        *,
        endpoint: str | None = None,
        pod: str | None = None,
        resume: str | None = None,
    ) -> Access:
        """Resolve a connection's pointer, and make the access object for a vendor's flow.

        Raises:
            WorkError: `SECRET_UNRESOLVED`, also for a value that cannot be a key.
        """
        hosts = self._get_hosts(vendor)
        secret = await self.resolve_secret(connection)
        if fault := find_key_fault(secret):
            raise WorkError(
                ErrorCode.SECRET_UNRESOLVED,
                f"The value that the connection points to is not a key of {vendor.id} and was not"
                f" sent: it {fault}. Point the connection to a variable or secret with the key.",
            )
        return Access(
            base_urls=hosts.base_urls,
            secret=secret,
            model=model,
            endpoint=endpoint,
            pod=pod,
            resume=resume,
            vendor=vendor.id,
            compatible=hosts.is_other,
            refusals=self._get_refusals((connection.id, endpoint, model)),
        )

    def _get_hosts(self, vendor: Vendor) -> VendorHosts:
        """Return a vendor's hosts; computed once, because every call needs them."""
        hosts = self._known_hosts.get(vendor.id)
        if hosts is None:
            settings = self.settings.vendors.get(vendor.id)
            base_urls = {**vendor.base_urls, **(settings.base_urls if settings else {})}
            own_hosts = {httpx.URL(url).host for url in (*vendor.base_urls.values(), SANDBOX_URL)}
            is_other = httpx.URL(base_urls.get("api", SANDBOX_URL)).host not in own_hosts
            hosts = self._known_hosts[vendor.id] = VendorHosts(base_urls, is_other)
        return hosts

    def _get_refusals(self, key: tuple[str | None, ...]) -> set[str]:
        """Return the known refusals of a server; a new entry may evict the oldest."""
        if key not in self._refusals and len(self._refusals) >= MAX_REFUSAL_SETS:
            del self._refusals[next(iter(self._refusals))]
        return self._refusals.setdefault(key, set())

    async def resolve_secret(self, connection: Connection) -> str:
        """Resolve the secret of a connection.

        Raises:
            WorkError: `SECRET_UNRESOLVED`.
        """
        return await self.resolver.resolve(connection.connection_type, connection.secret_ref)

    async def ask_vendor(
        self, vendor: Vendor, connection: Connection, operation: Operation[R]
    ) -> R:
        """Ask a vendor about its infrastructure, once.

        Raises:
            ProviderError: if the vendor's call fails.
            WorkError: `SECRET_UNRESOLVED`.
        """
        access = await self.resolve_access(vendor, connection, "")
        flow = vendor.infrastructure[operation.kind](operation, access)
        timeouts = self.get_timeouts(vendor.id)
        try:
            reply: R = await self.driver.run(flow, NO_HOOKS, timeouts=timeouts, via=vendor.id)
        except ProviderError as error:
            error.message = redact_message(error.message, access.secret)
            raise
        return redact_reply(reply, access.secret)
