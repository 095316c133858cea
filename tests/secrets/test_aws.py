"""AWS Secrets Manager, with a fake client: boto3 is neither needed nor imported."""

import sys
import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.secrets import SecretsManagerResolver

TYPE = "aws_secrets_manager"
ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:prod/minimax-AbCdEf"


class FakeSecretsManager:
    """A client that knows one secret."""

    def __init__(self, answer: Mapping[str, Any] | Exception) -> None:
        self.answer = answer
        self.regions: list[str | None] = []
        self.threads: set[threading.Thread] = set()

    def __call__(self, region: str | None) -> "FakeSecretsManager":
        """Make the client of a region."""
        self.regions.append(region)
        return self

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]:  # noqa: N803
        """Answer as boto3 does."""
        self.threads.add(threading.current_thread())
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"Name": SecretId, **self.answer}


@pytest.mark.parametrize(
    ("answer", "secret"),
    [
        ({"SecretString": " sk-test\n"}, "sk-test"),
        ({"SecretString": '{"api_key": "sk-test"}'}, "sk-test"),
        ({"SecretString": '{"a": "1", "b": "2"}'}, '{"a": "1", "b": "2"}'),
        ({"SecretString": '{"a": 1}'}, '{"a": 1}'),
        ({"SecretString": '["a"]'}, '["a"]'),
        ({"SecretString": '{"api_key": '}, '{"api_key":'),
        ({"SecretBinary": b"sk-test"}, "sk-test"),
    ],
)
async def test_reads_text_bytes_and_json(answer: Mapping[str, Any], secret: str) -> None:
    """Given text, bytes or JSON, then the secret is returned; of one JSON member, its value."""
    resolver = SecretsManagerResolver(None, FakeSecretsManager(answer))
    assert await resolver.resolve(TYPE, "prod/minimax") == secret


async def test_uses_the_region_of_an_arn_in_a_thread() -> None:
    """Given an ARN, then its region is used, and the client runs in a thread of its own."""
    fake = FakeSecretsManager({"SecretString": "sk-test"})
    resolver = SecretsManagerResolver(None, fake)
    await resolver.resolve(TYPE, ARN)
    await resolver.resolve(TYPE, "prod/minimax")
    assert fake.regions == ["eu-central-1", None]
    assert threading.main_thread() not in fake.threads


@pytest.mark.parametrize(
    "answer",
    [
        {"SecretString": " "},
        {"SecretBinary": b"\xff\xfe"},
        {},
        RuntimeError("ResourceNotFoundException: prod/minimax"),
    ],
)
async def test_failures_reveal_nothing(answer: Mapping[str, Any] | Exception) -> None:
    """Given no secret or an error of AWS, then the error is the same and names no secret."""
    with pytest.raises(WorkError) as caught:
        await SecretsManagerResolver(None, FakeSecretsManager(answer)).resolve(TYPE, "prod/minimax")
    assert caught.value.code is ErrorCode.SECRET_UNRESOLVED
    assert "prod/minimax" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(("kind", "name"), [("environment", "prod/minimax"), (TYPE, "prod/other")])
async def test_does_not_ask_aws_for_other_secrets(kind: str, name: str) -> None:
    """Given another connection type or a name that is not allowed, then AWS is not called."""
    fake = FakeSecretsManager({"SecretString": "sk-test"})
    with pytest.raises(WorkError):
        await SecretsManagerResolver({"prod/minimax"}, fake).resolve(kind, name)
    assert fake.regions == []


async def test_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given no boto3, then the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(WorkError, match=r"install `capability-toolkit\[aws\]`") as caught:
        await SecretsManagerResolver(None).resolve(TYPE, "prod/minimax")
    assert caught.value.code is ErrorCode.SECRET_UNRESOLVED


async def test_calls_boto3_for_the_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given boto3, then its client is made for the service and the region of the ARN."""
    fake, services = FakeSecretsManager({"SecretString": "sk-test"}), []

    def client(service: str, region_name: str | None) -> FakeSecretsManager:
        services.append(service)
        return fake(region_name)

    monkeypatch.setitem(sys.modules, "boto3", SimpleNamespace(client=client))
    assert await SecretsManagerResolver(None).resolve(TYPE, ARN) == "sk-test"
    assert (services, fake.regions) == (["secretsmanager"], ["eu-central-1"])


async def test_caches_a_secret_until_it_expires_or_is_invalidated() -> None:
    """Given a secret, then it stays cached for a minute, unless a vendor rejects it."""
    fake, now = FakeSecretsManager({"SecretString": "first"}), [0.0]
    resolver = SecretsManagerResolver(None, fake, keep_s=60.0, clock=lambda: now[0])
    assert await resolver.resolve(TYPE, "team/key") == "first"
    fake.answer = {"SecretString": "second"}
    assert await resolver.resolve(TYPE, "team/key") == "first"
    now[0] = 60.0
    assert await resolver.resolve(TYPE, "team/key") == "second"
    fake.answer = {"SecretString": "third"}
    resolver.invalidate(TYPE, "team/key")
    assert await resolver.resolve(TYPE, "team/key") == "third"
    assert "third" not in repr(resolver)
