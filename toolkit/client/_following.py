"""The shared part of following in both clients: followers of some work, and their changes."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakSet

from pydantic import BaseModel

from toolkit.client._feeds import AsyncMailbox, AsyncReader, Mailbox, Reader
from toolkit.contract.events import (
    PIECE_KINDS,
    Event,
    PieceKind,
    TextDelta,
    TextPiece,
    ToolCallPart,
)

# A change of work: an event, a piece of a text, or the record as it was read again.
Change: TypeAlias = Event | TextPiece | BaseModel


class TextAssembler:
    """Assembles a streamed answer from its deltas, and completes it from the stored output."""

    def __init__(self) -> None:
        self._seen: dict[tuple[PieceKind, int], TextDelta] = {}  # each part as a whole
        self._begun: set[tuple[PieceKind, int]] = set()
        self._last = TextDelta(resource_id="", job_id="", attempt=1, text="")

    def begin(self) -> None:
        """Prepare for a new stream, whose first delta of each part repeats the part so far."""
        self._begun = set(self._seen)

    def add(self, delta: TextDelta) -> TextPiece | None:
        """Add a delta, and return the new piece of the answer, or None if nothing is new.

        The piece restarts its part if it is of another attempt, or does not continue the text.
        """
        self._last, part = delta, delta.part
        earlier = [seen for seen in self._list_seen(delta.kind) if seen.attempt != delta.attempt]
        for seen in earlier:
            del self._seen[seen.part]
        before = None if part in self._begun else self._seen.get(part)
        self._begun.discard(part)
        text = delta.text if before is None else before.text + delta.text
        return self._see(delta.model_copy(update={"text": text}), restarts=bool(earlier))

    def repeat(self) -> list[TextPiece]:
        """Return all parts so far, for a follower that has seen nothing of them."""
        return [TextPiece.of(seen, seen.text) for seen in self._seen.values()]

    def complete(self, output: object, kinds: Sequence[PieceKind]) -> Iterator[TextPiece]:
        """Yield the pieces of a stored output that were not seen, of the given kinds.

        A text that differs from the stored text is yielded again as a whole, and all tool calls
        are if any of them differs.
        """
        if not isinstance(output, Mapping):
            return
        for kind in (kind for kind in PIECE_KINDS if kind in kinds):
            if kind == "tool_call":
                yield from self._complete_calls(output.get("tool_calls") or [])
                continue
            piece = self._see(self._make_part(kind, output.get(kind)))
            if piece is not None:
                yield piece

    def _complete_calls(self, calls: Sequence[Mapping[str, Any]]) -> Iterator[TextPiece]:
        """Yield the stored tool calls, unless the same calls were seen."""
        seen = self._list_seen("tool_call")
        if [_parse_arguments(part.text) for part in seen] == [call["arguments"] for call in calls]:
            return
        for index, call in enumerate(calls):
            text = json.dumps(call["arguments"], ensure_ascii=False)
            tool_call = ToolCallPart(index=index, id=call["id"], name=call["name"])
            whole = self._make_part("tool_call", text, tool_call)
            yield TextPiece.of(whole, text, restarts=bool(seen) and index == 0)

    def _list_seen(self, kind: PieceKind) -> list[TextDelta]:
        return [seen for seen in self._seen.values() if seen.kind == kind]

    def _make_part(
        self, kind: PieceKind, text: object, tool_call: ToolCallPart | None = None
    ) -> TextDelta:
        text = text if isinstance(text, str) else ""
        return self._last.model_copy(update={"kind": kind, "text": text, "tool_call": tool_call})

    def _see(self, whole: TextDelta, *, restarts: bool = False) -> TextPiece | None:
        """Store the whole text of a part, and return the new piece of it, or None without any."""
        before = self._seen.get(whole.part)
        self._seen[whole.part] = whole
        seen = "" if before is None else before.text
        if whole.text == seen and (before is not None or whole.tool_call is None):
            return None
        if not whole.text.startswith(seen):
            restarts, seen = True, ""
        return TextPiece.of(whole, whole.text[len(seen) :], restarts=restarts)


def _parse_arguments(text: str) -> object:
    """Parse the arguments of a tool call, "" as {}; returns None if they are not valid JSON."""
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None


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
        """Make the reader check now whether ended work was resumed."""
        self._alarm.put()

    def _enter(self, following: "FollowingState", after: int, read: Callable[[int], Any]) -> bool:
        """Add a follower, and start a reader if needed; return whether a reader was running.

        Args:
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
            if following.kinds:
                parts = [part for texts in self._texts.values() for part in texts.repeat()]
                following.put([part for part in parts if part.kind in following.kinds])
            if not is_late or (following.kinds and not self._reads_texts):
                self._reader.cancel()
                self._turn += 1
                self._reads_texts = bool(following.kinds)
                self._reader.start(partial(read, self._turn))
            return is_late

    def leave(self, following: "FollowingState") -> None:
        """Remove a follower; without any follower, the reader ends."""
        with self._reader.guard:
            self._looking.discard(following)
            self._late.discard(following)
            if not self._looking and self._reader.cancel():
                self._reads_texts = None
        self._alarm.put()

    def _has_turn(self, turn: int, *, is_over: bool = False) -> bool:
        """Check whether a reader must read on; if the work is over, end the followers first."""
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
                    if piece is not None and piece.kind in following.kinds:
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
        kinds: kinds of pieces that the changes include.
        beyond_end: whether it goes on after the end, because the work may be resumed.
    """

    _below: "FollowingState | None" = None

    def __init__(
        self,
        follower: FollowerState,
        mailbox: AsyncMailbox[Change] | Mailbox[Change],
        after: int,
        kinds: Sequence[PieceKind],
        beyond_end: bool,
    ) -> None:
        self.kinds = kinds
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
        """True if all changes have been returned, or the follower was closed."""
        return self._is_over

    def _choose_new(self, changes: Sequence[Change]) -> tuple[list[Change], str | None]:
        """Return the new changes up to the start of a workflow, and the id of that workflow.

        The changes after that are kept until the workflow is over.
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
        """End the changes at the end of the work, unless `beyond_end`; the reader calls this."""
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
    """Check some work now, if it is followed, because it may have been resumed after its end."""
    follower = shared.get(path)
    if isinstance(follower, FollowerState):
        follower.wake()


def may_end(events: Sequence[Event]) -> bool:
    """Check whether these events say that the work ended, or waits for a person."""
    return any(event.terminal or event.type.endswith(".blocked") for event in events)


def ends_text(event: Event) -> bool:
    """Check whether an event ends the writing of a text."""
    return event.type.endswith((".completed", ".failed", ".cancelled"))
