"""A task's attempts as its record tells them: their verdicts, the best, what is delivered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.contract.tasks import Review, Task


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
    def scored(self) -> "Review | None":
        """The last verdict that has a score; none where nobody gave any."""
        return next((one for one in reversed(self.reviews) if one.score is not None), None)

    @property
    def title(self) -> str:
        """Its number, and what sets it apart.

        >>> AttemptView(2, "wfl_1", is_best=True).title
        'Attempt 2 ★ best'
        """
        marks = (" ★ best" * self.is_best) + (" ✓ delivered" * self.is_delivered)
        return f"Attempt {self.n}{marks}"


def list_attempts(task: "Task") -> list[AttemptView]:
    """List the attempts of a task, oldest first, without the looks of what they made.

    The one under way is the last.
    """
    known = [attempt.workflow_id for attempt in task.attempts]
    under_way = [id for id in task.workflow_ids if id not in known]
    costs = [attempt.cost_usd for attempt in task.attempts] + [None] * len(under_way)
    best = _find_best(task)
    return [
        AttemptView(
            n + 1,
            id,
            reviews=[review for review in task.reviews if review.attempt == n + 1],
            cost_usd=costs[n],
            is_best=n == best,
            is_delivered=n + 1 == task.final_attempt,
        )
        for n, id in enumerate([*known, *under_way])
    ]


def read_score(review: "Review | None", name: str) -> float | None:
    """Read the score of a review, or that of one criterion; none where nobody gave it."""
    holder: object = review if review is None or name == "score" else review.criteria
    value: object = getattr(holder, name, None)
    return float(value) if isinstance(value, int | float) else None


def _find_best(task: "Task") -> int | None:
    """Find the attempt whose artifact is the task's best: of several with it, the one to deliver,
    or else that with the best score, the last of equals.
    """
    found = [
        (n + 1 == task.final_attempt, read_score(attempt.review, "score") or 0.0, n)
        for n, attempt in enumerate(task.attempts)
        if task.best_artifact_id in attempt.artifact_ids.values()
    ]
    return max(found)[2] if found else None
