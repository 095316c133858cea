"""The functions of this process that workflows call: held until a workflow has ended."""

from collections.abc import Collection

from toolkit.contract.workflows import FUNCTION_CAPABILITY, NodeCreate, WorkflowRecord
from toolkit.engine.context import EngineContext
from toolkit.functions import RegisteredFunction


class WorkflowFunctions:
    """The functions that the workflows of this process may yet call."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core
        self._held: dict[str, list[RegisteredFunction]] = {}  # by workflow, until it has ended

    def refuse_missing(
        self, account_id: str, nodes: Collection[NodeCreate], kept: Collection[str]
    ) -> None:
        """Refuse nodes whose functions are not here, or not for this account to call.

        Args:
            account_id: whose work it is.
            nodes: those of a graph.
            kept: the nodes that are not run, as their results are there.

        Raises:
            RequestError: `FUNCTION_UNAVAILABLE`.
        """
        asked = [node for node in nodes if node.capability == FUNCTION_CAPABILITY]
        if asked:
            from toolkit.functions.node_capability import refuse_missing_functions

            table = self._core.functions
            is_owner = table is not None and table.account_id == account_id
            again = [node for node in asked if node.id not in kept]
            refuse_missing_functions(again, table if is_owner else None)

    def hold(self, workflow: WorkflowRecord) -> None:
        """Hold the functions of a workflow, which the table has for as long as somebody does."""
        if self._core.functions is not None and any(
            node.capability == FUNCTION_CAPABILITY for node in workflow.nodes
        ):
            from toolkit.functions.node_capability import find_functions

            self._held[workflow.id] = find_functions(workflow.nodes, self._core.functions)

    def release(self, workflow_id: str) -> None:
        """Let go of the functions of a workflow that runs here no longer."""
        self._held.pop(workflow_id, None)
