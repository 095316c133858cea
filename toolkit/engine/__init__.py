"""The engine: a plain async object that knows no HTTP. `Engine` is the only door."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.engine.engine import Engine
    from toolkit.engine.registry import Registry

__all__ = ["Engine", "Registry"]


def __getattr__(name: str) -> object:
    # An operator's command that needs the accounts alone does not wait for all of it (PEP 562).
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{name.lower()}"), name)
    globals()[name] = value
    return value
