"""The context for calls of vendors, without a store."""

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import httpx

from toolkit.contract.choices import Tier
from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.contract.key_shapes import find_key_fault
from toolkit.engine.routing.registry import Registry
from toolkit.engine.transport.driver import NO_HOOKS, Driver
from toolkit.engine.transport.redaction import redact_reply
from toolkit.plugins import Access, Operation, ProviderError, Reply, Vendor
from toolkit.plugins.key_redaction import redact_message
from toolkit.plugins.pricing import STANDARD_TIER
from toolkit.plugins.vendor import SignInFlow
from toolkit.secrets import SecretResolver
from toolkit.settings import SANDBOX_URL, Settings, Timeouts

R = TypeVar("R", bound=Reply)
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
# The advice of OpenAI's guide to flex processing; Google's names up to 15 minutes, too.
FLEX_TIMEOUT_S = 900.0
MAX_REFUSAL_SETS = 1024  # connections and models whose refused parameters this process remembers
MAX_TOKEN_SETS = 1024  # connections whose granted tokens this process remembers


class VendorHosts(NamedTuple):
    """The hosts of a vendor, by the settings.

    Attributes:
        base_urls: base URLs of the vendor, by name.
        is_other: whether another server replaces the vendor.
    """

    base_urls: dict[str, str]
    is_other: bool


def extend_timeouts(timeouts: Timeouts) -> Timeouts:
    """Extend timeouts for the flex tier, whose answers may be late."""
    return timeouts.model_copy(
        update={
            name: max(FLEX_TIMEOUT_S, seconds)
            for name in ("first_byte_s", "total_s")
            if (seconds := getattr(timeouts, name)) is not None
        }
    )


def find_hosts(vendor: Vendor, settings: Settings) -> VendorHosts:
    """Find the hosts of a vendor by the settings; the sandbox counts as the vendor's own host."""
    its_settings = settings.vendors.get(vendor.id)
    base_urls = {**vendor.base_urls, **(its_settings.base_urls if its_settings else {})}
    own_hosts = {httpx.URL(url).host for url in (*vendor.base_urls.values(), SANDBOX_URL)}
    is_other = httpx.URL(base_urls.get("api", SANDBOX_URL)).host not in own_hosts
    return VendorHosts(base_urls, is_other)


def _find_or_make(entries: dict[K, V], key: K, make: Callable[[], V], limit: int) -> V:
    """Return the entry of a key; a new entry evicts the oldest if there are `limit` entries."""
    entry = entries.get(key)
    if entry is None:
        if len(entries) >= limit:
            del entries[next(iter(entries))]
        entry = entries[key] = make()
    return entry


@dataclass
class _SignIn:
    """The granted tokens of a connection, and the lock of the call that asks for one."""

    tokens: dict[str, tuple[str, float]] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


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
    _sign_ins: dict[str, _SignIn] = field(default_factory=dict)

    def get_timeouts(
        self, vendor_id: str, capability_id: str = "", tier: Tier = STANDARD_TIER
    ) -> Timeouts:
        """Return the timeouts of a call; computed once, because every job needs them."""
        timeouts = self._timeouts.get((vendor_id, capability_id))
        if timeouts is None:
            timeouts = self.settings.resolve_timeouts(vendor_id, capability_id)
            self._timeouts[vendor_id, capability_id] = timeouts
        return timeouts if tier == STANDARD_TIER else extend_timeouts(timeouts)

    async def resolve_access(
        self,
        vendor: Vendor,
        connection: Connection,
        model: str,
        *,
        endpoint: str | None = None,
        pod: str | None = None,
        resume: str | None = None,
        tier: Tier = STANDARD_TIER,
    ) -> Access:
        """Resolve a connection's pointer, and make the access object for a vendor's flow.

        Raises:
            WorkError: `SECRET_UNRESOLVED`, also for a value that cannot be a key.
            ProviderError: the vendor refused the secret, or could not be asked for a token.
        """
        hosts = self._get_hosts(vendor)
        secret = await self.resolve_secret(connection)
        if fault := find_key_fault(secret):
            raise WorkError(
                ErrorCode.SECRET_UNRESOLVED,
                f"The value that the connection points to is not a key of {vendor.id} and was not"
                f" sent: it {fault}. Point the connection to a variable or secret with the key.",
            )
        access = Access(
            base_urls=hosts.base_urls,
            secret=secret,
            model=model,
            endpoint=endpoint,
            pod=pod,
            resume=resume,
            vendor=vendor.id,
            tier=tier,
            compatible=hosts.is_other,
            refusals=self._get_refusals((connection.id, endpoint, model)),
            dialect=vendor.dialect,
        )
        if vendor.sign_in is None:
            return access
        return await self._sign_in(vendor.sign_in, connection.id, access)

    async def _sign_in(self, ask: SignInFlow, connection_id: str, access: Access) -> Access:
        """Return the access of a call for the access of a connection (`Vendor.sign_in`).

        Calls of a connection wait for each other, so that one of them asks for a token.
        """
        kept = _find_or_make(self._sign_ins, connection_id, _SignIn, MAX_TOKEN_SETS)
        access = replace(access, tokens=kept.tokens)
        async with kept.lock:
            try:
                signed: Access = await self.driver.run(
                    ask(access),
                    NO_HOOKS,
                    timeouts=self.get_timeouts(access.vendor),
                    via=access.vendor,
                )
            except ProviderError as error:
                error.message = redact_message(error.message, access.key_forms)
                raise
        return replace(signed, pointed=access.secret)

    def _get_hosts(self, vendor: Vendor) -> VendorHosts:
        """Return a vendor's hosts; computed once, because every call needs them."""
        hosts = self._known_hosts.get(vendor.id)
        if hosts is None:
            hosts = self._known_hosts[vendor.id] = find_hosts(vendor, self.settings)
        return hosts

    def _get_refusals(self, key: tuple[str | None, ...]) -> set[str]:
        """Return the set of parameters that a server has refused, which callers extend in place."""
        return _find_or_make(self._refusals, key, set, MAX_REFUSAL_SETS)

    async def resolve_secret(self, connection: Connection) -> str:
        """Resolve the secret of a connection.

        Raises:
            WorkError: `SECRET_UNRESOLVED`.
        """
        return await self.resolver.resolve(connection.connection_type, connection.secret_ref)

    async def ask_vendor(
        self, vendor: Vendor, connection: Connection, operation: Operation[R]
    ) -> R:
        """Carry out an operation on a vendor's infrastructure, without retries.

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
            error.message = redact_message(error.message, access.key_forms)
            raise
        return redact_reply(reply, access.key_forms)
