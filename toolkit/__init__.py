"""Ask for capabilities, not vendors: route, run, plan and review AI work from a notebook.

>>> from toolkit import Client
>>> client = Client.local(sandbox=True)  # doctest: +SKIP
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.client import (
        Agent,
        ApiKey,
        Artifact,
        AsyncClient,
        Client,
        Compute,
        Connection,
        Endpoint,
        Job,
        NodeRef,
        Plan,
        Run,
        Storage,
        Task,
        Template,
        Workflow,
        WorkflowRun,
    )
    from toolkit.contract.errors import (
        ErrorCode,
        RequestError,
        ServiceError,
        ServiceTimeoutError,
        ToolkitError,
        WorkError,
    )

    __version__: str

# The module of each public name: importing `toolkit` alone imports none of them (PEP 562).
_EXPORTS = {
    "Agent": "toolkit.client",
    "ApiKey": "toolkit.client",
    "Artifact": "toolkit.client",
    "AsyncClient": "toolkit.client",
    "Client": "toolkit.client",
    "Compute": "toolkit.client",
    "Connection": "toolkit.client",
    "Endpoint": "toolkit.client",
    "ErrorCode": "toolkit.contract.errors",
    "Job": "toolkit.client",
    "NodeRef": "toolkit.client",
    "Plan": "toolkit.client",
    "RequestError": "toolkit.contract.errors",
    "Run": "toolkit.client",
    "ServiceError": "toolkit.contract.errors",
    "ServiceTimeoutError": "toolkit.contract.errors",
    "Storage": "toolkit.client",
    "Task": "toolkit.client",
    "Template": "toolkit.client",
    "ToolkitError": "toolkit.contract.errors",
    "WorkError": "toolkit.contract.errors",
    "Workflow": "toolkit.client",
    "WorkflowRun": "toolkit.client",
    "load_ipython_extension": "toolkit.notebook.magics",  # called by `%load_ext toolkit`
}

__all__ = [
    "Agent",
    "ApiKey",
    "Artifact",
    "AsyncClient",
    "Client",
    "Compute",
    "Connection",
    "Endpoint",
    "ErrorCode",
    "Job",
    "NodeRef",
    "Plan",
    "RequestError",
    "Run",
    "ServiceError",
    "ServiceTimeoutError",
    "Storage",
    "Task",
    "Template",
    "ToolkitError",
    "WorkError",
    "Workflow",
    "WorkflowRun",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__version__":
        from toolkit.contract.version import read_installed_version

        return read_installed_version()
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_EXPORTS[name]), name)
    if "IPython" in sys.modules:
        # Names are completed in a notebook as soon as anything of this package is used there; the
        # name is not kept, as another shell of this process may ask for it.
        import_module("toolkit.notebook.session").attach_session()
    else:
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
