"""Background threads of widgets: handlers never block, and traits carry the results."""

import threading
from collections import deque
from collections.abc import Callable, Iterator

from toolkit.client import Run, Task
from toolkit.contract.errors import ToolkitError
from toolkit.contract.events import Event

POLL_S = 2  # seconds that the thread of a closed widget may still run at most
Work = Callable[[], None]


class Background:
    """Run the threads of one widget: actions in sequence, feeds and watches in parallel.

    All threads are daemons, so that they never keep a kernel alive.

    Args:
        tell: function that shows a sentence to a person; called on any thread.
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
        """Run an action after earlier actions; show its error, if any."""
        with self._changed:
            if self.closed.is_set():
                return
            self._actions.append(work)
            if self._acting:
                return
            self._acting = True
        threading.Thread(target=self._run_actions, name="toolkit-widget", daemon=True).start()

    def start_feed(self, work: Work, *, is_awaited: bool = True) -> None:
        """Run a long operation, such as following events, in parallel with everything else.

        Args:
            is_awaited: whether `settle` waits for its end. Pass False for an operation that runs
                until the widget is closed.
        """
        with self._changed:
            if self.closed.is_set():
                return
            self._feeds += is_awaited
        threading.Thread(
            target=self._run_feed, args=(work, is_awaited), name="toolkit-feed", daemon=True
        ).start()

    def expect(self, is_expecting: bool) -> None:
        """Set whether a watch still expects a change that `settle` waits for."""
        with self._changed:
            self._is_expecting = is_expecting
            self._changed.notify_all()

    def settle(self, timeout_s: float = 10.0) -> bool:
        """Wait until nothing runs or is expected; return False if that takes longer."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._acting or self._feeds or self._is_expecting), timeout=timeout_s
            )

    def close(self) -> None:
        """Start no more work, and let feeds end at their next check."""
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

    def _run_feed(self, work: Work, is_awaited: bool) -> None:
        self._run_reporting(work)
        with self._changed:
            self._feeds -= is_awaited
            self._changed.notify_all()

    def _run_reporting(self, work: Work) -> None:
        try:
            work()
        except Exception as error:  # otherwise nothing would report the thread's failure
            if not self.closed.is_set():
                has_message = isinstance(error, ToolkitError)
                self._tell(
                    str(error) if has_message else f"The action failed: {type(error).__name__}."
                )


def follow_events(
    work: Run | Task, closed: threading.Event, after: int = 0
) -> Iterator[Event | None]:
    """Yield the events of work until it ends or pauses, and None after each new record.

    The handle has the new record by then.
    """
    with work.follow(after) as following:
        while not (closed.is_set() or following.is_over):
            for change in following.take(POLL_S):
                if isinstance(change, Event):
                    if change.resource_id == work.id:
                        yield change
                elif isinstance(change, type(work.record)):
                    work.record = change
                    yield None
                    if work.done:
                        return
