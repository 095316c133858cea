"""Outages of the database, during which no engine can renew its leases."""

import time


class OutageMonitor:
    """Reports whether leases may have expired only because engines could not renew them.

    While a database is away, or takes no writes, the leases of living engines expire like those of
    dead engines. Living engines renew them within moments of its return. An engine that claimed
    abandoned work right then would take work that others hold, and pay for it again.

    So an expired lease is claimed only by an engine whose own writes have succeeded for a while:
    within that time, a living owner would have renewed it. A full disk still answers reads, so an
    answer alone proves nothing.

    Args:
        lease_s: duration of a lease without renewal, in seconds.
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
        """Suppose that there was an outage until now."""
        self._over_at = time.monotonic() + self._grace_s

    def note_answer(self) -> None:
        """Note that the database has answered just now."""
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
