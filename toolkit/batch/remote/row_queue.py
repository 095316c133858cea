"""The order in which a batch's notebooks are handed out, and the search for worker killers."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Final

from toolkit.batch.notebook_job import NotebookJob

MAX_ATTEMPTS: Final = 3
MAX_SUSPECTS_TOGETHER: Final = 16


class RowQueue:
    """The notebooks that are still to be run.

    A lost worker does not show which notebook broke it: a pool that breaks loses all its notebooks.
    The notebooks that had begun are suspects. They are set aside while the others go on, and run
    again at the end: some at once, then half as many after each further loss. At last a single
    suspect runs alone, and is to blame for a loss.

    Args:
        limit: maximum number of notebooks under way.
    """

    def __init__(self, jobs: Iterable[NotebookJob], limit: int) -> None:
        self._waiting = deque(jobs)
        self._suspects: deque[NotebookJob] = deque()
        self._limit = limit
        self._group = 0  # maximum number of suspects under way; 0 while others are
        self._attempts: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._waiting or self._suspects)

    def take(self, under_way: int) -> NotebookJob | None:
        """Take the next notebook. Returns None if it must wait for notebooks under way."""
        if self._group and not self._suspects and not under_way:
            self._group = 0
        if not self._group and self._waiting:
            return self._waiting.popleft() if under_way < self._limit else None
        if not self._suspects or (not self._group and under_way):
            return None
        if not self._group:
            self._group = self._compute_group(len(self._suspects))
        return self._suspects.popleft() if under_way < self._group else None

    def give_back(self, jobs: Sequence[NotebookJob]) -> None:
        """Take back notebooks that an executor did not run, through no fault of theirs."""
        (self._suspects if self._group else self._waiting).extendleft(reversed(jobs))

    @property
    def is_alone(self) -> bool:
        """Return True if the only notebook under way is a suspect that runs by itself."""
        return self._group == 1

    def blame(self, job: NotebookJob, *, is_certain: bool = False) -> bool:
        """Blame a notebook for the loss of its worker; return whether it is run again.

        Args:
            is_certain: whether it has run often enough to be given up.
        """
        self._attempts[job.fingerprint] += 1
        if self._attempts[job.fingerprint] < MAX_ATTEMPTS and not is_certain:
            self._suspects.appendleft(job)
            return True
        if self._group:
            self._group = self._compute_group(len(self._suspects))
        return False

    def suspect(self, jobs: Sequence[NotebookJob]) -> None:
        """Set aside notebooks that were under way when a worker was lost, to run again later."""
        self._suspects.extendleft(reversed(jobs))
        if self._group:
            self._group = self._compute_group(min(self._group, len(jobs)))

    def _compute_group(self, suspects: int) -> int:
        """Compute how many suspects run at once, given the number that hides the culprit."""
        return max(1, min(suspects // 2, self._limit, MAX_SUSPECTS_TOGETHER))
