"""The Python client of the API `/v1`: `AsyncClient`, and `Client`, which is generated from it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.client._async.client import AsyncClient as AsyncClient
    from toolkit.client._builder import Workflow as Workflow
    from toolkit.client._function_nodes import NodeRef as NodeRef
    from toolkit.client._record_view import RecordView as RecordView
    from toolkit.client._sync.client import Client as Client
    from toolkit.client._sync.resources.agents import Agent as Agent
    from toolkit.client._sync.resources.api_keys import ApiKey as ApiKey
    from toolkit.client._sync.resources.artifacts import Artifact as Artifact
    from toolkit.client._sync.resources.compute import Compute as Compute
    from toolkit.client._sync.resources.connections import Connection as Connection
    from toolkit.client._sync.resources.endpoints import Endpoint as Endpoint
    from toolkit.client._sync.resources.jobs import Job as Job
    from toolkit.client._sync.resources.plans import Plan as Plan
    from toolkit.client._sync.resources.runs import Run as Run
    from toolkit.client._sync.resources.runs import TypedRun as TypedRun
    from toolkit.client._sync.resources.storage import Storage as Storage
    from toolkit.client._sync.resources.tasks import Task as Task
    from toolkit.client._sync.resources.templates import Template as Template
    from toolkit.client._sync.resources.workflows import WorkflowRun as WorkflowRun
    from toolkit.contract.events import TextPiece as TextPiece

# The module of each name: importing one does not import the others (PEP 562).
_EXPORTS = {
    "Agent": "toolkit.client._sync.resources.agents",
    "ApiKey": "toolkit.client._sync.resources.api_keys",
    "Artifact": "toolkit.client._sync.resources.artifacts",
    "AsyncClient": "toolkit.client._async.client",
    "Client": "toolkit.client._sync.client",
    "Compute": "toolkit.client._sync.resources.compute",
    "Connection": "toolkit.client._sync.resources.connections",
    "Endpoint": "toolkit.client._sync.resources.endpoints",
    "Job": "toolkit.client._sync.resources.jobs",
    "NodeRef": "toolkit.client._function_nodes",
    "Plan": "toolkit.client._sync.resources.plans",
    "RecordView": "toolkit.client._record_view",
    "Run": "toolkit.client._sync.resources.runs",
    "Storage": "toolkit.client._sync.resources.storage",
    "Task": "toolkit.client._sync.resources.tasks",
    "Template": "toolkit.client._sync.resources.templates",
    "TextPiece": "toolkit.contract.events",
    "TypedRun": "toolkit.client._sync.resources.runs",
    "Workflow": "toolkit.client._builder",
    "WorkflowRun": "toolkit.client._sync.resources.workflows",
}

__all__ = list(_EXPORTS)


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
