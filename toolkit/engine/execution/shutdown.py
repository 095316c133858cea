"""The work that a shutdown leaves to be resumed: all that has not begun by then."""

from toolkit.engine.context import EngineContext


class ShutdownInterrupt(Exception):  # noqa: N818 - not an error: the work goes on later
    """Raised when the engine shuts down and the rest of the work item is left to be resumed."""


class ShutdownWatch:
    """A check that work which waited for its turn does not begin once the engine shuts down.

    A vendor call that begins just before the end may be cut off, and is then paid twice. The next
    process begins such work instead. Work that was requested during the shutdown may begin.
    """

    def __init__(self, core: EngineContext) -> None:
        self._core = core
        self._was_draining = core.is_draining

    def check(self) -> None:
        """Return if work that waited may begin, otherwise raise.

        Raises:
            ShutdownInterrupt: the engine began to shut down meanwhile.
        """
        if self._core.is_draining and not self._was_draining:
            raise ShutdownInterrupt

    def check_call(self, *, has_queued: bool, has_called: bool) -> None:
        """Return if a vendor call may begin now that its turn has come, otherwise raise.

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
