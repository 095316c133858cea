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
from toolkit.contract.errors import ErrorCode, ServiceError, ToolkitError
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
    """
    url = (given or os.environ.get("TOOLKIT_BASE_URL", "")).rstrip("/")
    if not url:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "No base_url was given: name a server, or use Client.local() for an engine right here.",
        )
    return url if url.endswith("/v1") else f"{url}/v1"


@cache
def authorities() -> ssl.SSLContext:
    """Whom all clients of a process trust to vouch for a server; reading them takes 25 ms."""
    return httpx.create_ssl_context()


def headers(api_key: str | None) -> dict[str, str]:
    """The headers of every request; the key comes from `TOOLKIT_API_KEY` if it is not given."""
    key = api_key or os.environ.get("TOOLKIT_API_KEY", "")
    sent = {"User-Agent": USER_AGENT, "Accept": "application/json"}
    return {**sent, "Authorization": f"Bearer {key}"} if key else sent


def error_of(response: httpx.Response) -> ToolkitError:
    """The exception that an answer outside 2xx stands for."""
    try:
        info = ErrorEnvelope.model_validate_json(response.content).error
    except ValidationError:
        return ServiceError(
            ErrorCode.UNAVAILABLE,
            f"{response.url.host} answered {response.status_code}, and not as this service does.",
        )
    error = info.to_exception()
    wait = response.headers.get("retry-after", "")
    error.retry_after = float(wait) if wait.isdigit() else None
    error.request_id = info.request_id or response.headers.get("x-request-id")
    return error


def unreachable(error: httpx.TransportError, url: httpx.URL) -> ServiceError:
    """The exception for a service that cannot be reached."""
    return ServiceError(
        ErrorCode.UNAVAILABLE,
        f"{url.host} could not be reached ({type(error).__name__}); is it running?",
    )


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
