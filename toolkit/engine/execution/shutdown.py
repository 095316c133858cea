"""The work that a shutdown leaves to be resumed: all that has not begun by then."""

from toolkit.engine.context import EngineContext


class ShutdownInterrupt(Exception):  # noqa: N818 - not an error: the work goes on later
    """Raised when the engine shuts down and the rest of the work item is left to be resumed."""


class ShutdownWatch:
    """Watches whether the engine begins to shut down while something waits for its turn.

    Work that begins in the little time that is left may be cut off, and is paid for twice. The
    process that takes it up loses nothing by beginning it. Work requested since then may go on.
    """

    def __init__(self, core: EngineContext) -> None:
        self._core = core
        self._was_draining = core.is_draining

    def check(self) -> None:
        """Let waiting work begin.

        Raises:
            ShutdownInterrupt: the engine began to shut down meanwhile.
        """
        if self._core.is_draining and not self._was_draining:
            raise ShutdownInterrupt

    def check_call(self, *, has_queued: bool, has_called: bool) -> None:
        """Let a call begin whose turn has come.

        Args:
            has_queued: whether it had to wait for its turn; a call that did not wait goes on.
            has_called: whether its job has made a call, which would be paid again.

        Raises:
            ShutdownInterrupt: the engine shuts down, and the call waited for its turn.
        """
        if has_queued:
            self.check()
            if self._core.is_draining and not has_called:
                raise ShutdownInterrupt
