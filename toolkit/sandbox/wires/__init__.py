"""The simulated wires, a module each, and the modules that several of them share."""

from importlib import import_module
from types import ModuleType


def load_wire(name: str) -> ModuleType:
    """Load the module of a wire, which has its name."""
    module = name.replace("-", "_")
    return import_module(f"{__name__}.{module}")
