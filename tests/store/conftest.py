"""Fixtures of the store's tests."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from s3fs import S3FileSystem

from tests.support.database_pool import BOTH_DATABASES, execute_sql
from toolkit import Client
from toolkit.settings import Settings
from toolkit.store import Store
from toolkit.store.maintenance import prune

Execute = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(params=BOTH_DATABASES)
def url(request: pytest.FixtureRequest) -> str | None:
    """The address of an empty database; None for the database of the data directory."""
    if request.param == "sqlite":
        return None
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def execute(tmp_path: Path, url: str | None) -> Execute:
    """Runs a statement in the database."""
    return partial(execute_sql, tmp_path, url)


@pytest.fixture
async def stores(tmp_path: Path, url: str | None) -> AsyncIterator[tuple[Store, Store]]:
    """Two stores on one database."""
    first, second = [await Store.open(tmp_path, database=url) for _ in range(2)]
    yield first, second
    await first.close()
    await second.close()


@pytest.fixture
def files(s3_server: str) -> S3FileSystem:
    """The file system of object storage."""
    return S3FileSystem(endpoint_url=s3_server, skip_instance_cache=True, use_listings_cache=False)


@pytest.fixture
def without_min_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets files be deleted that were just written."""
    monkeypatch.setattr(prune, "MIN_UNREFERENCED_AGE_S", -5.0)


@pytest.fixture
def database(
    settings: Settings, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    """An engine with a PostgreSQL database that the environment names."""
    monkeypatch.setenv("TOOLKIT_DATABASE", postgres_url)
    with Client.local(settings.data_dir, sandbox=True) as client:
        yield client
