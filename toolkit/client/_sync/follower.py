# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""Following work: one reader of its events and texts serves all followers of one client."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Self

from pydantic import BaseModel

from toolkit.client._feeds import Mailbox, Reader
from toolkit.client._following import Change, FollowerState, FollowingState, may_end
from toolkit.client._sync.http import HttpClient
from toolkit.contract.events import Event, PieceKind, TextDelta
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.workflows import WorkflowRecord

WINDOW_S = 10.0  # maximum seconds that a reader goes on after the last follower has left
FIRST_CHECK_S = 2.0  # seconds between checks whether ended work was resumed
LAST_CHECK_S = 15.0


class Follower(FollowerState):
    """The one reader of changes of some work for all followers in a client; ends with the last.

    Requests are repeated while the service is away, and go on after the last event. Work that was
    resumed, by any client, is noticed while a follower stays beyond its end.
    """

    _alarm: Mailbox[None]

    def __init__(self, http: HttpClient, model: type[Any], path: str) -> None:
        super().__init__(Reader(), Mailbox[None]())
        self._http = http
        self._model = model
        self._path = path

    def join(self, following: "Following", after: int) -> Sequence[Change]:
        """Add a follower; return the changes that it missed, if a reader already runs."""
        if not self._enter(following, after, self._read):
            return ()
        backlog = self.read_missed(after)
        self._alarm.put()
        return backlog

    def read_missed(self, after: int) -> Sequence[Change]:
        """Read the events numbered above `after`, and then the record of the work."""
        events = self._http.request_events(self._path, after, 0)
        return [*events, self._http.request_record(self._model, "GET", self._path)]

    def _read(self, turn: int) -> None:
        """Read until no follower is left, or another reader replaces this; report errors to all."""
        pause_s, is_over = FIRST_CHECK_S, False
        try:
            while self._has_turn(turn, is_over=is_over):
                if is_over:
                    self._alarm.take(pause_s)
                    pause_s = min(pause_s * 2, LAST_CHECK_S)
                    is_over = self._read_list(turn, 0)
                    continue
                pause_s = FIRST_CHECK_S
                if self._reads_texts:
                    is_over = self._read_stream(turn)
                else:
                    is_over = self._read_list(turn, int(WINDOW_S))
        except Exception as error:
            self._fail(turn, error)

    def _read_list(self, turn: int, wait_s: int) -> bool:
        """Read and report new events, waiting up to `wait_s` s; return whether the work is over."""
        self._begin_record(turn)
        events, record = self._http.request_progress(
            self._model, self._path, self._after, wait_s, may_end
        )
        self._tell_events(turn, events)
        return record is not None and self._tell_record(turn, record, events)

    def _read_stream(self, turn: int) -> bool:
        """Read and report events and texts for about 10 s; return True if the work is over."""
        if self._read_list(turn, 0):
            return True
        until = time.monotonic() + WINDOW_S
        stream = self._http.stream_events(self._path, self._after, until, self._begin_texts)
        with closing(stream):
            for item in stream:
                if isinstance(item, TextDelta):
                    self._tell_text(turn, item)
                else:
                    self._tell_events(turn, [item])
                    if may_end([item]):
                        record = self._read_record(turn)
                        if self._tell_record(turn, record, [item]):
                            return True
                if not self._has_turn(turn):
                    return False
        if time.monotonic() >= until:
            return False
        return self._tell_record(turn, self._read_record(turn), [])

    def _read_record(self, turn: int) -> BaseModel:
        self._begin_record(turn)
        record: BaseModel = self._http.request_record(self._model, "GET", self._path)
        return record

    def _tell_record(self, turn: int, record: BaseModel, events: Sequence[Event]) -> bool:
        """Report a record that was read after some events; return whether the work is over."""
        self._tell(turn, record, also_late=False)
        while self._has_late(turn):  # no later event may notify late followers
            record = self._read_record(turn)
            self._tell(turn, record, also_late=False)
        if getattr(record, "status", "") not in FINAL_STATUSES:
            return False
        if events and events[-1].terminal:
            return True
        last = self._http.request_events(self._path, self._after, 0)
        self._tell_events(turn, last)
        return not last


class Following(FollowingState):
    """The changes of some work for one follower, in batches, until the work is over.

    A caller that stops early must call `close`, from any thread, or use a `with` block. A task's
    changes include those of its workflows: each workflow is reported to its end before the task.
    """

    _follower: Follower
    _mailbox: Mailbox[Change]
    _below: "Following | None" = None

    def __init__(
        self,
        http: HttpClient,
        model: type[Any],
        path: str,
        after: int = 0,
        *,
        kinds: Sequence[PieceKind] = (),
        beyond_end: bool = False,
    ) -> None:
        # All followers of the same work by one client share its reader.
        follower = http.shared.get(path)
        if not isinstance(follower, Follower):
            follower = http.shared[path] = Follower(http, model, path)
        super().__init__(follower, Mailbox[Change](), after, kinds, beyond_end)
        self._http = http

    def take(self, timeout_s: float | None = None) -> list[Change]:
        """Return the changes since the last call, waiting for the first of them.

        The list is empty after the timeout, and once all changes have been returned.

        Args:
            timeout_s: maximum seconds to wait. Default: None, no limit.

        Raises:
            ToolkitError: the error that the service answered, or that it could not be reached.
        """
        if self._is_over:
            return []
        if self._below is not None:
            below = self._below
            changes = below.take(timeout_s)
            if below.is_over:
                self._below = None
            return changes
        if self._held:
            pending, self._held = self._held, []
            return self._pass_on(pending)
        if not self._has_joined:
            self._has_joined = True
            backlog = self._follower.join(self, self._after)
            if backlog:
                return self._pass_on(backlog)
        is_last = self._is_ended
        changes, has_lost = self._mailbox.take(0 if is_last else timeout_s)
        if has_lost:
            changes = list(self._follower.read_missed(self._after))
        if self._error is not None and not changes:
            self.close()
            raise self._error
        new_changes = self._pass_on(changes)
        if is_last and not self._held and self._below is None:
            self.close()
        return new_changes

    def _pass_on(self, changes: Sequence[Change]) -> list[Change]:
        """Return the changes that are new to the follower, up to the start of a task's workflow.

        The changes of that workflow come next.
        """
        new_changes, workflow_id = self._choose_new(changes)
        if workflow_id is not None:
            path = f"/workflows/{workflow_id}"
            new_changes.append(self._http.request_record(WorkflowRecord, "GET", path))
            self._below = Following(self._http, WorkflowRecord, path, kinds=self.kinds)
        return new_changes

    def __iter__(self) -> Iterator[list[Change]]:
        try:
            while not self._is_over:
                changes = self.take()
                if changes:
                    yield changes
        finally:
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
