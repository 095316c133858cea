"""Following, as far as both clients do it alike: who looks at some work, and what each was told."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakSet

from pydantic import BaseModel

from toolkit.client._feeds import AsyncMailbox, AsyncReader, Mailbox, Reader
from toolkit.client._text_pieces import TextAssembler, TextPiece
from toolkit.contract.events import Event, TextDelta

# What is told of work: what happened to it, a piece of a text, or the record as it was read anew.
Change: TypeAlias = Event | TextPiece | BaseModel


class FollowerState:
    """Who looks at some work by one client, and what was read of it so far."""

    def __init__(
        self, reader: AsyncReader | Reader, alarm: AsyncMailbox[None] | Mailbox[None]
    ) -> None:
        # Those who look; who forgets to close is not read for.
        self._looking: WeakSet[FollowingState] = WeakSet()
        # Who began to look after the record that is being read was asked for: it may be older than
        # what they know, as of work that was over and was then taken up again.
        self._late: WeakSet[FollowingState] = WeakSet()
        self._reader = reader
        self._alarm = alarm  # rings where the work may go on again
        self._turn = 0  # of the reader that reads now
        self._reads_texts: bool | None = None  # none while nobody reads
        self._after = 0
        self._texts: dict[str, TextAssembler] = {}  # that are being written, by job

    def wake(self) -> None:
        """Look now whether work that was over goes on."""
        self._alarm.put()

    def _enter(self, one: "FollowingState", after: int, read: Callable[[int], Any]) -> bool:
        """Tell one of all that changes from now on; return whether others were told before.

        Args:
            one: who looks.
            after: the number of the last event that it knows.
            read: reads for all while it has the turn that it is given.
        """
        with self._reader.guard:
            is_late = self._reads_texts is not None
            if not is_late:
                self._after = after
                self._texts.clear()
            self._looking.add(one)
            self._late.add(one)
            if one.texts:
                one.put([texts.repeat() for texts in self._texts.values()])
            if not is_late or (one.texts and not self._reads_texts):
                self._reader.cancel()
                self._turn += 1
                self._reads_texts = one.texts
                self._reader.start(partial(read, self._turn))
            return is_late

    def leave(self, one: "FollowingState") -> None:
        """Tell one of nothing more."""
        with self._reader.guard:
            self._looking.discard(one)
            self._late.discard(one)
            if not self._looking and self._reader.cancel():
                self._reads_texts = None
        self._alarm.put()

    def _has_turn(self, turn: int, *, is_over: bool = False) -> bool:
        """Tell whether a reader is to read on; another takes its place once it is not."""
        with self._reader.guard:
            if turn != self._turn:
                return False
            ended = [one for one in list(self._looking) if is_over and one not in self._late]
            for one in ended:
                one.end()
            if any(one.beyond_end or one not in ended for one in list(self._looking)):
                return True
            self._reads_texts = None
            return False

    def _begin_record(self, turn: int) -> None:
        """Note that all who look by now may be told of the record that is read next."""
        with self._reader.guard:
            if turn == self._turn:
                self._late.clear()

    def _has_late(self, turn: int) -> bool:
        """Tell whether some began to look after the record that was read last was asked for."""
        with self._reader.guard:
            return turn == self._turn and any(one in self._late for one in list(self._looking))

    def _begin_texts(self) -> None:
        """Take what a stream tells first of each text as its beginning."""
        for texts in self._texts.values():
            texts.begin()

    def _fail(self, turn: int, error: Exception) -> None:
        """Raise an error where somebody looks: nobody sees it in the reader."""
        with self._reader.guard:
            if turn == self._turn:
                self._reads_texts = None
                for one in list(self._looking):
                    one.fail(error)

    def _tell_text(self, turn: int, delta: TextDelta) -> None:
        with self._reader.guard:
            if turn == self._turn:
                piece = self._texts.setdefault(delta.job_id, TextAssembler()).add(delta)
                for one in list(self._looking):
                    if piece and one.texts:
                        one.put([piece])

    def _tell_events(self, turn: int, found: Sequence[Event]) -> None:
        with self._reader.guard:
            if turn != self._turn:
                return
            new = [event for event in found if event.n > self._after]
            self._tell(turn, *new)
            for event in new:
                self._after = event.n
                if ends_text(event):
                    self._texts.pop(str(event.data.get("job_id") or event.data.get("id")), None)

    def _tell(self, turn: int, *changes: Change, also_late: bool = True) -> None:
        with self._reader.guard:
            if turn == self._turn and changes:
                for one in list(self._looking):
                    if also_late or one not in self._late:
                        one.put(changes)


class FollowingState:
    """What one who looks at some work was told, and what is left of it.

    Attributes:
        texts: whether texts are told as they are written.
        beyond_end: whether it goes on after the end, as the work may be taken up again.
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
        self._is_ended = False  # all there is has been put
        self._is_over = False
        self._error: Exception | None = None
        self._held: list[Change] = []  # of a task, until its workflow is over

    @property
    def is_over(self) -> bool:
        """True if all has been told, or it was closed."""
        return self._is_over

    def _choose_new(self, changes: Sequence[Change]) -> tuple[list[Change], str | None]:
        """Return the changes that were not told before, up to the begin of a workflow, and its id.

        The changes after that are held.
        """
        told: list[Change] = []
        for place, change in enumerate(changes):
            if isinstance(change, Event):
                if change.n <= self._after:
                    continue
                self._after = change.n
            told.append(change)
            if isinstance(change, Event) and change.type == "task.executing":
                workflow_id = change.data.get("workflow_id")
                if isinstance(workflow_id, str):
                    self._held = list(changes[place + 1 :])
                    return told, workflow_id
        return told, None

    def put(self, changes: Sequence[Change]) -> None:
        """Take in what has changed: for the follower."""
        self._mailbox.put(*changes)

    def end(self) -> None:
        """Take in that the work is over: for the follower."""
        if not self.beyond_end and not self._is_ended:
            self._is_ended = True
            self._mailbox.put()

    def fail(self, error: Exception) -> None:
        """Take in that the work can be followed no longer: for the follower."""
        self._error = error
        self._mailbox.put()

    def close(self) -> None:
        """Look no longer; the work goes on."""
        self._is_over = True
        self._follower.leave(self)
        self._mailbox.put()
        if self._below is not None:
            self._below.close()


def wake_follower(shared: Mapping[str, object], path: str) -> None:
    """Have some work be looked at now, if it is followed: it may go on after its end.

    Args:
        shared: what those who use a client share.
        path: of the work, below `/v1`.
    """
    found = shared.get(path)
    if isinstance(found, FollowerState):
        found.wake()


def may_end(found: Sequence[Event]) -> bool:
    """Tell whether some work may be over after these events, be it for a while."""
    return any(event.terminal or event.type.endswith(".blocked") for event in found)


def ends_text(event: Event) -> bool:
    """Tell whether a text is written no more after an event."""
    return event.type.endswith((".completed", ".failed", ".cancelled"))
