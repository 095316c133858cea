"""`client.capabilities`: the available capabilities."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolkit.client._async.handle import AsyncHandle
from toolkit.client._async.paging import AsyncPagedCollection
from toolkit.client._async.resource import AsyncResource
from toolkit.client._capability_calls import CapabilityCalls
from toolkit.client._definition_views import CapabilityView
from toolkit.client._replies import AsyncReply
from toolkit.contract import capabilities
from toolkit.contract.run_options import RunOptions

if TYPE_CHECKING:
    from toolkit.client._async.resources.runs import AsyncRun


class AsyncCapability(CapabilityView, AsyncHandle[capabilities.CapabilityRecord]):
    """A capability, with its schemas and the providers that can serve it."""

    noun, resource, record_type = "Capability", "capabilities", capabilities.CapabilityRecord


class AsyncCapabilities(CapabilityCalls[AsyncReply["AsyncRun"]], AsyncResource[AsyncCapability]):
    """`client.capabilities`: the available capabilities, and a call for each.

    Capabilities that are not built in have calls with the same kind of name:
    `client.capabilities.text_measure(text=…)` runs `text.measure`.
    """

    handle = AsyncCapability
    _is_paged = False

    async def _start(
        self,
        name: str,
        fields: Mapping[str, object],
        version: str | None,
        options: RunOptions | None,
    ) -> "AsyncRun":
        from toolkit.client._async.resources.runs import AsyncRuns

        return await AsyncRuns(self._http).create(name, fields, version=version, **(options or {}))

    def list(self, limit: int | None = None) -> AsyncPagedCollection[AsyncCapability]:
        """List every capability, in registry order.

        Args:
            limit: maximum number of capabilities. Default: None, all.
        """
        return self._list_records({}, limit)
