"""What tests of the store share."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.database_pool import BOTH_DATABASES, execute_sql
from toolkit import Client
from toolkit.settings import Settings
from toolkit.store import Store
from toolkit.store.maintenance import prune

Execute = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(params=BOTH_DATABASES)
def url(request: pytest.FixtureRequest) -> str | None:
    """The address of an empty database; none where the data directory has one."""
    if request.param == "sqlite":
        return None
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.fixture
def execute(tmp_path: Path, url: str | None) -> Execute:
    """Run a statement in the database, beside all stores."""
    return partial(execute_sql, tmp_path, url)


@pytest.fixture
async def stores(tmp_path: Path, url: str | None) -> AsyncIterator[tuple[Store, Store]]:
    """Two stores on one database."""
    first, second = [await Store.open(tmp_path, database=url) for _ in range(2)]
    yield first, second
    for each in (first, second):
        await each.close()


@pytest.fixture
def an_hour_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given that everything is old enough to be deleted."""
    monkeypatch.setattr(prune, "MIN_UNREFERENCED_AGE_S", -5.0)


@pytest.fixture
def database(
    settings: Settings, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    """An engine with a database of PostgreSQL that the environment names."""
    monkeypatch.setenv("TOOLKIT_DATABASE", postgres_url)
    with Client.local(settings.data_dir, sandbox=True) as client:
        yield client
