"""What both clients do with an answer: errors, envelopes, when to ask again."""

import os
import random
import secrets
import ssl
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from toolkit.client._shown import Discovered
from toolkit.contract.account import tells_a_key
from toolkit.contract.base import ErrorEnvelope
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, ToolkitError
from toolkit.contract.health import Provider

R = TypeVar("R", bound=BaseModel)
RETRIES = 3
RETRY_CAP_S = 5.0
LONG_POLL_S = 20
USER_AGENT = "capability-toolkit"


def base_url(given: str | None) -> str:
    """The address of `/v1`, from what was given or `TOOLKIT_BASE_URL`.

    Raises:
        ServiceError: `UNAVAILABLE` when there is none.
        RequestError: `INVALID_REQUEST` when it is no address of a server.
    """
    url = str(given or os.environ.get("TOOLKIT_BASE_URL", "")).strip().rstrip("/")
    if not url:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "There is no address to speak to: use Client.local() for an engine right here, or name"
            " a server by base_url= or TOOLKIT_BASE_URL.",
        )
    if not _is_address(url):  # not echoed: it may be a key that was given in its place
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "The base_url (or TOOLKIT_BASE_URL) is no address of a server such as"
            " http://127.0.0.1:8000; a folder is opened by Client.local(folder).",
        )
    return url if url.endswith("/v1") else f"{url}/v1"


def _is_address(url: str) -> bool:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return parsed.scheme in ("http", "https") and bool(parsed.host)


@cache
def authorities() -> ssl.SSLContext:
    """Whom all clients of a process trust to vouch for a server; reading them takes 25 ms."""
    return httpx.create_ssl_context()


def headers(api_key: str | None) -> dict[str, str]:
    """The headers of every request; the key comes from `TOOLKIT_API_KEY` if it is not given.

    Raises:
        RequestError: `UNAUTHENTICATED` for what no header can carry.
    """
    key = (api_key or os.environ.get("TOOLKIT_API_KEY", "")).strip()
    if not (key.isascii() and key.isprintable()):
        raise RequestError(
            ErrorCode.UNAUTHENTICATED, "The key has characters that no key has: copy it again."
        )
    sent = {"User-Agent": USER_AGENT, "Accept": "application/json"}
    return {**sent, "Authorization": f"Bearer {key}"} if key else sent


def error_of(response: httpx.Response) -> ToolkitError:
    """The exception that an answer outside 2xx stands for."""
    try:
        info = ErrorEnvelope.model_validate_json(response.content).error
    except ValidationError:
        return foreign(response)
    if (
        info.code == ErrorCode.UNAUTHENTICATED.name
        and "authorization" not in response.request.headers
    ):
        info.message = (
            "No key was given: pass api_key= or set TOOLKIT_API_KEY;"
            " client.account.create(email) makes an account with one."
        )
    error = info.to_exception()
    wait = response.headers.get("retry-after", "")
    error.retry_after = float(wait) if wait.isdigit() else None
    error.request_id = info.request_id or response.headers.get("x-request-id")
    return error


def foreign(response: httpx.Response) -> ServiceError:
    """The exception for an answer that this service does not give."""
    said = f"{_place(response.url)} answered {response.status_code}, and not as this service does"
    if response.has_redirect_location:
        said += f", but points to {_place(response.url.join(response.headers['location']))}"
    return ServiceError(ErrorCode.UNAVAILABLE, f"{said}: check the base_url.")


def unreachable(error: httpx.TransportError, url: httpx.URL) -> ServiceError:
    """The exception for a service that cannot be reached."""
    why = f"{type(error).__name__}); is it running, and is this its port?"
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        why = "its certificate is not trusted here); use the name that the certificate is for."
    elif url.scheme == "https" and "SSL" in str(error):
        why = "it does not speak https); try http:// in base_url."
    elif isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
        why = f"{type(error).__name__}); is it a server of this toolkit, and is it http:// there?"
    return ServiceError(ErrorCode.UNAVAILABLE, f"{_place(url)} could not be reached ({why}")


def _place(url: httpx.URL) -> str:
    """The scheme, host and port of an address: what else it has may be a secret."""
    return str(httpx.URL(scheme=url.scheme, host=url.host, port=url.port))


def once(method: str, path: str, transport: object) -> dict[str, str]:
    """The header by which a request that is sent twice does its work once.

    Reading and deleting are so by themselves, and keys are told a single time. Nothing is lost
    between two threads, so an engine in this process need not keep its answers.
    """
    if method != "POST" or tells_a_key(path) or getattr(transport, "lossless", False):
        return {}
    return {"Idempotency-Key": secrets.token_hex(16)}


def may_repeat(request: httpx.Request, error: ToolkitError) -> bool:
    """Whether a request that failed is sent again: it does its work once all the same."""
    if request.method in ("GET", "DELETE"):
        return error.code.retryable
    # New work is not pressed on a service that says it has enough of it.
    return error.code is ErrorCode.UNAVAILABLE and "idempotency-key" in request.headers


def backoff_s(attempt: int, error: ToolkitError) -> float:
    """Seconds before asking again."""
    if error.retry_after is not None:
        return min(RETRY_CAP_S, error.retry_after)
    return random.uniform(0, min(RETRY_CAP_S, 0.2 * 2**attempt))  # noqa: S311 - no secret


def data_of(envelope: Any, model: type[R]) -> R:
    """The resource of an envelope."""
    return model.model_validate(envelope["data"])


def envelope_of(response: httpx.Response) -> Any:
    """The envelope that an answer is.

    Raises:
        ServiceError: `UNAVAILABLE` when it is none, as of a server of something else.
    """
    try:
        envelope = response.json()
    except ValueError:
        raise foreign(response) from None
    if not isinstance(envelope, dict) or "data" not in envelope:
        raise foreign(response)
    return envelope


def page(limit: int, cursor: str | None) -> dict[str, str | int]:
    """The query that asks for a page of a list."""
    return {"limit": limit} if cursor is None else {"limit": limit, "cursor": cursor}


def without_none(**fields: object) -> dict[str, object]:
    """The fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def read(path: str | Path) -> bytes:
    """A file to upload."""
    return Path(path).read_bytes()


def write(path: str | Path, data: bytes) -> Path:
    """Write a file whole or not at all."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.partial")
    partial.write_bytes(data)
    return partial.replace(target)


def run_body(
    name: str,
    given: Mapping[str, object],
    version: str | None,
    options: Mapping[str, object],
    target: str = "capability",
) -> dict[str, object]:
    """The body that asks for a run, or for the choice that one would get."""
    return {
        "target": target,
        "name": name,
        "input": dict(given),
        "options": dict(options),
        **without_none(version=version),
    }


def discovered(provider: Provider) -> Discovered:
    """A vendor's conventional variable, as this process sees it."""
    variable = provider.conventional_variable
    return Discovered(
        provider=provider.id,
        title=provider.title,
        variable=variable,
        set=bool(os.environ.get(variable)),
        connected=provider.connected,
    )
