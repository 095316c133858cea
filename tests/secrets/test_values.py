"""Values that a pointer leads to: what cannot be a key is not sent to a vendor."""

import base64
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.support.timing import wait_until
from toolkit import Client
from toolkit.settings import Settings

NO_KEYS = {
    "PATH": os.environ["PATH"],
    "a path of one folder": "/usr/bin",
    "a list of folders that are not there": "/opt/none/bin:/opt/none/sbin:/opt/none/local/bin/x",
    "HOME": str(Path.home()),
    "a path in it": "~/.ssh/id_ed25519",
    "an address with a password": "postgresql://ada:pass@db.example/books",
    "a proxy": "http://ada:pass@proxy.example:3128",
    "LANG": "en_US.UTF-8",
    "LC_ALL": "C.UTF-8",
    "words": "two words",
    "a private key": "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw==\n-----END PRIVATE KEY-----",
    "a letter outside ASCII": "sk-caf\u00e9",
}
CHANCE = Random(18)
KEYS = [
    "none",
    "EMPTY",
    "sk-proj-abc_DEF-123",
    "sk-ant-api03-x_y-z",
    "AIzaSyA-1_2",
    "key-id:key-secret",
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJNaW5pIn0.c2ln",
    "my$own!key",
    *(base64.b64encode(CHANCE.randbytes(48)).decode() for _ in range(20)),
    "/" + base64.b64encode(CHANCE.randbytes(48)).decode(),
]


class Listener:
    """A vendor that only listens.

    Attributes:
        received: what it was sent on each connection.
    """

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return
            with caller:
                self.received.append(caller.recv(65_536))
                caller.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")

    def close(self) -> None:
        """Stop listening."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    """The vendor."""
    made = Listener()
    yield made
    made.close()


@pytest.fixture(scope="module")
def client(listener: Listener, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of an engine that reaches the vendor, and does not test a new connection."""
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("values"),
        vendors={"openai": {"base_urls": {"api": listener.url}}},
        connection_test_s=0,
        retries=0,
        max_cooldown_wait_s=0,
    )
    with Client.local(settings=settings) as client:
        client.connections.create("openai", "environment", "SOME_VARIABLE")
        yield client


@pytest.mark.parametrize("name", NO_KEYS)
def test_what_cannot_be_a_key_is_not_sent(
    client: Client, listener: Listener, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Given a variable that holds no key, then neither a test nor a run sends its value."""
    monkeypatch.setenv("SOME_VARIABLE", NO_KEYS[name])
    listener.received.clear()
    tested = client.connections.test(client.connections.list()[0].id).record
    assert tested.error.code == "SECRET_UNRESOLVED"
    assert "was not sent" in tested.error.message
    assert NO_KEYS[name] not in tested.error.message
    run = client.runs.create("llm.generate", {"objective": "Tea"}, provider="openai")
    assert run.wait(check=False, progress=False).record.error.code == "SECRET_UNRESOLVED"
    assert listener.received == []


def test_credentials_of_another_vendor_are_not_sent(
    client: Client, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given JSON, as AWS takes it, then a vendor that takes keys alone is not sent it."""
    monkeypatch.setenv("SOME_VARIABLE", '{"access_key_id": "AKID", "secret_access_key": "x"}')
    listener.received.clear()
    tested = client.connections.test(client.connections.list()[0].id).record
    assert tested.error.code == "SECRET_UNRESOLVED"
    assert listener.received == []


@pytest.mark.parametrize("key", KEYS)
def test_what_can_be_a_key_is_sent(
    client: Client, listener: Listener, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Given a key of any vendor, or of a server of one's own, then a test sends it."""
    monkeypatch.setenv("SOME_VARIABLE", key)
    listener.received.clear()
    client.connections.test(client.connections.list()[0].id)
    wait_until(lambda: listener.received)
    assert f"Bearer {key}\r\n".encode() in listener.received[0]
