"""The simulated wires, a module each, and the modules that several of them share."""

from importlib import import_module
from types import ModuleType

# The modules of the batches of wires, and of compatible vendors.
BATCHES = {"openai": "openai_batches", "anthropic": "anthropic_batches", "google": "google_batches"}
COMPATIBLE_BATCHES = {"mistral": "mistral_batches"}


def load_wire(name: str) -> ModuleType:
    """Load the module of a wire, which has its name."""
    module = name.replace("-", "_")
    return import_module(f"{__name__}.{module}")
