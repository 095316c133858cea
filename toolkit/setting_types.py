"""Types of the operator's settings: addresses with their checks, and limits."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr

from toolkit.contract.errors import ErrorCode

_SCHEDULER = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):(\d{1,5})")
_DATABASE = re.compile(r"postgres(ql)?://")
_STRAY_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d{1,5})?|https?://\[[0-9a-f:]+\](:\d{1,5})?")


@dataclass(frozen=True)
class Limit:
    """A limit that a setting sets, as metadata of the setting's type. `docs/limits.md` lists it.

    Attributes:
        scope: kind of thing that has the limit, such as "account".
        counted: place of the counter; "service" means all processes of a deployment together.
        beyond: error or wait beyond the limit.
        algorithm: textbook name of the algorithm, if it is more than a comparison.
    """

    scope: str
    counted: Literal["request", "process", "service"]
    beyond: ErrorCode | str
    algorithm: str = ""


SIGNUP_RATE = Limit("network address", "service", ErrorCode.RATE_LIMITED, "token bucket")
REQUEST_RATE = Limit("key", "service", ErrorCode.RATE_LIMITED, "token bucket")
ADMISSION = Limit("process", "process", ErrorCode.UNAVAILABLE, "semaphore")
QUEUE_LENGTH = Limit("account", "service", ErrorCode.RATE_LIMITED)
STORAGE_QUOTA = Limit("account", "service", ErrorCode.PAYLOAD_TOO_LARGE)
JOB_PLACES = Limit("process", "process", "jobs wait; accounts take turns", "fair semaphore")
ACCOUNT_JOB_PLACES = Limit("account", "process", "its other jobs wait", "fair semaphore")
CALL_PLACES = Limit("connection", "service", "calls wait", "distributed semaphore")
CALL_RATE = Limit("connection", "service", "calls wait", "token bucket")
CALL_TIME = Limit("vendor call", "request", ErrorCode.PROVIDER_TIMEOUT)
REPLY_SIZE = Limit("vendor call", "request", ErrorCode.PROVIDER_BAD_RESPONSE)
STEP_TIME = Limit("CPU step", "request", ErrorCode.PROVIDER_TIMEOUT)
STEP_MEMORY = Limit("CPU step", "request", ErrorCode.INTERNAL)
WORKFLOW_SIZE = Limit("workflow", "request", ErrorCode.INVALID_WORKFLOW)
BODY_SIZE = Limit("request", "request", ErrorCode.PAYLOAD_TOO_LARGE)
REQUEST_SHAPE = Limit("request", "request", ErrorCode.INVALID_REQUEST)
REQUEST_START = Limit("network connection", "request", "the server closes the connection")


def _check_origin(text: str) -> str:
    if not _ORIGIN.fullmatch(text):
        raise ValueError("is not an exact origin such as https://dashboard.example.org")
    return text


def _check_network(text: str) -> str:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError("is not an address or network such as 127.0.0.1 or 10.0.0.0/8") from None
    return text


def is_scheduler(text: str) -> bool:
    """Return whether a text is the host and port of a scheduler.

    >>> [is_scheduler(each) for each in ("10.0.0.7:8786", "[::1]:8786", "10.0.0.7", "a:99999")]
    [True, True, False, False]
    """
    match = _SCHEDULER.fullmatch(text)
    return match is not None and 0 < int(match[2]) < 65_536


def _check_dispatch(text: str) -> str:
    scheme, _, address = text.partition("://")
    if scheme not in ("dask", "tls") or not is_scheduler(address):
        raise ValueError(
            "is not the address of a Dask scheduler such as dask://10.0.0.7:8786, or"
            " tls://10.0.0.7:8786"
        )
    return text


def _check_database(url: SecretStr) -> SecretStr:
    text = url.get_secret_value()
    if not _DATABASE.match(text):
        raise ValueError(
            "is not the address of a PostgreSQL database such as"
            " postgresql://toolkit@10.0.0.5/toolkit"
        )
    if _STRAY_PERCENT.search(text):
        raise ValueError("has a `%` that is not written as %25")
    return url


DaskAddress = Annotated[str, AfterValidator(_check_dispatch)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_check_database)]


def _check_secretless(text: str) -> str:
    """Reject a URL with a password or a query, because settings are shown; return any other."""
    host = text.partition("://")[2].partition("/")[0]
    if ":" in host.rpartition("@")[0] or "?" in text:
        raise ValueError(
            "contains credentials or a query: set them with the storage's own variables"
        )
    return text


def _check_endpoint(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/@?#]+(/[^\s@?#]*)?", text):
        raise ValueError("is not a URL without credentials such as http://127.0.0.1:9000")
    return text


TrustedNetwork = Annotated[str, AfterValidator(_check_network)]
CorsOrigin = Annotated[str, AfterValidator(_check_origin)]
ArtifactUrl = Annotated[str, AfterValidator(_check_secretless)]
EndpointUrl = Annotated[str, AfterValidator(_check_endpoint)]


class TlsFiles(BaseModel):
    """PEM files with which a client and the scheduler of a Dask cluster authenticate each other.

    Attributes:
        ca_file: certificate of the authority that signed both certificates.
        cert_file: certificate of the client.
        key_file: private key of the client, which only this user can read; None if it is in
            `cert_file`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    ca_file: Path
    cert_file: Path
    key_file: Path | None = None
