"""Background threads of widgets: handlers never block, and traits carry the results."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from toolkit.contract.errors import ServiceError, ToolkitError
from toolkit.contract.events import Event

POLL_S = 2  # how long one request for events is held, and a closed widget's thread may go on
MAX_FAILURES = 5
Work = Callable[[], None]


class Background:
    """The threads of one widget: actions one after the other, feeds and watches beside them.

    All are daemons, so none keeps a kernel from ending.

    Args:
        tell: a function that shows a person one sentence; called on any thread.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._actions: deque[Work] = deque()
        self._changed = threading.Condition()
        self._acting = False
        self._feeds = 0
        self._is_expecting = False
        self.closed = threading.Event()

    def start_action(self, work: Work) -> None:
        """Run an action after those before it; an error is shown."""
        with self._changed:
            if self.closed.is_set():
                return
            self._actions.append(work)
            if self._acting:
                return
            self._acting = True
        threading.Thread(target=self._run_actions, name="toolkit-widget", daemon=True).start()

    def start_feed(self, work: Work) -> None:
        """Run something long, such as following events, beside all else."""
        with self._changed:
            if self.closed.is_set():
                return
            self._feeds += 1
        threading.Thread(
            target=self._run_feed, args=(work,), name="toolkit-feed", daemon=True
        ).start()

    def start_watch(self, work: Work) -> None:
        """Run something that goes on until the widget is closed; nothing waits for its end."""
        if not self.closed.is_set():
            threading.Thread(
                target=self._run_reporting, args=(work,), name="toolkit-feed", daemon=True
            ).start()

    def expect(self, is_expecting: bool) -> None:
        """Say whether a watch has yet to see something happen, which `settle` waits for."""
        with self._changed:
            self._is_expecting = is_expecting
            self._changed.notify_all()

    def settle(self, timeout_s: float = 10.0) -> bool:
        """Wait until nothing is under way or expected, and tell if that came in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._acting or self._feeds or self._is_expecting), timeout=timeout_s
            )

    def close(self) -> None:
        """Start nothing any more, and have feeds end at their next check."""
        with self._changed:
            self.closed.set()
            self._actions.clear()

    def _run_actions(self) -> None:
        while True:
            with self._changed:
                if not self._actions:
                    self._acting = False
                    self._changed.notify_all()
                    return
                work = self._actions.popleft()
            self._run_reporting(work)

    def _run_feed(self, work: Work) -> None:
        self._run_reporting(work)
        with self._changed:
            self._feeds -= 1
            self._changed.notify_all()

    def _run_reporting(self, work: Work) -> None:
        try:
            work()
        except ToolkitError as error:
            if not self.closed.is_set():
                self._tell(str(error))
        except Exception as error:  # nothing else would report the end of a thread
            if not self.closed.is_set():
                self._tell(f"That did not work ({type(error).__name__}).")


class Followable(Protocol):
    """Work that has events and knows when it is over."""

    @property
    def done(self) -> bool:
        """True if it was over when last read."""

    def events(self, after: int = 0, wait_s: int = 0) -> list[Event]:
        """Return the events above a number, held for so long while there is none."""

    def refresh(self) -> object:
        """Read it again."""


def follow_events(
    work: Followable, closed: threading.Event, after: int = 0
) -> Iterator[Event | None]:
    """Yield the events of work until it is over; none after each reading of its record.

    Requests are repeated where the service is away for a moment.
    """
    failures = 0
    while not closed.is_set():
        try:
            found = work.events(after, 0 if work.done else POLL_S)
            for event in found:
                after = event.n
                yield event
            if not found or any(event.terminal or _may_pause(event) for event in found):
                work.refresh()
                yield None
                if work.done and not work.events(after):
                    return
            failures = 0
        except ServiceError:
            failures += 1
            if failures == MAX_FAILURES:
                raise
            closed.wait(failures)


def _may_pause(event: Event) -> bool:
    """Tell whether its resource may wait for a person from here on."""
    return event.type.endswith(".blocked")
