"""A server for the commands of a file, the key of an account there, and a user's configuration."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Server
from toolkit import Client
from toolkit.settings import Settings

EMAIL = "ada@example.org"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests of a file."""
    server = Server(Settings(data_dir=tmp_path_factory.mktemp("service"), sandbox=True))
    yield server
    server.close()


@pytest.fixture(scope="module")
def key(service: Server) -> str:
    """The first key of an account."""
    with Client(service.url, "") as nobody:
        return nobody.account.create(EMAIL).api_key


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's configuration, and a folder of their work."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("TOOLKIT_CONFIG_DIR", str(tmp_path / "config"))
    return tmp_path / "config" / "profiles"
