"""The engine: a plain async object that knows no HTTP. `Engine` is the only door."""

from toolkit.engine.engine import Engine
from toolkit.engine.registry import Registry

__all__ = ["Engine", "Registry"]
