"""The client: `AsyncClient` is written once, `Client` is generated from it."""

from toolkit.client._async.client import AsyncClient
from toolkit.client._builder import NodeRef, Workflow
from toolkit.client._sync.client import Client

__all__ = ["AsyncClient", "Client", "NodeRef", "Workflow"]
