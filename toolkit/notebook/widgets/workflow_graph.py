"""`WorkflowGraph`: the live graph of a running workflow, and the way to a workflow editor."""

from typing import TYPE_CHECKING

from toolkit.client import Client
from toolkit.notebook.live_graph import LiveGraph

if TYPE_CHECKING:
    from toolkit.notebook.widgets.workflow_editor import WorkflowEditor


class WorkflowGraph(LiveGraph):
    """A workflow's graph, live: its nodes change as they run, and show details when chosen.

    Args:
        work: a submitted workflow, or a task, whose workflows are shown one after the other.

    Attributes:
        status: the state of the workflow, such as `running`.
        selected: the id of the node whose details are shown; empty without a choice.
        view: the graph itself, with `states` by the id of the node.
        cancel, retry, fork: the buttons.
        details: the known details of the chosen node.

    Raises:
        TypeError: if the work is neither; use `WorkflowGraph.edit(client)` for an editor.
    """

    @classmethod
    def edit(cls, client: Client) -> "WorkflowEditor":
        """Open an editor for a new workflow."""
        # The editor imports the engine, because it validates like the service; a graph needs none.
        from toolkit.notebook.widgets.workflow_editor import WorkflowEditor

        return WorkflowEditor(client)
