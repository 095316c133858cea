"""Fixtures of the tests of the engine itself."""

import pytest


@pytest.fixture(autouse=True)
def _calls_are_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given that no connection is tested when it is made, a vendor's log is of the work alone."""
    monkeypatch.setenv("TOOLKIT_CONNECTION_TEST_S", "0")
