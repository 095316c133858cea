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
    found: dict[str, Vendor] = {}
    for name in names:
        vendor = import_module(f"{__name__}.{name}").VENDOR
        found[vendor.id] = vendor
    found = {id: _add_wire_flows(vendor, found) for id, vendor in found.items()}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            loaded = point.load()
        except Exception as error:  # third-party modules may raise any error
            log.warning("entry point %s failed to load: %s", point.name, type(error).__name__)
            continue
        if not isinstance(loaded, Vendor) or loaded.id in found:
            log.warning("entry point %s is no vendor, or its id is taken", point.name)
        elif loaded.wire and loaded.wire not in found:
            log.warning("entry point %s speaks the wire of no vendor there is", point.name)
        else:
            found[loaded.id] = _add_wire_flows(loaded, found)
    return found


def _add_wire_flows(vendor: Vendor, known: Mapping[str, Vendor]) -> Vendor:
    """Return a vendor with its wire's flows for the kinds of operation that it has models for."""
    if not vendor.wire:
        return vendor
    spoken = known[vendor.wire]
    kinds = {model.kind for model in vendor.models}
    flows = {of: flow for of, flow in spoken.operations.items() if of.kind in kinds}
    return replace(
        vendor,
        operations={**flows, **vendor.operations},
        probe=vendor.probe or spoken.probe,
    )
