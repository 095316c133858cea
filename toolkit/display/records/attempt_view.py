"""A task's attempts from its record: verdicts, the best attempt, and the delivered attempt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.contract.tasks import Review, Task


@dataclass(frozen=True, slots=True)
class ShownArtifact:
    """An artifact, ready to display.

    Attributes:
        look: the artifact as HTML: a picture, a player or a text.
        sha256: hash of its bytes; equal hashes mean equal artifacts.
        text: content of a small text artifact; None for other artifacts.
    """

    id: str
    look: str
    sha256: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptView:
    """An attempt, ready to display.

    Attributes:
        n: number of the attempt, from 1.
        status: status of its workflow.
        reviews: verdicts on the attempt, oldest first.
        artifacts: artifacts for delivery, by node id.
        is_best: whether the attempt has the best score.
        is_delivered: whether the task delivers its artifacts.
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
        """The valid verdict, which is the last."""
        return self.reviews[-1] if self.reviews else None

    @property
    def scored(self) -> "Review | None":
        """The last verdict with a score; None if no verdict has a score."""
        return next((review for review in reversed(self.reviews) if review.score is not None), None)

    @property
    def title(self) -> str:
        """The number of the attempt, with its marks.

        >>> AttemptView(2, "wfl_1", is_best=True).title
        'Attempt 2 ★ best'
        """
        marks = (" ★ best" * self.is_best) + (" ✓ delivered" * self.is_delivered)
        return f"Attempt {self.n}{marks}"


def list_attempts(task: "Task") -> list[AttemptView]:
    """List the attempts of a task without their artifacts, oldest first.

    The running attempt comes last.
    """
    ended_ids = [attempt.workflow_id for attempt in task.attempts]
    under_way = [id for id in task.workflow_ids if id not in ended_ids]
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
        for n, id in enumerate([*ended_ids, *under_way])
    ]


def read_score(review: "Review | None", name: str) -> float | None:
    """Read the score of a review or of a criterion; return None if it has no score."""
    holder: object = review if review is None or name == "score" else review.criteria
    value: object = getattr(holder, name, None)
    return float(value) if isinstance(value, int | float) else None


def _find_best(task: "Task") -> int | None:
    """Find the index of the attempt with the task's best artifact, or None.

    Of several, prefer the final attempt, then the best score, then the last attempt.
    """
    candidates = [
        (n + 1 == task.final_attempt, read_score(attempt.review, "score") or 0.0, n)
        for n, attempt in enumerate(task.attempts)
        if task.best_artifact_id in attempt.artifact_ids.values()
    ]
    return max(candidates)[2] if candidates else None
