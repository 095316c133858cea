"""A server shared by the tests of a file, the key of an account there, and a configuration."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Server
from toolkit import Client
from toolkit.settings import Settings

EMAIL = "ada@example.org"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A sandbox server for all tests of a file."""
    server = Server(Settings(data_dir=tmp_path_factory.mktemp("service"), sandbox=True))
    yield server
    server.close()


@pytest.fixture(scope="module")
def key(service: Server) -> str:
    """The first API key of an account."""
    with Client(service.url, "") as client:
        return client.account.create(EMAIL).api_key


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user's profiles; the current directory is an empty folder."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("TOOLKIT_CONFIG_DIR", str(tmp_path / "config"))
    return tmp_path / "config" / "profiles"
