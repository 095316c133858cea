"""Fallbacks for widgets when the widget libraries are not installed."""

from html import escape
from typing import Any

INSTALL_HINT = 'install the widget libraries: `pip install "ipywidgets>=8.1" "anywidget>=0.9"`'


class PlainFallback:
    """The text and the picture that replace a widget, and the command that installs it."""

    name = "widget"

    def __init__(self, *arguments: Any, **_: object) -> None:
        self._arguments = arguments

    def __repr__(self) -> str:
        suffix = f" of {self._arguments[0]!r}" if self._arguments else ""
        return f"<no {self.name}{suffix}: {INSTALL_HINT}>"

    def close(self) -> None:
        """Do nothing, because nothing is open."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        hint = f"<p>{escape(repr(self))}</p>"
        return {"text/plain": repr(self), "text/html": f"{self._render_twin()}{hint}"}

    def _render_twin(self) -> str:
        """Render the object that the widget would show, as the object shows itself."""
        subject = self._arguments[0] if self._arguments else None
        picture = getattr(subject, "picture", None)
        if callable(picture):
            return str(picture())
        show = getattr(subject, "_repr_mimebundle_", None)
        return str(show().get("text/html", "")) if callable(show) else ""


def make_fallback(name: str) -> type[PlainFallback]:
    """Make a class to use in place of a widget's class.

    >>> make_fallback("RunTable")()
    <no RunTable: install the widget libraries: `pip install "ipywidgets>=8.1" "anywidget>=0.9"`>
    """
    return type(name, (PlainFallback,), {"name": name})
