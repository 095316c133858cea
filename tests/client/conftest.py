"""Fixtures of the client's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit import Client
from toolkit.client._wire import retries


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client of its own engine, with simulated vendors."""
    with Client.local(tmp_path, sandbox=True) as client:
        yield client


@pytest.fixture
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry requests at once."""
    monkeypatch.setattr(retries, "compute_backoff_s", lambda *_: 0.0)
