"""Outages of the database, during which no engine can renew its leases."""

import time


class OutageMonitor:
    """Tells whether leases may have ended only because nobody could renew them.

    While a database is away, or stands still, the leases of engines that live end as those of dead
    ones do. Once it is back they are renewed within moments: whoever looked for abandoned work
    right then would take what others are at, and have it paid for twice.

    Args:
        lease_s: how long a lease holds without being renewed, in seconds.
    """

    def __init__(self, lease_s: float) -> None:
        # Leases are renewed so often that a shorter outage ends none.
        self._longest_gap_s = lease_s / 2
        self._grace_s = lease_s / 2
        self._looked_at: float | None = None
        self._over_at = 0.0

    def begin_grace(self) -> None:
        """Suppose that there was an outage until now."""
        self._over_at = time.monotonic() + self._grace_s

    def note_answer(self) -> None:
        """Note that the database has answered just now."""
        at = time.monotonic()
        if self._looked_at is not None and at - self._looked_at > self._longest_gap_s:
            self.begin_grace()
        self._looked_at = at

    @property
    def is_recent(self) -> bool:
        """Whether engines may not have renewed their leases yet since the last outage."""
        return time.monotonic() < self._over_at
