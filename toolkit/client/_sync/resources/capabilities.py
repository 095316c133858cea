# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.capabilities`: the capabilities that can be asked for."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from toolkit.client._capability_calls import CapabilityCalls
from toolkit.client._definition_views import CapabilityView
from toolkit.client._replies import Reply
from toolkit.client._sync.handle import Handle
from toolkit.client._sync.paging import PagedCollection
from toolkit.client._sync.resource import Resource
from toolkit.contract import capabilities
from toolkit.contract.run_options import RunOptions
from toolkit.contract.short_tracebacks import UnknownAttributeError

if TYPE_CHECKING:
    from toolkit.client._sync.resources.runs import Run


class Capability(CapabilityView, Handle[capabilities.CapabilityRecord]):
    """A capability."""

    noun, resource, record_type = "Capability", "capabilities", capabilities.CapabilityRecord


class Capabilities(CapabilityCalls[Reply["Run"]], Resource[Capability]):
    """`client.capabilities`: what can be asked for, and a call for each.

    The calls of capabilities that are not built in are found by the same names:
    `client.capabilities.text_measure(text=…)` runs `text.measure`.
    """

    handle = Capability
    _is_paged = False

    if not TYPE_CHECKING:  # the calls of built-in ones are methods, with their types

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            for id in self._known_ids:
                if id.replace(".", "_") == name:
                    return partial(self._call_by_name, id)
            raise UnknownAttributeError(self, name)

    def __dir__(self) -> list[str]:
        called = (id.replace(".", "_") for id in self._known_ids)
        return sorted({*super().__dir__(), *(name for name in called if name.isidentifier())})

    def _start(
        self,
        name: str,
        given: Mapping[str, object],
        version: str | None,
        options: RunOptions | None,
    ) -> "Run":
        from toolkit.client._sync.resources.runs import Runs

        return Runs(self._http).create(name, given, version=version, **(options or {}))

    def _call_by_name(
        self,
        id: str,
        *,
        version: str | None = None,
        options: RunOptions | None = None,
        **fields: object,
    ) -> "Run":
        """Start a run of a capability that is not built in."""
        return self._start(id, fields, version, options)

    def list(self, limit: int | None = None) -> PagedCollection[Capability]:
        """List every capability, in registry order.

        Args:
            limit: greatest number of capabilities; None for all.
        """
        return self._list_records({}, limit)
