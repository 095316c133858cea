"""Fixtures of the tests of the engine itself."""

import pytest
from pydantic import SecretStr

from tests.support.database_pool import BOTH_DATABASES
from toolkit.settings import Settings


@pytest.fixture(autouse=True)
def _calls_are_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given that no connection is tested when it is made, a vendor's log is of the work alone."""
    monkeypatch.setenv("TOOLKIT_CONNECTION_TEST_S", "0")


@pytest.fixture(params=BOTH_DATABASES)
def shared(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    """The settings of engines that share a data directory, or a database of PostgreSQL."""
    if request.param == "sqlite":
        return settings
    url = SecretStr(request.getfixturevalue("postgres_url"))
    return settings.model_copy(update={"database": url})
