"""`WorkflowGraph`: the live graph of a running workflow, and the way to an editor of a new one."""

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
        selected: the id of the node whose details are shown; empty for none.
        view: the graph itself, with `states` by the id of the node.
        cancel, retry, fork: the buttons.
        details: what is known of the chosen node.

    Raises:
        TypeError: for what is neither; an editor is `WorkflowGraph.edit(client)`.
    """

    @classmethod
    def edit(cls, client: Client) -> "WorkflowEditor":
        """Open an editor for a new workflow."""
        # The editor checks as the service does, and so imports the engine: a graph needs none.
        from toolkit.notebook.widgets.workflow_editor import WorkflowEditor

        return WorkflowEditor(client)
