"""Workflows that have just ended: who waited for one is given its record as it was written."""

import asyncio

from toolkit.contract.workflows import WorkflowRecord
from toolkit.store import Row

# Who waits for an end reads it at once.
KEPT_S = 2.0
MAX_NODES = 50_000  # of all that are kept


class EndedWorkflows:
    """The records of workflows that ended in this process, for a moment.

    To read the document of a large workflow takes longer than to write it did. Each record is given
    to its first reader alone, so that no two share one, and only while the stored document is the
    very text that was written: who runs a workflow again, here or elsewhere, writes another.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, WorkflowRecord]] = {}
        self._node_count = 0

    def add(self, workflow: WorkflowRecord, doc: str) -> None:
        """Add a workflow that has ended, and the document that was written of it."""
        if self._node_count + len(workflow.nodes) > MAX_NODES or workflow.id in self._kept:
            return
        self._kept[workflow.id] = doc, workflow
        self._node_count += len(workflow.nodes)
        asyncio.get_running_loop().call_later(KEPT_S, self._remove, workflow.id)

    def take(self, row: Row) -> WorkflowRecord | None:
        """Take the record of a workflow's row; none unless it is what the row holds."""
        doc, workflow = self._remove(str(row["id"]))
        return workflow if doc is not None and doc == row["doc"] else None

    def _remove(self, workflow_id: str) -> tuple[str | None, WorkflowRecord | None]:
        doc, workflow = self._kept.pop(workflow_id, (None, None))
        if workflow is not None:
            self._node_count -= len(workflow.nodes)
        return doc, workflow
