"""A task's attempts with the looks of what they made; `TaskReview` shows them."""

from dataclasses import replace

from toolkit.client import Task, WorkflowRun
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.display.records.attempt_view import AttemptView, ShownArtifact, list_attempts
from toolkit.notebook import widget_html


class AttemptReader:
    """A reader of a task's attempts, which reads nothing twice that cannot change."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._workflows: dict[str, WorkflowRun] = {}
        self._artifacts: dict[str, ShownArtifact] = {}

    def read_attempts(self) -> list[AttemptView]:
        """Read the attempts as the task's record has them now, oldest first."""
        delivered = {each.workflow_id: each.artifact_ids for each in self._task.record.attempts}
        return [
            self._complete_view(view, delivered.get(view.workflow_id) or {})
            for view in list_attempts(self._task.record)
        ]

    def read_workflow(self, id: str) -> WorkflowRun:
        """Read a workflow of the task."""
        known = self._workflows.get(id)
        if known is None or known.status not in FINAL_STATUSES:
            known = self._workflows[id] = self._task.workflow(id)
        return known

    def _complete_view(self, view: AttemptView, artifact_ids: dict[str, str]) -> AttemptView:
        workflow = self.read_workflow(view.workflow_id)
        nodes = artifact_ids or workflow.sink_artifact_ids
        read = {node: self._read_artifact(workflow, node) for node in nodes}
        return replace(
            view,
            status=workflow.status,
            artifacts={node: made for node, made in read.items() if made is not None},
            cost_usd=workflow.record.cost_usd if view.cost_usd is None else view.cost_usd,
        )

    def _read_artifact(self, workflow: WorkflowRun, node_id: str) -> ShownArtifact | None:
        artifact_id = workflow[node_id].artifact_id
        if artifact_id is None:
            return None
        if artifact_id not in self._artifacts:
            try:
                artifact = workflow.artifact(node_id)
            except RequestError as error:
                if error.code is not ErrorCode.NOT_FOUND:
                    raise
                return None  # it was deleted since
            self._artifacts[artifact_id] = widget_html.read_shown_artifact(artifact)
        return self._artifacts[artifact_id]
