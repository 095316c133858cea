"""Submissions that wait to be written, in the order in which they go."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from toolkit.store.changes import Change, Lease
from toolkit.store.writing.submissions import Submission

# A few groups: waiting submissions are held in memory, and all others queue behind them.
MAX_WEIGHT = 1_024


class Backlog:
    """A queue of submissions, in which new requests go first when there are more than fit a group.

    Each submission is looked at a fixed number of times, however many wait: a workflow whose nodes
    never wait is ahead of the disk by tens of thousands of them.
    """

    def __init__(self) -> None:
        self._arrived: deque[Submission] = deque()
        # Submissions that did not fit a group: inserts of only new rows, and all others.
        self._new: deque[Submission] = deque()
        self._others: deque[Submission] = deque()
        self._weight = 0
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        """How many submissions wait."""
        return len(self._arrived) + len(self._new) + len(self._others)

    async def wait_for_room(self) -> None:
        """Wait until no more is waiting to be written than a few groups."""
        if self._weight > MAX_WEIGHT:
            await self._room.wait()

    def append(self, submission: Submission) -> None:
        """Put a submission behind all others."""
        self._arrived.append(submission)
        self._add_weight(submission.weight)

    def join(self, changes: Sequence[Change], lease: Lease) -> "asyncio.Future[None] | None":
        """Add changes that nobody waits for to the last submission.

        Returns:
            The future of that submission, or None if it cannot take them.
        """
        if not self._arrived:
            return None
        last = self._arrived[-1]
        before = last.weight
        if not last.take(changes, lease):
            return None
        self._add_weight(last.weight - before)
        return last.future

    def pop_group(self, max_weight: int) -> list[Submission]:
        """Take out the submissions to write next: of so much weight at most, or else one."""
        if self._weight > max_weight:
            # A new request waits for one group of a large workflow's writes, not for all.
            while self._arrived:
                submission = self._arrived.popleft()
                (self._new if submission.is_new else self._others).append(submission)
        group: list[Submission] = []
        room = max_weight
        for queue in (self._new, self._others, self._arrived):
            while queue and (queue[0].weight <= room or not group):
                submission = queue.popleft()
                room -= submission.weight
                group.append(submission)
            if queue:
                break
        self._add_weight(room - max_weight)
        return group

    def pop_where(self, holds: Callable[[Submission], bool]) -> list[Submission]:
        """Take out all the submissions for which something holds, in order."""
        matches: list[Submission] = []
        for queue in (self._new, self._others, self._arrived):
            waiting = [*queue]
            queue.clear()
            for submission in waiting:
                (matches if holds(submission) else queue).append(submission)
        self._add_weight(-sum(submission.weight for submission in matches))
        return matches

    def _add_weight(self, weight: int) -> None:
        self._weight += weight
        if self._weight > MAX_WEIGHT:
            self._room.clear()
        else:
            self._room.set()
