"""The check of Signature Version 4, as the vendor's documentation describes it.

See https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from posixpath import normpath
from urllib.parse import quote

from starlette.requests import Request

from toolkit.sandbox.json_http import RefusalError

ALGORITHM = "AWS4-HMAC-SHA256"
BEDROCK, S3 = "bedrock", "s3"
MAX_CLOCK_SKEW = timedelta(minutes=15)
TIMESTAMP_FORMAT = "%Y%m%dT%H%M%SZ"
TERMINATOR = "aws4_request"


class SignatureRefusalError(RefusalError):
    """A refusal of a signature, by the vendor's name of the error and the vendor's words."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__({"message": message}, 403, {"x-amzn-errortype": name})
        self.name, self.message = name, message


async def check_signature(
    request: Request, access_key: str, secret_key: str, service: str = BEDROCK
) -> None:
    """Check the signature of a request as it arrived.

    Args:
        request: the request, with its target as the client spelled it.
        service: the service that the signature is for, `bedrock` or `s3`.

    Raises:
        SignatureRefusalError: the key is unknown, or the signature does not match the request.
    """
    authorization = request.headers.get("authorization", "")
    if not authorization.startswith(f"{ALGORITHM} "):
        raise SignatureRefusalError("AccessDeniedException", "Missing Authentication Token")
    parts = dict(
        part.strip().partition("=")[::2]
        for part in authorization.removeprefix(ALGORITHM).split(",")
    )
    missing = [name for name in ("Credential", "SignedHeaders", "Signature") if name not in parts]
    if missing:
        raise SignatureRefusalError(
            "IncompleteSignatureException",
            f"Authorization header requires '{missing[0]}' parameter.",
        )
    key, _, scope = parts["Credential"].partition("/")
    if key != access_key or "x-amz-security-token" in request.headers:
        raise SignatureRefusalError(
            "UnrecognizedClientException", "The security token included in the request is invalid."
        )
    timestamp = request.headers.get("x-amz-date", "")
    _check_scope(scope, timestamp, service)
    signed = parts["SignedHeaders"].split(";")
    _check_signed_headers(request.headers, signed)
    text = "\n".join(
        (
            ALGORITHM,
            timestamp,
            scope,
            _hash(
                _build_canonical_request(request, await request.body(), signed, service).encode()
            ),
        )
    )
    if not hmac.compare_digest(_sign(secret_key, scope, text), parts["Signature"]):
        raise SignatureRefusalError(
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided.",
        )


def _check_scope(scope: str, timestamp: str, service: str) -> None:
    """Check the scope and the time of a signature."""
    try:
        signed_at = datetime.strptime(timestamp, TIMESTAMP_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        raise SignatureRefusalError(
            "IncompleteSignatureException", "Authorization header requires 'X-Amz-Date'."
        ) from None
    day, _, target = scope.partition("/")
    if day != timestamp[:8] or target.split("/")[1:] != [service, TERMINATOR]:
        raise SignatureRefusalError(
            "InvalidSignatureException",
            f"Credential should be scoped to the date of the request and to '{service}'.",
        )
    if abs(datetime.now(UTC) - signed_at) > MAX_CLOCK_SKEW:
        raise SignatureRefusalError(
            "InvalidSignatureException",
            f"Signature expired: {timestamp} is more than 15 minutes from now.",
        )


def _check_signed_headers(headers: Mapping[str, str], signed: list[str]) -> None:
    """Check that the host and the vendor's own headers are signed."""
    required = {"host", *(name for name in headers if name.startswith("x-amz-"))}
    if not required <= set(signed) or signed != sorted(signed):
        raise SignatureRefusalError(
            "InvalidSignatureException",
            "'Host' and every 'X-Amz-…' header must be signed, in the order of their names.",
        )


def _build_canonical_request(request: Request, body: bytes, signed: list[str], service: str) -> str:
    """Build the form of a request that is signed.

    The path is encoded twice, except for S3: the form that the client sent is encoded again.
    """
    raw = bytes(request.scope.get("raw_path") or request.url.path.encode()).decode("ascii")
    path = raw.partition("?")[0]
    if service != S3:
        slash = "/" if path.endswith("/") and path != "/" else ""
        path = quote(normpath(path).replace("//", "/") + slash, safe="/-_.~")
    return "\n".join(
        (
            request.method,
            path,
            "&".join(
                f"{name}={value}"
                for name, _, value in sorted(
                    pair.partition("=") for pair in request.url.query.split("&") if pair
                )
            ),
            *(f"{name}:{_join_values(request, name)}" for name in signed),
            "",
            ";".join(signed),
            _hash(body),
        )
    )


def _join_values(request: Request, name: str) -> str:
    return ",".join(" ".join(value.split()) for value in request.headers.getlist(name))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _sign(secret_key: str, scope: str, text: str) -> str:
    key = f"AWS4{secret_key}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()
