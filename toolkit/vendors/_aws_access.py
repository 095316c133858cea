"""Requests to AWS: credentials of a secret, hosts of a region, and signatures."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module

import httpx

from toolkit.plugins import Access
from toolkit.vendors._http import (
    build_bearer_headers,
    make_secret_error,
    read_json_secret,
    read_text_member,
)

REGION = "us-east-1"
BASE_URL = f"https://bedrock-runtime.{REGION}.amazonaws.com"
# Names that tools use for the parts of credentials.
_CREDENTIAL_KEYS = {
    "access_key": ("access_key_id", "aws_access_key_id", "accesskeyid", "access_key"),
    "secret_key": ("secret_access_key", "aws_secret_access_key", "secretaccesskey", "secret_key"),
    "token": ("session_token", "aws_session_token", "sessiontoken", "token"),
    "region": ("region", "aws_region", "aws_default_region", "region_name"),
}


@dataclass(frozen=True, slots=True)
class AwsCredentials:
    """The credentials of a request: a Bedrock API key, or a pair of keys to sign with."""

    bearer: str = field(default="", repr=False)
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    token: str | None = field(default=None, repr=False)
    region: str | None = None


def parse_credentials(secret: str) -> AwsCredentials:
    """Parse the credentials of a secret, which is a JSON object or an API key.

    >>> parse_credentials("bedrock-api-key").region is None
    True

    Raises:
        ProviderError: `SECRET_UNRESOLVED` for JSON without credentials; the message quotes nothing.
    """
    if not secret.lstrip().startswith("{"):
        return AwsCredentials(bearer=secret)
    members = read_json_secret(secret)
    parts = {part: read_text_member(members, *names) for part, names in _CREDENTIAL_KEYS.items()}
    if not parts["access_key"] or not parts["secret_key"]:
        raise make_secret_error(
            "The secret is JSON without `access_key_id` and `secret_access_key`."
        )
    return AwsCredentials(
        access_key=parts["access_key"],
        secret_key=parts["secret_key"],
        token=parts["token"] or None,
        region=parts["region"] or None,
    )


def resolve_endpoint(access: Access, keys: AwsCredentials) -> tuple[str, str]:
    """Return the base URL and its region: the host's, else the secret's, else `REGION`."""
    base = access.base_urls["api"].rstrip("/")
    if base == BASE_URL and keys.region is not None:
        return base.replace(REGION, keys.region), keys.region
    return base, parse_region(base) or keys.region or REGION


def parse_region(url: str) -> str | None:
    """Return the region of a host `bedrock-runtime.{region}.amazonaws.com`; None for others."""
    host = httpx.URL(url).host.split(".")
    return host[1] if len(host) > 3 and host[0].startswith("bedrock") else None


def build_request(
    access: Access,
    keys: AwsCredentials,
    url: str,
    content: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    service: str = "bedrock",
) -> httpx.Request:
    """Build a request with the API key of a secret, or signed by its pair of keys.

    Args:
        service: the service that the signature is for.

    Raises:
        ProviderError: `SECRET_UNRESOLVED` for a pair of keys without botocore.
    """
    sent = dict(headers or {})
    # Without a pair of keys, the API key is sent alone, and never with a signature.
    sent |= build_bearer_headers(replace(access, secret=keys.bearer)) or _sign_request(
        method, url, content, sent, keys, service
    )
    return httpx.Request(method, url, content=content, headers=sent)


def _sign_request(
    method: str,
    url: str,
    content: bytes,
    headers: Mapping[str, str],
    keys: AwsCredentials,
    service: str,
) -> dict[str, str]:
    """Return the headers of a signed request (Signature Version 4); reject it without botocore."""
    try:
        # Imported here, because the import is slow and only signing needs it.
        auth = import_module("botocore.auth")
        request = import_module("botocore.awsrequest")
        credentials = import_module("botocore.credentials")
    except ImportError:
        raise make_secret_error(
            "Signing needs botocore: install `capability-toolkit[aws]`, or use a Bedrock API key."
        ) from None
    aws_request = request.AWSRequest(method=method, url=url, data=content, headers=dict(headers))
    identity = credentials.Credentials(keys.access_key, keys.secret_key, keys.token)
    # S3 wants the digest of the content in a header, and its paths are encoded once.
    signer = auth.S3SigV4Auth if service == "s3" else auth.SigV4Auth
    signer(identity, service, keys.region or REGION).add_auth(aws_request)
    return {str(name).lower(): str(value) for name, value in aws_request.headers.items()}
