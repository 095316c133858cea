"""Resolvers of secrets, and values that cannot be secrets."""

import base64
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.support.loopback_server import JsonHandler, LoopbackServer
from toolkit import Client
from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.secrets import ChainResolver, EnvironmentResolver, MappingResolver
from toolkit.settings import Settings

VALUE = "sk-test-5d41402abc4b2a76"

ENVIRON = {
    "MINIMAX_API_KEY": VALUE,
    "OTHER": "hidden",
    "BLANK": " \n",
    "PADDED": f"  {VALUE}\n",
    "TOOLKIT_DATA_DIR": "somewhere",
    "toolkit_data_dir": "somewhere",
}

ENVIRONMENT = "environment"


@pytest.mark.parametrize("name", ["MINIMAX_API_KEY", "PADDED"])
@pytest.mark.parametrize("is_restricted", [False, True])
async def test_reads_a_variable(name: str, is_restricted: bool) -> None:
    """Given a variable that may be read, then its value is returned without surrounding blanks."""
    resolver = EnvironmentResolver({name} if is_restricted else None, ENVIRON)
    assert await resolver.resolve(ENVIRONMENT, name) == VALUE


@pytest.mark.parametrize(
    ("connection_type", "name"),
    [
        (ENVIRONMENT, "OTHER"),
        (ENVIRONMENT, "NOT_THERE"),
        (ENVIRONMENT, "BLANK"),
        (ENVIRONMENT, "TOOLKIT_DATA_DIR"),
        (ENVIRONMENT, "toolkit_data_dir"),
        (ENVIRONMENT, ""),
        ("aws_secrets_manager", "MINIMAX_API_KEY"),
    ],
)
async def test_rejections_reveal_no_reason(connection_type: str, name: str) -> None:
    """Given a name that is unknown, blank, reserved or not allowed, then the error is the same."""
    allowed = frozenset(ENVIRON) - {"OTHER"}
    with pytest.raises(WorkError) as caught:
        await EnvironmentResolver(allowed, ENVIRON).resolve(connection_type, name)
    with pytest.raises(WorkError) as unknown:
        await EnvironmentResolver(None, {}).resolve(ENVIRONMENT, "WHATEVER")
    assert caught.value.code is ErrorCode.SECRET_UNRESOLVED
    assert str(caught.value) == str(unknown.value)
    assert caught.value.__cause__ is None


async def test_an_optional_variable_may_be_unset_if_it_may_be_read() -> None:
    """Given a local server's variable without a value, then only a caller with it gets no error."""
    resolver = EnvironmentResolver({"BLANK"}, ENVIRON, {"BLANK", "OLLAMA_API_KEY"})
    assert await resolver.resolve(ENVIRONMENT, "BLANK") == ""
    assert await resolver.resolve(ENVIRONMENT, "OLLAMA_API_KEY", {"OLLAMA_API_KEY"}) == ""
    with pytest.raises(WorkError):
        await resolver.resolve(ENVIRONMENT, "OLLAMA_API_KEY")


async def test_never_resolves_the_toolkits_own_variables() -> None:
    """Given an engine that allows every name, then its own setting variables stay closed."""
    with pytest.raises(WorkError):
        await EnvironmentResolver(None, ENVIRON).resolve(ENVIRONMENT, "TOOLKIT_DATA_DIR")


async def test_reads_a_rotated_key_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a variable that changes, then each call reads its current value."""
    resolver = EnvironmentResolver(frozenset({"A_KEY"}))
    for value in ("first", "second"):
        monkeypatch.setenv("A_KEY", value)
        assert await resolver.resolve(ENVIRONMENT, "A_KEY") == value


async def test_mapping_resolves_only_its_own_names() -> None:
    """Given a mapping, then it resolves the names it had at first, and no environment variable."""
    values = {"A_KEY": "sandbox"}
    resolver = MappingResolver(values)
    values["B_KEY"] = "later"
    assert await resolver.resolve(ENVIRONMENT, "A_KEY") == "sandbox"
    for name in ("B_KEY", "PATH", "HOME"):
        with pytest.raises(WorkError):
            await resolver.resolve(ENVIRONMENT, name)


async def test_chain_uses_the_first_resolver_with_the_secret() -> None:
    """Given resolvers, then the first with the secret answers; without any, it is unresolved."""
    chain = ChainResolver(MappingResolver({"A": "1"}), MappingResolver({"A": "2", "B": "3"}))
    assert await chain.resolve(ENVIRONMENT, "A") == "1"
    assert await chain.resolve(ENVIRONMENT, "B") == "3"
    for resolver in (chain, ChainResolver()):
        with pytest.raises(WorkError, match="SECRET_UNRESOLVED"):
            await resolver.resolve(ENVIRONMENT, "C")


def test_repr_shows_no_secret() -> None:
    """Given any resolver, then its repr has neither names nor values."""
    resolver = ChainResolver(MappingResolver({"A_KEY": VALUE}), EnvironmentResolver(None, ENVIRON))
    assert repr(resolver) == "ChainResolver(MappingResolver(), EnvironmentResolver())"


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
