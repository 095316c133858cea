"""A task's attempts as its record and its workflows tell them; `TaskReview` shows them."""

from toolkit.client import Task, WorkflowRun
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.tasks import Review, TaskAttempt
from toolkit.contract.tasks import Task as TaskRecord
from toolkit.display.records.attempts import AttemptView, ShownArtifact, read_score
from toolkit.notebook import widget_html


class AttemptReader:
    """A reader of a task's attempts, which reads nothing twice that cannot change."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._workflows: dict[str, WorkflowRun] = {}
        self._artifacts: dict[str, ShownArtifact] = {}

    def read_attempts(self) -> list[AttemptView]:
        """Read the attempts as the task's record has them now, oldest first."""
        record = self._task.record
        attempts = list_attempts(record)
        reviews = match_reviews(record)
        best, delivered = find_best(record, attempts), find_delivered(record, attempts)
        return [
            self._read_attempt(n, attempt, reviews[n], n == best, n == delivered)
            for n, attempt in enumerate(attempts)
        ]

    def read_workflow(self, id: str) -> WorkflowRun:
        """Read a workflow of the task."""
        known = self._workflows.get(id)
        if known is None or known.status not in FINAL_STATUSES:
            known = self._workflows[id] = self._task.workflow(id)
        return known

    def _read_attempt(
        self,
        n: int,
        attempt: TaskAttempt,
        reviews: list[Review],
        is_best: bool,
        is_delivered: bool,
    ) -> AttemptView:
        workflow = self.read_workflow(attempt.workflow_id)
        made = attempt.artifact_ids or workflow.sink_artifact_ids
        read = {node: self._read_artifact(workflow, node) for node in made}
        cost = workflow.record.cost_usd if attempt.cost_usd is None else attempt.cost_usd
        return AttemptView(
            n + 1,
            workflow.id,
            workflow.status,
            reviews,
            {node: artifact for node, artifact in read.items() if artifact is not None},
            cost,
            is_best,
            is_delivered,
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


def list_attempts(task: TaskRecord) -> list[TaskAttempt]:
    """List the attempts of a task, the one under way too, and those of a record that names none."""
    known = {attempt.workflow_id: attempt for attempt in task.attempts}
    return [known.get(id) or TaskAttempt(workflow_id=id) for id in task.workflow_ids]


def match_reviews(task: TaskRecord) -> list[list[Review]]:
    """Match the reviews of a task to its attempts, each with its own, oldest first."""
    matched: list[list[Review]] = [[] for _ in task.workflow_ids]
    n = 0
    for review in task.reviews:
        if n < len(matched):
            matched[n].append(review)
        n += review.decision == "retry" and n + 1 < len(matched)
    for found, attempt in zip(matched, list_attempts(task), strict=True):
        if attempt.review is not None and attempt.review not in found:
            found.append(attempt.review)
    return matched


def find_best(task: TaskRecord, attempts: list[TaskAttempt]) -> int | None:
    """Find the attempt that the task calls its best: of several with its artifact, the first that
    scored highest.
    """
    found = [
        (0.0 if each.review is None else read_score(each.review, "score") or 0.0, -n)
        for n, each in enumerate(attempts)
        if task.best_artifact_id is not None and task.best_artifact_id in each.artifact_ids.values()
    ]
    return -max(found)[1] if found else None


def find_delivered(task: TaskRecord, attempts: list[TaskAttempt]) -> int | None:
    """Find the last attempt that made what the task delivers."""
    if task.status != "completed" or not task.artifact_ids:
        return None
    found = [n for n, each in enumerate(attempts) if each.artifact_ids == task.artifact_ids]
    return found[-1] if found else None
