"""The capabilities of an account by the kind they make, and the connections they lack."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from toolkit.contract.plans import Missing
from toolkit.planning.capability_kinds import find_makers
from toolkit.plugins import Capability


class CapabilityIndex:
    """The capabilities of a view, found by the kind of thing that they make."""

    def __init__(
        self,
        capabilities: Sequence[Capability],
        connected: frozenset[str],
        providers: Mapping[str, frozenset[str]],
        free_only: bool = False,
    ) -> None:
        self.available = [c for c in capabilities if c.status == "available"]
        self._by_id = {c.id: c for c in self.available}
        self._connected = connected
        self._providers = providers
        self.free_only = free_only

    @cached_property
    def _able(self) -> dict[str, list[Capability]]:
        return find_makers(self.available)

    @cached_property
    def _makers(self) -> dict[str, Capability]:
        """The maker of each kind: the first that can run now, or else the first; aliases last."""
        by_need = {
            kind: sorted(makers, key=lambda c: (c.alias_of in self._by_id, not self.is_usable(c)))
            for kind, makers in self._able.items()
        }
        return {kind: makers[0] for kind, makers in by_need.items() if makers}

    @cached_property
    def _kinds_by_id(self) -> dict[str, str]:
        return {maker.id: kind for kind, able in self._able.items() for maker in able}

    def find_maker(self, kind: str) -> Capability | None:
        """Find the capability that makes a kind or has that id, or return None."""
        return self._makers.get(kind) or self._by_id.get(kind)

    def find_kind(self, capability: Capability) -> str:
        """Find the kind that a capability makes; returns its id if it makes no known kind."""
        return self._kinds_by_id.get(capability.id, capability.id)

    def is_usable(self, capability: Capability) -> bool:
        """Check whether a capability can run with the connected vendors (and the budget)."""
        if not capability.needs_connection:
            return True
        return not self.free_only and self.is_connected(capability)

    def is_connected(self, capability: Capability) -> bool:
        """Check whether a vendor that serves a capability is connected."""
        return bool(self._providers.get(capability.id, frozenset()) & self._connected)

    def list_missing_providers(self, capability: Capability) -> list[str]:
        """List vendors to connect for a capability, its default first; empty if it has one."""
        if self.is_connected(capability):
            return []
        default = capability.default_provider
        return sorted(self._providers.get(capability.id, ()), key=lambda v: (v != default, v))

    def find_missing(self, capabilities: Iterable[Capability]) -> list[Missing]:
        """List capabilities that lack a connection, each once; `any_of` may be empty."""
        unconnected = {
            c.id: c for c in capabilities if c.needs_connection and not self.is_connected(c)
        }
        return [
            Missing(capability=c.id, any_of=self.list_missing_providers(c))
            for c in unconnected.values()
        ]

    def list_keywords(self) -> dict[str, str]:
        """List the keywords of capabilities that make no known kind, with their ids."""
        candidates = [c for c in self.available if self.find_kind(c) == c.id and c.alias_of is None]
        return {keyword.lower(): c.id for c in candidates for keyword in c.keywords}
