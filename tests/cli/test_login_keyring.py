"""Keys of profiles in the system's keyring, by the package `keyring`."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.conftest import EMAIL
from tests.conftest import Server
from tests.support.commands import run_toolkit
from toolkit import Client, RequestError

keyring = pytest.importorskip("keyring")
backend = pytest.importorskip("keyring.backend")


class Memory(backend.KeyringBackend):  # type: ignore[misc, name-defined]
    """A keyring in the memory of this process."""

    priority = -1  # `keyring` must not choose this class by itself

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def _check(self) -> None:
        if self.is_locked:
            raise RuntimeError("locked")  # an error of a backend's library, not of `keyring`

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
    keyring_in_use = Memory()
    keyring_in_use.priority = 5
    keyring.set_keyring(keyring_in_use)
    yield keyring_in_use
    keyring.set_keyring(before)


@pytest.fixture
def login(memory: Memory, config: Path, service: Server, key: str) -> Callable[..., Result]:
    """Log in at the server."""
    return lambda *options: run_toolkit("login", service.url, *options, input=key)


def test_stores_the_key_only_in_the_keyring(
    memory: Memory, config: Path, login: Callable[..., Result], key: str
) -> None:
    """Given a keyring that works, then only the keyring holds the key, until the logout."""
    assert "the system's keyring" in login().stdout
    assert list(memory.entries.values()) == [key]
    assert key not in (config / "default.json").read_text(encoding="utf-8")
    with Client() as client:
        assert client.account.get().email == EMAIL
    assert json.loads(run_toolkit("profiles", "--json").stdout)[0]["key_in"] == "keyring"
    assert run_toolkit("logout").exit_code == 0
    assert memory.entries == {}


def test_changed_profile_finds_no_key_for_another_address(
    config: Path, service: Server, login: Callable[..., Result], key: str
) -> None:
    """Given a profile whose address was changed, then the keyring has no key for it."""
    login()
    path = config / "default.json"
    text = path.read_text(encoding="utf-8").replace(service.url, "https://evil.test")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RequestError, match="has no key") as refused:
        Client()
    assert key not in str(refused.value)


@pytest.mark.parametrize("trouble", ["locked", "weak"])
def test_unusable_keyring_leaves_the_key_in_a_file(
    memory: Memory, config: Path, login: Callable[..., Result], trouble: str
) -> None:
    """Given a keyring that is locked or unencrypted, then the key is in a file of the owner."""
    if trouble == "locked":
        memory.is_locked = True
    else:
        memory.priority = 0.5
    refused = login("--key-store", "keyring")
    assert "does not work here" in str(refused.exception)
    assert not config.exists()
    assert login().exit_code == 0
    assert json.loads(run_toolkit("profiles", "--json").stdout)[0]["key_in"] == "file"


@pytest.mark.parametrize("way_out", ["time", "TOOLKIT_NO_KEYRING"])
def test_keyring_prompt_blocks_no_command(
    memory: Memory,
    login: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    way_out: str,
) -> None:
    """Given a keyring prompt without an answer, then one line names the next step."""
    login()
    answered = threading.Event()
    monkeypatch.setattr(memory, "_check", answered.wait)
    if way_out == "time":
        for name in ("NOTICE_S", "MAX_WAIT_S"):
            monkeypatch.setattr(f"toolkit.profiles.keyring_store.{name}", 0.01)
    else:
        monkeypatch.setenv(way_out, "1")
    try:
        message = str(run_toolkit("runs").exception)
        assert ("no answer in 0.01 s" if way_out == "time" else f"{way_out} is set") in message
        assert "--key-store file" in message
        assert len(message.splitlines()) == 1
        assert "default.json" in login().stdout
    finally:
        answered.set()


def test_keyring_locked_after_the_login_names_the_next_step(
    memory: Memory, service: Server, login: Callable[..., Result]
) -> None:
    """Given a keyring that is locked after the login, then one line names the next step."""
    login()
    memory.is_locked = True
    message = str(run_toolkit("runs").exception)
    assert "unlock the keyring" in message
    assert f"toolkit login {service.url} --profile default --key-store file" in message
    assert "still there" in run_toolkit("logout").stderr
    memory.is_locked = False
    login()
    assert "default.json" in login("--key-store", "file").stdout
    assert memory.entries == {}
