"""The base of every widget: a column of controls, a line of messages, and an orderly end."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets
from IPython.display import HTML

from toolkit.client import Run, Task
from toolkit.contract.errors import ToolkitError
from toolkit.contract.events import Event
from toolkit.display.records.html import IGNORED_BY_MATHJAX
from toolkit.notebook.widget_html import render_literally

POLL_S = 2  # seconds that the thread of a closed widget may still run at most
Work = Callable[[], None]
STATIC = Path(__file__).parent / "static"


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


@cache
def load_style() -> str:
    """Return the style sheet of all panels, which uses the theme's colours."""
    return f"<style>{(STATIC / 'panel.css').read_text(encoding='utf-8')}</style>"


class Panel(ipywidgets.VBox):
    """The base of widgets: a column of controls, with a line for messages.

    Attributes:
        message: line for results and errors; screen readers speak it.
    """

    def __init__(self, *children: ipywidgets.Widget) -> None:
        super().__init__()
        self.message = ipywidgets.HTML()
        self._background = Background(self.show_message)
        self.children = (ipywidgets.HTML(load_style()), *children, self.message)
        self.add_class("toolkit-panel")

    def show_message(self, sentence: str, *, fault: bool = True) -> None:
        """Show a sentence as a fault or as news; an empty sentence removes the last message."""
        kind = "alert" if fault else "status"
        element = f'<div role="{kind}" class="tk-{kind}">{escape(sentence)}</div>'
        self.message.value = render_literally(element)

    def make_action(self, work: Work) -> Work:
        """Make a handler that runs some work in the background, after earlier work."""
        return lambda: self._background.start_action(work)

    def settle(self, timeout_s: float = 10.0) -> bool:
        """Wait until no work runs in the background; return False if that takes longer."""
        return self._background.settle(timeout_s)

    def snapshot(self) -> str:
        """Return the present content as HTML, for a saved notebook whose kernel is gone."""
        return f"<p>{escape(repr(self))}</p>"

    def close(self) -> None:
        """End the threads and remove the panel from the page; the displayed work goes on."""
        if not hasattr(self, "_background") or self._background.closed.is_set():
            return
        self._background.close()
        self.unobserve_all()
        close_all(self)
        super().close()
        self.__dict__.pop("_repr_mimebundle_", None)  # ipywidgets hides it; the snapshot stays

    def _display_(self) -> object:
        """Return static HTML for marimo, which draws anywidgets but not ipywidgets."""
        return HTML(self._render_twin())

    def _render_twin(self) -> str:
        panel = f'<div class="toolkit-panel {IGNORED_BY_MATHJAX}">{self.snapshot()}</div>'
        return f"{load_style()}{panel}"

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        bundle: dict[str, object] = {"text/plain": repr(self), "text/html": self._render_twin()}
        if self._view_name is not None and self.comm is not None:
            bundle["application/vnd.jupyter.widget-view+json"] = {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self.model_id,
            }
        return bundle


def close_all(box: ipywidgets.Box) -> None:
    """Close the controls of a box and remove their callbacks; inner panels close their own."""
    for child in box.children:
        if isinstance(child, ipywidgets.Box) and not isinstance(child, Panel):
            close_all(child)
        child.unobserve_all()
        child.close()


class ActionButton(ipywidgets.Button):
    """A button with one action, which does nothing after it is closed."""

    def __init__(self, handler: Callable[[], None], **traits: Any) -> None:
        super().__init__(**traits)
        self._answer = lambda _: handler()
        self.on_click(self._answer)

    def close(self) -> None:
        """Close the button and drop its handler, which may keep the parent widget in memory."""
        self.on_click(self._answer, remove=True)
        super().close()


def make_button(label: str, does: str, handler: Callable[[], None], kind: str = "") -> Any:
    """Make a button with a full description as tooltip; `kind` is an ipywidgets button style."""
    return ActionButton(
        handler,
        description=label,
        tooltip=does,
        button_style=kind,
        layout={"width": "auto", "min_width": "8em"},
    )


def make_labelled(kind: type[Any], label: str, **traits: Any) -> Any:
    """Make a control with its label in front, aligned with other controls."""
    options = {"style": {"description_width": "9.5em"}, "layout": {"width": "min(100%, 42em)"}}
    return kind(description=label, **{**options, **traits})


def make_row(*children: ipywidgets.Widget) -> ipywidgets.HBox:
    """Lay out controls in a row that wraps if there is not enough room."""
    return ipywidgets.HBox(list(children), layout={"flex_flow": "row wrap"})
