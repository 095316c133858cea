"""The vendors, a public module each; the engine's registry loads them from here."""

import logging
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from importlib.metadata import entry_points

from toolkit.plugins import Vendor

GROUP = "toolkit.vendors"
log = logging.getLogger(__name__)


def load_vendors() -> dict[str, Vendor]:
    """Load all vendors by id: built-in vendors, then installed vendors with unused ids.

    >>> "minimax" in load_vendors()
    True
    """
    names = [module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"]
    vendors: dict[str, Vendor] = {}
    for name in names:
        vendor = import_module(f"{__name__}.{name}").VENDOR
        vendors[vendor.id] = vendor
    vendors = {id: _add_wire_flows(vendor, vendors) for id, vendor in vendors.items()}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            plugin = point.load()
        except Exception as error:  # third-party modules may raise any error
            log.warning("entry point %s failed to load: %s", point.name, type(error).__name__)
            continue
        if not isinstance(plugin, Vendor) or plugin.id in vendors:
            log.warning("entry point %s is not a vendor, or its id is already in use", point.name)
        elif plugin.wire and plugin.wire not in vendors:
            log.warning("entry point %s names a wire that no vendor has", point.name)
        else:
            vendors[plugin.id] = _add_wire_flows(plugin, vendors)
    return vendors


def _add_wire_flows(vendor: Vendor, vendors: Mapping[str, Vendor]) -> Vendor:
    """Return a vendor with its wire's flows for the kinds of operation that it has models for."""
    if not vendor.wire:
        return vendor
    base = vendors[vendor.wire]
    kinds = {model.kind for model in vendor.models}
    flows = {request: flow for request, flow in base.operations.items() if request.kind in kinds}
    return replace(
        vendor,
        operations={**flows, **vendor.operations},
        probe=vendor.probe or base.probe,
    )
