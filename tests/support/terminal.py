"""A terminal for what is shown there."""

import io
import sys

import pytest


class Terminal(io.StringIO):
    """A terminal's screen."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Have progress go to a terminal, and return it."""
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", screen)
    return screen
