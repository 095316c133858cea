"""The engine: a plain async object without HTTP; `Engine` is the entry point."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.engine.engine import Engine
    from toolkit.engine.routing.registry import Registry

__all__ = ["Engine", "Registry"]
_EXPORTS = {"Engine": "toolkit.engine.engine", "Registry": "toolkit.engine.routing.registry"}


def __getattr__(name: str) -> object:
    # Lazy (PEP 562): an operator's command that needs only accounts skips the other imports.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value
