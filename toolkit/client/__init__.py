"""The client: `AsyncClient` is written once, `Client` is generated from it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.client._async.client import AsyncClient
    from toolkit.client._builder import NodeRef, Workflow
    from toolkit.client._sync.client import Client

# The module of each name: importing one does not import the others (PEP 562).
_EXPORTS = {
    "AsyncClient": "toolkit.client._async.client",
    "Client": "toolkit.client._sync.client",
    "NodeRef": "toolkit.client._builder",
    "Workflow": "toolkit.client._builder",
}

__all__ = ["AsyncClient", "Client", "NodeRef", "Workflow"]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
