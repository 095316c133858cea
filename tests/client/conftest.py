"""What tests of the client share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit import Client
from toolkit.client._wire import retries


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client of its own engine, with simulated vendors."""
    with Client.local(tmp_path, sandbox=True) as made:
        yield made


@pytest.fixture
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given that a request is sent again at once."""
    monkeypatch.setattr(retries, "compute_backoff_s", lambda *_: 0.0)
