"""The base of every widget: a column of controls, a line of messages, and an orderly end."""

from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets
from IPython.display import HTML

from toolkit.display.records.html import IGNORED_BY_MATHJAX
from toolkit.notebook.background import Background, Work
from toolkit.notebook.widget_html import render_literally

STATIC = Path(__file__).parent / "static"


@cache
def load_style() -> str:
    """Return the style sheet of all panels, which uses the theme's colours."""
    return f"<style>{(STATIC / 'panel.css').read_text(encoding='utf-8')}</style>"


class Panel(ipywidgets.VBox):
    """A column of controls.

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
        """Return the display for marimo, which draws anywidgets but not ipywidgets."""
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
        """Close the button and drop its handler, which may hold the parent widget."""
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
