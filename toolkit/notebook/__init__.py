"""Notebook parts of the toolkit: magics (`%load_ext toolkit`) and widgets.

Widgets are live and usable by keyboard, and each comes with a picture or a table.

>>> from toolkit.notebook import WorkflowGraph
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.notebook.widgets.capability_form import CapabilityForm as CapabilityForm
    from toolkit.notebook.widgets.provider_setup import ProviderSetup as ProviderSetup
    from toolkit.notebook.widgets.run_table import RunTable as RunTable
    from toolkit.notebook.widgets.task_dashboard import TaskDashboard as TaskDashboard
    from toolkit.notebook.widgets.task_review import TaskReview as TaskReview
    from toolkit.notebook.widgets.usage_dashboard import UsageDashboard as UsageDashboard
    from toolkit.notebook.widgets.workflow_editor import WorkflowEditor as WorkflowEditor
    from toolkit.notebook.widgets.workflow_graph import WorkflowGraph as WorkflowGraph

# The module of each widget: a notebook that uses one does not import the others.
_EXPORTS = {
    "CapabilityForm": "toolkit.notebook.widgets.capability_form",
    "ProviderSetup": "toolkit.notebook.widgets.provider_setup",
    "RunTable": "toolkit.notebook.widgets.run_table",
    "TaskDashboard": "toolkit.notebook.widgets.task_dashboard",
    "TaskReview": "toolkit.notebook.widgets.task_review",
    "UsageDashboard": "toolkit.notebook.widgets.usage_dashboard",
    "WorkflowEditor": "toolkit.notebook.widgets.workflow_editor",
    "WorkflowGraph": "toolkit.notebook.widgets.workflow_graph",
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
    return sorted([*globals(), *__all__])
