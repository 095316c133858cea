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


def _find_module(name: str) -> str:
    """Find the module of a public name: importing `toolkit` alone imports none of them (PEP 562).

    Raises:
        AttributeError: there is no such name.
    """
    if name == "load_ipython_extension":  # what `%load_ext toolkit` calls
        return "toolkit.notebook.magics"
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return "toolkit.contract.errors" if "Error" in name else "toolkit.client"


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__version__":
        from toolkit.contract.version import read_installed_version

        return read_installed_version()
    value: object = getattr(import_module(_find_module(name)), name)
    if "IPython" in sys.modules:
        # Names are completed in a notebook as soon as anything of this package is used there; the
        # name is not kept, as another shell of this process may ask for it.
        import_module("toolkit.notebook.session").attach_session()
    else:
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
