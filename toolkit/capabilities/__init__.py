"""The capabilities, one public module each; the engine's registry loads them from here."""

import logging
import pkgutil
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # worker processes import functions from here, and few need the rest
    from toolkit.plugins import Capability

GROUP = "toolkit.capabilities"
log = logging.getLogger(__name__)

# The order of the specification's table; other capabilities come after it, by name.
_REGISTRY_ORDER = (
    "image.generate",
    "research.gather",
    "composition.layout",
    "llm.generate",
    "text.generate",
    "speech.generate",
    "voice.clone",
)


def load_capabilities(installed: EntryPoints | None = None) -> "list[Capability]":
    """Load all capabilities: built-in in registry order, then installed capabilities by name.

    An installed capability that fails to load, or has the name of another, is logged and skipped,
    so that the others still work.

    Args:
        installed: all entry points. Default: the entry points are listed, which takes long.

    >>> [capability.name for capability in load_capabilities()][:2]
    ['image.generate@1', 'research.gather@1']
    """
    capabilities = {capability.name: capability for capability in _load_built_in()}
    points = entry_points(group=GROUP) if installed is None else installed.select(group=GROUP)
    for point in sorted(points, key=lambda point: point.name):
        capability = _load_entry_point(point)
        if capability is None:
            continue
        if capability.name in capabilities:
            log.warning(
                "entry point %s: another capability has the name %s", point.name, capability.name
            )
            continue
        capabilities[capability.name] = capability
    return list(capabilities.values())


def _load_built_in() -> "list[Capability]":
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    capabilities: list[Capability] = [
        import_module(f"{__name__}.{name}").CAPABILITY for name in names if name[0] != "_"
    ]
    return sorted(capabilities, key=_sort_key)


def _sort_key(capability: "Capability") -> tuple[int, str]:
    is_built_in = capability.id in _REGISTRY_ORDER
    return (
        _REGISTRY_ORDER.index(capability.id) if is_built_in else len(_REGISTRY_ORDER),
        capability.id,
    )


def _load_entry_point(point: EntryPoint) -> "Capability | None":
    from toolkit.plugins import Capability

    try:
        loaded = point.load()
    except Exception as error:  # a plugin's module may raise any error
        log.warning("entry point %s: failed to load with %s", point.name, type(error).__name__)
        return None
    if isinstance(loaded, Capability):
        return loaded
    log.warning("entry point %s: it is not a toolkit.plugins.Capability", point.name)
    return None
