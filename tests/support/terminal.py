"""A terminal for the display of progress."""

import io
import sys

import pytest


class Terminal(io.StringIO):
    """A terminal's screen."""

    def isatty(self) -> bool:
        """Return True, as a terminal does."""
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Redirect progress to a terminal, and return it."""
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", screen)
    return screen
