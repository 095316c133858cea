"""Fixtures of the tests of the engine."""

import pytest
from pydantic import SecretStr

from tests.support.database_pool import BOTH_DATABASES
from toolkit.settings import Settings


@pytest.fixture(autouse=True)
def _no_connection_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not test new connections, so that a vendor's log has only the calls of work."""
    monkeypatch.setenv("TOOLKIT_CONNECTION_TEST_S", "0")


@pytest.fixture(params=BOTH_DATABASES)
def shared(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    """The settings of engines that share a data directory or a PostgreSQL database."""
    if request.param == "sqlite":
        return settings
    url = SecretStr(request.getfixturevalue("postgres_url"))
    return settings.model_copy(update={"database": url})
