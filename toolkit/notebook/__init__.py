"""Notebook parts beside the client: magics, by `%load_ext toolkit`, and widgets.

Widgets are live and usable by keyboard, and each has a picture or table beside it.

>>> from toolkit.notebook import WorkflowGraph
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.notebook.capability import CapabilityForm
    from toolkit.notebook.dashboard import TaskDashboard
    from toolkit.notebook.editor import WorkflowEditor
    from toolkit.notebook.graph import WorkflowGraph
    from toolkit.notebook.review import TaskReview
    from toolkit.notebook.runs import RunTable
    from toolkit.notebook.setup import ProviderSetup
    from toolkit.notebook.usage import UsageDashboard

# The module of each widget: a notebook that uses one does not import the others.
_EXPORTS = {
    "CapabilityForm": "toolkit.notebook.capability",
    "ProviderSetup": "toolkit.notebook.setup",
    "RunTable": "toolkit.notebook.runs",
    "TaskDashboard": "toolkit.notebook.dashboard",
    "TaskReview": "toolkit.notebook.review",
    "UsageDashboard": "toolkit.notebook.usage",
    "WorkflowEditor": "toolkit.notebook.editor",
    "WorkflowGraph": "toolkit.notebook.graph",
}

__all__ = [
    "CapabilityForm",
    "ProviderSetup",
    "RunTable",
    "TaskDashboard",
    "TaskReview",
    "UsageDashboard",
    "WorkflowEditor",
    "WorkflowGraph",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value: object = getattr(import_module(_EXPORTS[name]), name)
    except ModuleNotFoundError as error:
        from toolkit.notebook.missing import make_fallback

        if error.name not in ("ipywidgets", "anywidget", "traitlets"):
            raise
        return make_fallback(name)  # not kept: once it is installed, the widget itself is found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
