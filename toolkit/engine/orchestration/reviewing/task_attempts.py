"""The attempts of a task: each workflow with its results and its verdict, compared."""

from collections.abc import Sequence

from toolkit.contract.plans import Plan, PlanNode
from toolkit.contract.tasks import PERSON_REVIEWER, Review, Task, TaskAttempt
from toolkit.contract.workflows import WorkflowRecord

# Rank of an attempt by its verdict and the reviewer; a person's verdict outranks the checks.
_STANDINGS = {
    (True, "pass"): 3,
    (False, "pass"): 2,
    (False, "fail"): 1,
    (True, "fail"): 0,
}
_UNDECIDED = 1
PASSED = 2


def record_attempt(task: Task, workflow: WorkflowRecord, plan: Plan) -> int:
    """Record an ended workflow as an attempt of a task, and return the attempt's index.

    A workflow that is already recorded stays as it is. A new attempt may become the best.
    """
    artifact_ids = {node.id: node.artifact_id for node in workflow.nodes}
    attempt = TaskAttempt(
        workflow_id=workflow.id,
        artifact_ids={
            node_id: artifact_id
            for node_id in plan.deliverables
            if (artifact_id := artifact_ids.get(node_id)) is not None
        },
        cost_usd=workflow.cost_usd,
    )
    for i, earlier in enumerate(task.attempts):
        if earlier.workflow_id == workflow.id:
            return i
    task.attempts.append(attempt)
    _name_best(task, plan)
    return len(task.attempts) - 1


def add_review(task: Task, index: int, review: Review, plan: Plan) -> None:
    """Add a verdict on an attempt, and set the task's best artifact by all verdicts again."""
    review.attempt = index + 1
    task.review = task.attempts[index].review = review
    task.reviews.append(review)
    _name_best(task, plan)


def find_best(task: Task, standing: int = 0) -> int | None:
    """Find the index of the best attempt with results, the last of equals; None without any.

    Args:
        standing: minimum standing of the attempt, such as `PASSED`.
    """
    ranking = [
        (_rank(task, i), i)
        for i, attempt in enumerate(task.attempts)
        if attempt.artifact_ids and _rank(task, i)[0] >= standing
    ]
    return max(ranking)[1] if ranking else None


def _rank(task: Task, index: int) -> tuple[int, float]:
    """Return the standing of an attempt by its last pass or fail verdict, and its last score.

    A `retry` verdict asks for a better result and does not change the standing of the attempt.
    """
    verdicts = [review for review in task.reviews if review.attempt == index + 1]
    decisions = [review for review in verdicts if review.decision != "retry"]
    scores = [review.score for review in verdicts if review.score is not None]
    standing = _UNDECIDED
    if decisions:
        standing = _STANDINGS[decisions[-1].reviewer == PERSON_REVIEWER, decisions[-1].decision]
    return standing, scores[-1] if scores else 0.0


def _name_best(task: Task, plan: Plan) -> None:
    best = find_best(task)
    if best is not None:
        task.best_artifact_id = _choose_artifact(task.attempts[best].artifact_ids, plan)


def _choose_artifact(artifact_ids: dict[str, str], plan: Plan) -> str | None:
    """Choose an attempt's main artifact: the last made by a node that nothing depends on.

    If no such node made an artifact, it is the last artifact of any node, or None.
    """
    last = [node_id for node_id in find_sinks(plan.nodes) if node_id in artifact_ids]
    return artifact_ids[last[-1]] if last else next(reversed(artifact_ids.values()), None)


def find_sinks(nodes: Sequence[PlanNode]) -> list[str]:
    """Find the nodes that nothing depends on."""
    depended_on = {up for node in nodes for up in node.depends_on}
    return [node.id for node in nodes if node.id not in depended_on]
