"""Values of secret variables: a value that cannot be a key is not sent to a vendor."""

import base64
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.support.loopback_server import JsonHandler, LoopbackServer
from toolkit import Client
from toolkit.settings import Settings

NO_KEYS = {
    "PATH": os.environ["PATH"],
    "a path of one folder": "/usr/bin",
    "a list of missing folders": "/opt/none/bin:/opt/none/sbin:/opt/none/local/bin/x",
    "HOME": str(Path.home()),
    "a path in it": "~/.ssh/id_ed25519",
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
    "key-id:key-secret",
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJNaW5pIn0.c2ln",
    "my$own!key",
    *(base64.b64encode(CHANCE.randbytes(48)).decode() for _ in range(8)),
    "/" + base64.b64encode(CHANCE.randbytes(48)).decode(),
]


RECEIVED: list[str] = []


class RecordingVendor(JsonHandler):
    """A vendor that records the `Authorization` header of each request."""

    def answer_get(self) -> None:
        """Record a request."""
        RECEIVED.append(self.headers["authorization"])
        self.send_json(404, {})

    answer_post = answer_get


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of an engine that calls the vendor, and does not test a new connection."""
    with closing(LoopbackServer(RecordingVendor)) as vendor:
        settings = Settings(
            data_dir=tmp_path_factory.mktemp("values"),
            vendors={"openai": {"base_urls": {"api": vendor.url}}},
            connection_test_s=0,
            retries=0,
            max_cooldown_wait_s=0,
        )
        with Client.local(settings=settings) as client:
            client.connections.create("openai", "environment", "SOME_VARIABLE")
            yield client


@pytest.mark.parametrize("name", NO_KEYS)
def test_does_not_send_a_value_that_cannot_be_a_key(
    client: Client, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Given a variable that holds no key, then neither a test nor a run sends its value."""
    monkeypatch.setenv("SOME_VARIABLE", NO_KEYS[name])
    RECEIVED.clear()
    tested = client.connections.test(client.connections.list()[0].id).record
    assert tested.error.code == "SECRET_UNRESOLVED"
    assert "was not sent" in tested.error.message
    assert NO_KEYS[name] not in tested.error.message
    run = client.runs.create("llm.generate", {"objective": "Tea"}, provider="openai")
    assert run.wait(check=False, progress=False).record.error.code == "SECRET_UNRESOLVED"
    assert RECEIVED == []


def test_does_not_send_aws_credentials_to_other_vendors(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given AWS credentials as JSON, then a vendor that takes only keys does not receive them."""
    monkeypatch.setenv("SOME_VARIABLE", '{"access_key_id": "AKID", "secret_access_key": "x"}')
    RECEIVED.clear()
    tested = client.connections.test(client.connections.list()[0].id).record
    assert tested.error.code == "SECRET_UNRESOLVED"
    assert RECEIVED == []


@pytest.mark.parametrize("key", KEYS)
def test_sends_a_value_that_can_be_a_key(
    client: Client, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Given a key of a vendor or of a self-hosted server, then a connection test sends it."""
    monkeypatch.setenv("SOME_VARIABLE", key)
    RECEIVED.clear()
    client.connections.test(client.connections.list()[0].id)
    assert RECEIVED[0] == f"Bearer {key}"
