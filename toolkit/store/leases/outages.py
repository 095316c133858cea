"""Outages of the database, during which no engine can renew its leases."""

import logging
import threading
import time
from collections.abc import Callable

from toolkit.contract.errors import ToolkitError

log = logging.getLogger(__name__)


class OutageMonitor:
    """Reports whether leases may have expired only because engines could not renew them.

    While a database is away, or takes no writes, the leases of living engines expire like those of
    dead engines. Living engines renew them within moments of its return. An engine that claimed
    abandoned work right then would take work that others hold, and pay for it again.

    So an expired lease is claimed only by an engine whose own writes have succeeded for a while:
    within that time, a living owner would have renewed it. A full disk still answers reads, so an
    answer alone proves nothing.
    """

    def __init__(self, lease_s: float) -> None:
        # Leases are renewed so often that a shorter outage lets none expire.
        self._longest_gap_s = lease_s / 2
        self._grace_s = lease_s / 2
        self._looked_at: float | None = None
        self._over_at = 0.0
        # When this engine last wrote, and since when none of its writes failed.
        self._wrote_at: float | None = None
        self._writes_since = 0.0

    def begin_grace(self) -> None:
        """Assume that there was an outage until now."""
        self._over_at = time.monotonic() + self._grace_s

    def note_answer(self) -> None:
        """Note that the database answered just now; a long silence before counts as an outage."""
        at = time.monotonic()
        if self._looked_at is not None and at - self._looked_at > self._longest_gap_s:
            self.begin_grace()
        self._looked_at = at

    def note_write(self) -> None:
        """Note that rows were written just now; may be called on any thread."""
        at = time.monotonic()
        if self._wrote_at is None or at - self._wrote_at > self._longest_gap_s:
            self._writes_since = at
        self._wrote_at = at

    def note_failed_write(self) -> None:
        """Note that a write failed just now; may be called on any thread."""
        self._wrote_at = None

    @property
    def is_recent(self) -> bool:
        """Whether engines may not have renewed their leases yet since the last outage."""
        return time.monotonic() < self._over_at or not self._is_writing_steadily

    @property
    def _is_writing_steadily(self) -> bool:
        """Whether this engine's writes have succeeded for long enough, and up to now."""
        at = time.monotonic()
        if self._wrote_at is None or at - self._wrote_at > self._longest_gap_s:
            return False
        return at - self._writes_since >= self._grace_s


class Heartbeat:
    """A thread that renews a process's leases even if its event loop is blocked.

    Args:
        renew: renews them; called on the thread.
        is_needed: checks whether there are leases to renew; called on the thread.
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
