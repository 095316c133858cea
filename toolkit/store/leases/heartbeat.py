"""The thread that renews leases, so that a busy process does not look dead."""

import logging
import threading
from collections.abc import Callable

from toolkit.contract.errors import ToolkitError

log = logging.getLogger(__name__)


class Heartbeat:
    """A thread that renews a process's leases even if its event loop is blocked.

    Args:
        renew: renews them; called on the thread.
        is_needed: checks whether there are leases to renew; called on the thread.
        interval_s: interval between two renewals, in seconds.
    """

    def __init__(
        self, renew: Callable[[], None], is_needed: Callable[[], bool], interval_s: float
    ) -> None:
        self._renew = renew
        self._is_needed = is_needed
        self._interval_s = interval_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="toolkit-leases", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread; returns once a renewal in progress is done."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            try:
                if self._is_needed():
                    self._renew()
            except ToolkitError as error:
                log.warning("the leases could not be renewed: %s", error)
            except Exception:
                # The thread must continue after any error, or others would take the work over.
                log.exception("the leases could not be renewed")
