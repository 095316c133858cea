"""Fallbacks for widgets where the widget libraries are not installed."""

from html import escape
from typing import Any

HINT = 'install what it needs by `pip install "ipywidgets>=8.1" "anywidget>=0.9"`'


class Plain:
    """The text and the picture of what a widget would have shown, and how to get the widget."""

    name = "widget"

    def __init__(self, *shown: Any, **_: object) -> None:
        self._shown = shown

    def __repr__(self) -> str:
        of = f" of {self._shown[0]!r}" if self._shown else ""
        return f"<no {self.name}{of}: {HINT}>"

    def close(self) -> None:
        """Do nothing, as nothing is open."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        picture = getattr(self._shown[0], "picture", None) if self._shown else None
        told = f"<p>{escape(repr(self))}</p>"
        return {
            "text/plain": repr(self),
            "text/html": f"{picture()}{told}" if callable(picture) else told,
        }


def replacement(name: str) -> type[Plain]:
    """Make a class to use in the place of a widget's.

    >>> replacement("RunTable")()
    <no RunTable: install what it needs by `pip install "ipywidgets>=8.1" "anywidget>=0.9"`>
    """
    return type(name, (Plain,), {"name": name})
