"""Interrupts of a wait, told in one line."""


class WaitInterruptedError(KeyboardInterrupt):
    """An interrupt of a wait: what was waited for goes on."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows instead of a traceback."""
        return [str(self)]
