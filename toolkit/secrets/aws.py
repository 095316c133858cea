"""A resolver of pointers into AWS Secrets Manager; needs boto3, the extra `aws`."""

import asyncio
import json
import time
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any, Protocol

from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.secrets.resolvers import make_unresolved_error


class SecretsClient(Protocol):
    """The interface of boto3's client, reduced to the only method that is used."""

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]:  # noqa: N803 - AWS's name
        """Return the secret with its metadata; errors of botocore pass through."""
        ...


def create_boto3_client(region: str | None) -> SecretsClient:
    """Create a client with the credentials that boto3 finds; None means the machine's region.

    Raises:
        WorkError: `SECRET_UNRESOLVED` when boto3 is not installed.
    """
    try:
        # Slow to import, and needed only if secrets are stored in AWS.
        boto3 = import_module("boto3")
    except ImportError:
        raise WorkError(
            ErrorCode.SECRET_UNRESOLVED,
            "AWS Secrets Manager needs boto3: install `capability-toolkit[aws]`.",
        ) from None
    client: SecretsClient = boto3.client("secretsmanager", region_name=region)
    return client


class SecretsManagerResolver:
    """A resolver that reads secrets by their name or ARN.

    Args:
        allowed: names of the readable secrets. None means all secrets that the machine's
            credentials open, for an engine whose only caller owns them.
        client: function that makes a client for a region.
        keep_s: seconds that a secret stays cached, because a workflow needs it at every call.
        clock: monotonic clock, in seconds.
    """

    def __init__(
        self,
        allowed: Collection[str] | None,
        client: Callable[[str | None], SecretsClient] = create_boto3_client,
        *,
        keep_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._allowed = None if allowed is None else frozenset(allowed)
        self._create_client = client
        self._ttl_s = keep_s
        self._clock = clock
        self._cache: dict[str, tuple[float, str]] = {}

    async def resolve(
        self,
        connection_type: str,
        secret_ref: str,
        granted: Collection[str] = (),  # noqa: ARG002 - variables
    ) -> str:
        """Return the secret's text, or the only member's text if it is a JSON object with one.

        Raises:
            WorkError: `SECRET_UNRESOLVED`, also when AWS refuses or is out of reach.
        """
        if connection_type != "aws_secrets_manager":
            raise make_unresolved_error()
        if self._allowed is not None and secret_ref not in self._allowed:
            raise make_unresolved_error()
        until, value = self._cache.get(secret_ref, (0.0, ""))
        if value and self._clock() < until:
            return value
        # boto3 waits for the network in the thread that calls it.
        value = await asyncio.to_thread(self._fetch_secret, secret_ref)
        if not value:
            raise make_unresolved_error()
        self._cache[secret_ref] = self._clock() + self._ttl_s, value
        return value

    def invalidate(self, connection_type: str, secret_ref: str) -> None:
        """Drop the cached secret of a pointer, so that the next use reads it again."""
        if connection_type == "aws_secrets_manager":
            self._cache.pop(secret_ref, None)

    def _fetch_secret(self, secret_ref: str) -> str:
        try:
            response = self._create_client(_parse_region(secret_ref)).get_secret_value(
                SecretId=secret_ref
            )
            text = response.get("SecretString")
            if text is None:
                text = bytes(response["SecretBinary"]).decode("utf-8")
            return _unwrap_single(str(text).strip())
        except WorkError:
            raise
        except Exception:  # botocore makes its classes at run time; their texts may not leak
            raise make_unresolved_error() from None

    def __repr__(self) -> str:
        return "SecretsManagerResolver()"


def _parse_region(secret_ref: str) -> str | None:
    """Return the region in an ARN (`arn:aws:secretsmanager:{region}:…`); None for a plain name."""
    return secret_ref.split(":")[3] if secret_ref.startswith("arn:") else None


def _unwrap_single(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict) and len(value) == 1:
        only = next(iter(value.values()))
        return only.strip() if isinstance(only, str) else text
    return text
