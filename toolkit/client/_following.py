"""The shared part of following in both clients: followers of some work, and their changes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakSet

from pydantic import BaseModel

from toolkit.client._feeds import AsyncMailbox, AsyncReader, Mailbox, Reader
from toolkit.client._text_pieces import TextAssembler, TextPiece
from toolkit.contract.events import Event, TextDelta

# A change of work: an event, a piece of a text, or the record as it was read again.
Change: TypeAlias = Event | TextPiece | BaseModel


class FollowerState:
    """The followers of some work by one client, and the state of its reader."""

    def __init__(
        self, reader: AsyncReader | Reader, alarm: AsyncMailbox[None] | Mailbox[None]
    ) -> None:
        # The followers; a follower that is dropped without `close` needs no reading.
        self._looking: WeakSet[FollowingState] = WeakSet()
        # Followers that joined after the request for the record that is being read: that record may
        # be older than theirs, for example if ended work was resumed since.
        self._late: WeakSet[FollowingState] = WeakSet()
        self._reader = reader
        self._alarm = alarm  # wakes the reader if the work may have been resumed
        self._turn = 0  # of the reader that reads now
        self._reads_texts: bool | None = None  # None while no reader runs
        self._after = 0
        self._texts: dict[str, TextAssembler] = {}  # that are being written, by job

    def wake(self) -> None:
        """Check now whether ended work was resumed."""
        self._alarm.put()

    def _enter(self, following: "FollowingState", after: int, read: Callable[[int], Any]) -> bool:
        """Add a follower of all further changes; return whether a reader was already running.

        Args:
            following: the follower.
            after: number of the last event that it knows.
            read: function that reads for all followers while it has the given turn.
        """
        with self._reader.guard:
            is_late = self._reads_texts is not None
            if not is_late:
                self._after = after
                self._texts.clear()
            self._looking.add(following)
            self._late.add(following)
            if following.texts:
                following.put([texts.repeat() for texts in self._texts.values()])
            if not is_late or (following.texts and not self._reads_texts):
                self._reader.cancel()
                self._turn += 1
                self._reads_texts = following.texts
                self._reader.start(partial(read, self._turn))
            return is_late

    def leave(self, following: "FollowingState") -> None:
        """Remove a follower."""
        with self._reader.guard:
            self._looking.discard(following)
            self._late.discard(following)
            if not self._looking and self._reader.cancel():
                self._reads_texts = None
        self._alarm.put()

    def _has_turn(self, turn: int, *, is_over: bool = False) -> bool:
        """Check whether a reader must read on; otherwise another reader may take its place."""
        with self._reader.guard:
            if turn != self._turn:
                return False
            leavers = [
                following
                for following in list(self._looking)
                if is_over and following not in self._late
            ]
            for following in leavers:
                following.end()
            if any(
                following.beyond_end or following not in leavers
                for following in list(self._looking)
            ):
                return True
            self._reads_texts = None
            return False

    def _begin_record(self, turn: int) -> None:
        """Note that the record that is read next is new to all present followers."""
        with self._reader.guard:
            if turn == self._turn:
                self._late.clear()

    def _has_late(self, turn: int) -> bool:
        """Check whether any follower joined after the last record was requested."""
        with self._reader.guard:
            return turn == self._turn and any(
                following in self._late for following in list(self._looking)
            )

    def _begin_texts(self) -> None:
        """Treat the first delta of each text in a stream as the beginning of the text."""
        for texts in self._texts.values():
            texts.begin()

    def _fail(self, turn: int, error: Exception) -> None:
        """Raise an error in all followers, because the reader has no caller."""
        with self._reader.guard:
            if turn == self._turn:
                self._reads_texts = None
                for following in list(self._looking):
                    following.fail(error)

    def _tell_text(self, turn: int, delta: TextDelta) -> None:
        with self._reader.guard:
            if turn == self._turn:
                piece = self._texts.setdefault(delta.job_id, TextAssembler()).add(delta)
                for following in list(self._looking):
                    if piece and following.texts:
                        following.put([piece])

    def _tell_events(self, turn: int, events: Sequence[Event]) -> None:
        with self._reader.guard:
            if turn != self._turn:
                return
            new = [event for event in events if event.n > self._after]
            self._tell(turn, *new)
            for event in new:
                self._after = event.n
                if ends_text(event):
                    self._texts.pop(str(event.data.get("job_id") or event.data.get("id")), None)

    def _tell(self, turn: int, *changes: Change, also_late: bool = True) -> None:
        with self._reader.guard:
            if turn == self._turn and changes:
                for following in list(self._looking):
                    if also_late or following not in self._late:
                        following.put(changes)


class FollowingState:
    """The state of one follower of some work: its unread changes, and its options.

    Attributes:
        texts: whether changes include texts while they are written.
        beyond_end: whether it goes on after the end, because the work may be resumed.
    """

    _below: "FollowingState | None" = None

    def __init__(
        self,
        follower: FollowerState,
        mailbox: AsyncMailbox[Change] | Mailbox[Change],
        after: int,
        texts: bool,
        beyond_end: bool,
    ) -> None:
        self.texts = texts
        self.beyond_end = beyond_end
        self._follower = follower
        self._mailbox = mailbox
        self._after = after
        self._has_joined = False
        self._is_ended = False  # all changes are in the mailbox
        self._is_over = False
        self._error: Exception | None = None
        self._held: list[Change] = []  # of a task, until its workflow is over

    @property
    def is_over(self) -> bool:
        """True if all changes have been returned, or it was closed."""
        return self._is_over

    def _choose_new(self, changes: Sequence[Change]) -> tuple[list[Change], str | None]:
        """Return the new changes up to the start of a workflow, and the id of that workflow.

        The changes after that are held.
        """
        new_changes: list[Change] = []
        for place, change in enumerate(changes):
            if isinstance(change, Event):
                if change.n <= self._after:
                    continue
                self._after = change.n
            new_changes.append(change)
            if isinstance(change, Event) and change.type == "task.executing":
                workflow_id = change.data.get("workflow_id")
                if isinstance(workflow_id, str):
                    self._held = list(changes[place + 1 :])
                    return new_changes, workflow_id
        return new_changes, None

    def put(self, changes: Sequence[Change]) -> None:
        """Add changes; the follower's reader calls this."""
        self._mailbox.put(*changes)

    def end(self) -> None:
        """End the changes, because the work is over; the follower's reader calls this."""
        if not self.beyond_end and not self._is_ended:
            self._is_ended = True
            self._mailbox.put()

    def fail(self, error: Exception) -> None:
        """Raise an error in the follower's next call; the follower's reader calls this."""
        self._error = error
        self._mailbox.put()

    def close(self) -> None:
        """Stop following; the work goes on."""
        self._is_over = True
        self._follower.leave(self)
        self._mailbox.put()
        if self._below is not None:
            self._below.close()


def wake_follower(shared: Mapping[str, object], path: str) -> None:
    """Check some work now, if it is followed, because it may have been resumed after its end.

    Args:
        shared: objects that all users of a client share.
        path: path of the work, below `/v1`.
    """
    follower = shared.get(path)
    if isinstance(follower, FollowerState):
        follower.wake()


def may_end(events: Sequence[Event]) -> bool:
    """Check whether some work may be over after these events, perhaps for a while."""
    return any(event.terminal or event.type.endswith(".blocked") for event in events)


def ends_text(event: Event) -> bool:
    """Check whether an event ends the writing of a text."""
    return event.type.endswith((".completed", ".failed", ".cancelled"))
