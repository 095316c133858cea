"""A task's attempts as its record tells them: their verdicts, the best, what is delivered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.contract.tasks import Review, Task, TaskAttempt


@dataclass(frozen=True, slots=True)
class ShownArtifact:
    """An artifact, ready to be shown.

    Attributes:
        look: it as HTML, to see or to hear.
        sha256: of its bytes, by which two are the same.
        text: what it says, where it is a text.
    """

    id: str
    look: str
    sha256: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptView:
    """An attempt, ready to be shown.

    Attributes:
        n: its number, from 1.
        status: of its workflow.
        reviews: its verdicts, oldest first.
        artifacts: what it made of what the task delivers, by node id.
        is_best: whether it scored best.
        is_delivered: whether the task delivers what it made.
    """

    n: int
    workflow_id: str
    status: str = ""
    reviews: "Sequence[Review]" = ()
    artifacts: Mapping[str, ShownArtifact] = field(default_factory=dict)
    cost_usd: float | None = None
    is_best: bool = False
    is_delivered: bool = False

    @property
    def review(self) -> "Review | None":
        """The verdict that counts: the last one."""
        return self.reviews[-1] if self.reviews else None

    @property
    def title(self) -> str:
        """Its number, and what sets it apart.

        >>> AttemptView(2, "wfl_1", is_best=True).title
        'Attempt 2 ★ best'
        """
        marks = (" ★ best" * self.is_best) + (" ✓ delivered" * self.is_delivered)
        return f"Attempt {self.n}{marks}"


def list_attempts(task: "Task") -> list[AttemptView]:
    """List the attempts of a task, oldest first, without the looks of what they made."""
    by_workflow = {attempt.workflow_id: attempt for attempt in task.attempts}
    attempts = [by_workflow.get(id) for id in task.workflow_ids]
    best, delivered = _find_best(task, attempts), _find_delivered(task, attempts)
    return [
        AttemptView(
            n + 1,
            id,
            reviews=reviews,
            cost_usd=None if attempt is None else attempt.cost_usd,
            is_best=n == best,
            is_delivered=n == delivered,
        )
        for n, (id, attempt, reviews) in enumerate(
            zip(task.workflow_ids, attempts, _match_reviews(task, attempts), strict=True)
        )
    ]


def read_score(review: "Review", name: str) -> float | None:
    """Read the score of a review, or that of one criterion; none where nobody gave it."""
    holder: object = review if name == "score" else review.criteria
    value: object = getattr(holder, name, None)
    return float(value) if isinstance(value, int | float) else None


def _match_reviews(task: "Task", attempts: "Sequence[TaskAttempt | None]") -> "list[list[Review]]":
    """Match the reviews of a task to its attempts: each retry leads to the next one."""
    matched: list[list[Review]] = [[] for _ in attempts]
    n = 0
    for review in task.reviews:
        if n < len(matched):
            matched[n].append(review)
        n += review.decision == "retry" and n + 1 < len(matched)
    for found, attempt in zip(matched, attempts, strict=True):
        if attempt is not None and attempt.review is not None and attempt.review not in found:
            found.append(attempt.review)
    return matched


def _find_best(task: "Task", attempts: "Sequence[TaskAttempt | None]") -> int | None:
    """Find the attempt whose artifact is the task's best: of several, that with the best score."""
    found = [
        (0.0 if each.review is None else read_score(each.review, "score") or 0.0, -n)
        for n, each in enumerate(attempts)
        if each is not None and task.best_artifact_id in each.artifact_ids.values()
    ]
    return -max(found)[1] if found else None


def _find_delivered(task: "Task", attempts: "Sequence[TaskAttempt | None]") -> int | None:
    """Find the last attempt that made what the task delivers."""
    if task.status != "completed" or not task.artifact_ids:
        return None
    found = [
        n
        for n, each in enumerate(attempts)
        if each is not None and each.artifact_ids == task.artifact_ids
    ]
    return found[-1] if found else None
