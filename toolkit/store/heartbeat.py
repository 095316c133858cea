"""The thread that keeps leases: a process that is busy is not one that has gone."""

import logging
import threading
from collections.abc import Callable

from toolkit.contract.errors import ToolkitError

log = logging.getLogger(__name__)


class Heartbeat:
    """Renews a process's leases from a thread of its own, whatever holds its event loop.

    Args:
        renew: renews them; called on the thread.
        is_needed: tells if there are leases to be renewed; called on the thread.
        interval_s: between two renewals, in seconds.
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
        """Begin to renew."""
        self._thread.start()

    def close(self) -> None:
        """Renew no more; returns once a renewal under way is done."""
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
                # Whatever it was, without this thread others would take the work over.
                log.exception("the leases could not be renewed")
