"""What tests of the store share."""

import pytest

from tests.support.database_pool import BOTH_DATABASES


@pytest.fixture(params=BOTH_DATABASES)
def url(request: pytest.FixtureRequest) -> str | None:
    """The address of an empty database; none where the data directory has one."""
    if request.param == "sqlite":
        return None
    found: str = request.getfixturevalue("postgres_url")
    return found
