"""The vendors, a public module or a row of `compatible.toml` each; the registry loads them."""

import logging
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from importlib.metadata import EntryPoints, entry_points

from toolkit.plugins import TextRequest, Vendor
from toolkit.plugins.vendor import BATCHES
from toolkit.vendors._prices import load_compatible_vendors

GROUP = "toolkit.vendors"
log = logging.getLogger(__name__)


def load_vendors(installed: EntryPoints | None = None) -> dict[str, Vendor]:
    """Load all vendors by id: the specification's, other built-in, then installed vendors.

    An installed vendor that fails to load, has a used id or names an unknown wire is logged and
    skipped.

    Args:
        installed: all entry points. Default: the entry points are listed, which takes long.

    >>> "minimax" in load_vendors()
    True
    """
    names = [module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"]
    built_in = [import_module(f"{__name__}.{name}").VENDOR for name in names]
    built_in += load_compatible_vendors()
    built_in.sort(key=lambda vendor: (vendor.label is None, vendor.id))
    vendors: dict[str, Vendor] = {vendor.id: vendor for vendor in built_in}
    vendors = {
        id: _mark_batches(_add_wire_flows(vendor, vendors)) for id, vendor in vendors.items()
    }
    points = entry_points(group=GROUP) if installed is None else installed.select(group=GROUP)
    for point in sorted(points, key=lambda point: point.name):
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
            vendors[plugin.id] = _mark_batches(_add_wire_flows(plugin, vendors))
    return vendors


def _add_wire_flows(vendor: Vendor, vendors: Mapping[str, Vendor]) -> Vendor:
    """Add the flows, bounds and probe of the vendor named by `wire` to a vendor that lacks them.

    Only flows and bounds for the kinds of its models are added. Without a wire, nothing is.
    """
    if not vendor.wire:
        return vendor
    base = vendors[vendor.wire]
    kinds = {model.kind for model in vendor.models}
    flows = {request: flow for request, flow in base.operations.items() if request.kind in kinds}
    bounds = {request: bound for request, bound in base.bounds.items() if request.kind in kinds}
    return replace(
        vendor,
        operations={**flows, **vendor.operations},
        bounds={**bounds, **vendor.bounds},
        probe=vendor.probe or base.probe,
        batch=base.batch if vendor.dialect.batches else vendor.batch,
    )


def _mark_batches(vendor: Vendor) -> Vendor:
    """Add the ability to be asked by batches to the models for text that have a price for it."""
    if vendor.batch is None:
        return vendor
    models = [
        replace(model, abilities=model.abilities | {BATCHES})
        if model.batch is not None and model.kind == TextRequest.kind
        else model
        for model in vendor.models
    ]
    return replace(vendor, models=tuple(models))
