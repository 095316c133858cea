"""Keys of profiles in the system's keyring, by the package `keyring` itself."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.cli.conftest import EMAIL
from tests.conftest import Server
from toolkit import Client, RequestError
from toolkit.cli import app

keyring = pytest.importorskip("keyring")
backend = pytest.importorskip("keyring.backend")


class Memory(backend.KeyringBackend):  # type: ignore[misc, name-defined]
    """A keyring that forgets everything with its process."""

    priority = -1  # no keyring of this process, whose backends are all classes that there are

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def _check(self) -> None:
        if self.is_locked:
            raise RuntimeError("locked")  # as a backend's library may, and no error of keyring's

    def get_password(self, service: str, username: str) -> str | None:
        """Read an entry."""
        self._check()
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        """Write an entry."""
        self._check()
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        """Delete an entry."""
        self._check()
        del self.entries[service, username]


@pytest.fixture
def memory() -> Iterator[Memory]:
    """The system's keyring for a test."""
    before = keyring.get_keyring()
    made = Memory()
    made.priority = 5
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def toolkit(*line: str, given: str | None = None) -> Result:
    """Carry a command out."""
    return CliRunner().invoke(app, line, input=given)


def test_a_key_in_the_keyring_is_in_no_file(
    memory: Memory, config: Path, service: Server, key: str
) -> None:
    """Given a keyring that works, then the key is there alone, until it is logged out."""
    done = toolkit("login", service.url, given=key)
    assert "the system's keyring" in done.stdout
    assert list(memory.entries.values()) == [key]
    assert key not in (config / "default.json").read_text(encoding="utf-8")
    with Client() as client:
        assert client.account.get().email == EMAIL
    assert json.loads(toolkit("profiles", "--json").stdout)[0]["key_in"] == "keyring"
    assert toolkit("logout").exit_code == 0
    assert memory.entries == {}


def test_a_changed_file_finds_no_key_for_another_address(
    memory: Memory, config: Path, service: Server, key: str
) -> None:
    """Given a profile whose address was changed, then the keyring has no key for that one."""
    toolkit("login", service.url, given=key)
    kept = config / "default.json"
    kept.write_text(
        kept.read_text(encoding="utf-8").replace(service.url, "https://evil.test"), encoding="utf-8"
    )
    with pytest.raises(RequestError, match="has no key") as refused:
        Client()
    assert key not in str(refused.value)


@pytest.mark.parametrize("trouble", ["locked", "weak"])
def test_a_keyring_that_does_not_work_is_passed_over(
    memory: Memory, config: Path, service: Server, key: str, trouble: str
) -> None:
    """Given a keyring that is locked, or keeps in the clear, then a file of the owner's has it."""
    if trouble == "locked":
        memory.is_locked = True
    else:
        memory.priority = 0.5
    refused = toolkit("login", service.url, "--key-store", "keyring", given=key)
    assert "does not work here" in str(refused.exception)
    assert not config.exists()
    assert toolkit("login", service.url, given=key).exit_code == 0
    assert json.loads(toolkit("profiles", "--json").stdout)[0]["key_in"] == "file"


@pytest.mark.parametrize("way_out", ["time", "TOOLKIT_NO_KEYRING"])
def test_a_prompt_of_the_keyring_blocks_no_command(
    memory: Memory,
    config: Path,
    service: Server,
    key: str,
    monkeypatch: pytest.MonkeyPatch,
    way_out: str,
) -> None:
    """Given a keyring that asks and is not answered, then one line says so, and how to go on."""
    toolkit("login", service.url, given=key)
    answered = threading.Event()
    monkeypatch.setattr(memory, "_check", answered.wait)
    if way_out == "time":
        for name in ("NOTICE_S", "MAX_WAIT_S"):
            monkeypatch.setattr(f"toolkit.profiles.keyring_store.{name}", 0.01)
    else:
        monkeypatch.setenv(way_out, "1")
    try:
        said = str(toolkit("runs").exception)
        assert ("no answer in 0.01 s" if way_out == "time" else f"{way_out} is set") in said
        assert "--key-store file" in said
        assert len(said.splitlines()) == 1
        again = toolkit("login", service.url, given=key)
        assert "default.json" in again.stdout
    finally:
        answered.set()


def test_a_keyring_that_is_locked_later_says_what_to_do(
    memory: Memory, config: Path, service: Server, key: str
) -> None:
    """Given a keyring that is locked after the login, then one line says how to go on."""
    toolkit("login", service.url, given=key)
    memory.is_locked = True
    said: Any = toolkit("runs").exception
    assert "unlock the keyring" in str(said)
    assert f"toolkit login {service.url} --profile default --key-store file" in str(said)
    left = toolkit("logout")
    assert "still there" in left.stderr
    memory.is_locked = False
    toolkit("login", service.url, given=key)
    moved = toolkit("login", service.url, "--key-store", "file", given=key)
    assert "default.json" in moved.stdout
    assert memory.entries == {}
