"""AWS Secrets Manager, over a client by hand: boto3 is neither needed nor imported."""

import sys
import threading
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.secrets import SecretsManagerResolver

TYPE = "aws_secrets_manager"
ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:prod/minimax-AbCdEf"


class FakeSecretsManager:
    """A client that knows a few secrets."""

    def __init__(self, answer: Mapping[str, Any] | Exception) -> None:
        self._answer = answer
        self.regions: list[str | None] = []
        self.threads: set[threading.Thread] = set()

    def __call__(self, region: str | None) -> "FakeSecretsManager":
        """Make the client of a region."""
        self.regions.append(region)
        return self

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]:  # noqa: N803
        """Answer as boto3 does."""
        self.threads.add(threading.current_thread())
        if isinstance(self._answer, Exception):
            raise self._answer
        return {"Name": SecretId, **self._answer}


@pytest.mark.parametrize(
    ("answer", "secret"),
    [
        ({"SecretString": "sk-test"}, "sk-test"),
        ({"SecretString": " sk-test\n"}, "sk-test"),
        ({"SecretString": '{"api_key": "sk-test"}'}, "sk-test"),
        ({"SecretString": '{"a": "1", "b": "2"}'}, '{"a": "1", "b": "2"}'),
        ({"SecretString": '{"a": 1}'}, '{"a": 1}'),
        ({"SecretString": '["a"]'}, '["a"]'),
        ({"SecretString": '{"api_key": '}, '{"api_key":'),
        ({"SecretBinary": b"sk-test"}, "sk-test"),
    ],
)
async def test_secret_is_read(answer: Mapping[str, Any], secret: str) -> None:
    """Given plain text, bytes or JSON, the secret comes back; one member of JSON stands for it."""
    assert (
        await SecretsManagerResolver(None, FakeSecretsManager(answer)).resolve(TYPE, "prod/minimax")
        == secret
    )


async def test_region_is_the_arns_and_the_loop_is_free() -> None:
    """Given an ARN, its region is asked; the client waits in a thread of its own."""
    fake = FakeSecretsManager({"SecretString": "sk-test"})
    resolver = SecretsManagerResolver(None, fake)
    await resolver.resolve(TYPE, ARN)
    await resolver.resolve(TYPE, "prod/minimax")
    assert fake.regions == ["eu-central-1", None]
    assert threading.main_thread() not in fake.threads


@pytest.mark.parametrize(
    "answer",
    [
        {"SecretString": ""},
        {"SecretString": " "},
        {"SecretBinary": b"\xff\xfe"},
        {},
        RuntimeError("ResourceNotFoundException: prod/minimax"),
        ConnectionError("no route"),
    ],
)
async def test_every_failure_is_the_same(answer: Mapping[str, Any] | Exception) -> None:
    """Given no secret, or whatever AWS raises, the one answer tells nothing of it."""
    with pytest.raises(WorkError) as caught:
        await SecretsManagerResolver(None, FakeSecretsManager(answer)).resolve(TYPE, "prod/minimax")
    assert caught.value.code is ErrorCode.SECRET_UNRESOLVED
    assert "prod/minimax" not in str(caught.value)
    assert "route" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(("kind", "name"), [("environment", "prod/minimax"), (TYPE, "prod/other")])
async def test_what_is_not_allowed_is_not_asked(kind: str, name: str) -> None:
    """Given another type or a name that is not allowed, AWS is not even asked."""
    fake = FakeSecretsManager({"SecretString": "sk-test"})
    with pytest.raises(WorkError):
        await SecretsManagerResolver({"prod/minimax"}, fake).resolve(kind, name)
    assert fake.regions == []


async def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given no boto3, the error says in one line what to install."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(WorkError, match=r"install `capability-toolkit\[aws\]`") as caught:
        await SecretsManagerResolver(None).resolve(TYPE, "prod/minimax")
    assert caught.value.code is ErrorCode.SECRET_UNRESOLVED


async def test_boto3_is_used_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given boto3, its client of the service and region is what is asked."""
    fake, asked = FakeSecretsManager({"SecretString": "sk-test"}), []
    boto3 = ModuleType("boto3")

    def client(service: str, region_name: str | None) -> FakeSecretsManager:
        asked.append((service, region_name))
        return fake

    monkeypatch.setattr(boto3, "client", client, raising=False)
    monkeypatch.setitem(sys.modules, "boto3", boto3)
    assert await SecretsManagerResolver(None).resolve(TYPE, ARN) == "sk-test"
    assert asked == [("secretsmanager", "eu-central-1")]


async def test_a_secret_is_kept_for_a_while_and_forgotten_on_demand() -> None:
    """Given a secret that was read, then it is kept a minute, unless a vendor refuses it."""
    values, asked, now = ["first", "second", "third"], [], [0.0]

    class Manager:
        def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]:  # noqa: N803
            asked.append(SecretId)
            return {"SecretString": values[len(asked) - 1]}

    resolver = SecretsManagerResolver(
        None, lambda _region: Manager(), keep_s=60.0, clock=lambda: now[0]
    )

    async def read() -> str:
        return await resolver.resolve("aws_secrets_manager", "team/key")

    assert [await read(), await read()] == ["first", "first"]
    now[0] = 60.0
    assert await read() == "second"
    resolver.invalidate("aws_secrets_manager", "team/key")
    assert await read() == "third"
    assert "third" not in repr(resolver)
