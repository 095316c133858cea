# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.capabilities`: the available capabilities."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolkit.client._capability_calls import CapabilityCalls
from toolkit.client._definition_views import CapabilityView
from toolkit.client._replies import Reply
from toolkit.client._sync.handle import Handle
from toolkit.client._sync.paging import PagedCollection
from toolkit.client._sync.resource import Resource
from toolkit.contract import capabilities
from toolkit.contract.run_options import RunOptions

if TYPE_CHECKING:
    from toolkit.client._sync.resources.runs import Run


class Capability(CapabilityView, Handle[capabilities.CapabilityRecord]):
    """A capability, with its schemas and the providers that can serve it."""

    noun, resource, record_type = "Capability", "capabilities", capabilities.CapabilityRecord


class Capabilities(CapabilityCalls[Reply["Run"]], Resource[Capability]):
    """`client.capabilities`: the available capabilities, and a call for each.

    Capabilities that are not built in have calls with the same kind of name:
    `client.capabilities.text_measure(text=…)` runs `text.measure`.
    """

    handle = Capability
    _is_paged = False

    def _start(
        self,
        name: str,
        fields: Mapping[str, object],
        version: str | None,
        options: RunOptions | None,
    ) -> "Run":
        from toolkit.client._sync.resources.runs import Runs

        return Runs(self._http).create(name, fields, version=version, **(options or {}))

    def list(self, limit: int | None = None) -> PagedCollection[Capability]:
        """List every capability, in registry order.

        Args:
            limit: maximum number of capabilities. Default: None, all.
        """
        return self._list_records({}, limit)
