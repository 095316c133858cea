"""A clock that only moves when it is told to, for what would else wait for time to pass."""

from types import SimpleNamespace

import pytest


class LeaseClock:
    """A monotonic clock that leases go by."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        told = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr("toolkit.store.leases.clock.time", told)
