"""The vendors, one public module each; the engine's registry loads them from here."""

import logging
import pkgutil
from importlib import import_module
from importlib.metadata import entry_points

from toolkit.plugins import Vendor

GROUP = "toolkit.vendors"
log = logging.getLogger(__name__)


def load_vendors() -> dict[str, Vendor]:
    """Load every vendor by its id: the built-in ones, then installed ones, which cannot replace
    them.

    >>> "minimax" in load_vendors()
    True
    """
    names = [module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"]
    found: dict[str, Vendor] = {}
    for name in names:
        vendor = import_module(f"{__name__}.{name}").VENDOR
        found[vendor.id] = vendor
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            loaded = point.load()
        except Exception as error:  # whatever a stranger's module raises
            log.warning("entry point %s failed to load: %s", point.name, type(error).__name__)
            continue
        if isinstance(loaded, Vendor) and loaded.id not in found:
            found[loaded.id] = loaded
        else:
            log.warning("entry point %s is no vendor, or its id is taken", point.name)
    return found
