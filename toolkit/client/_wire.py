"""Handling of responses that both clients share: errors, envelopes, retries."""

import hashlib
import logging
import os
import random
import secrets
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar

import httpx

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, ToolkitError
from toolkit.profiles.resolution import ServerAccess, make_refused_key_error
from toolkit.profiles.secret import Secret

# Records are made where they are asked for: reading JSON alone needs neither them nor pydantic.
if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.client._record_view import DiscoveredVariable
    from toolkit.contract.artifacts import Artifact
    from toolkit.contract.health import Provider

R = TypeVar("R", bound="BaseModel")
log = logging.getLogger("toolkit.client")
MAX_RETRIES = 3
MAX_WAIT_S = 60.0
AWAY_STATUSES = frozenset({502, 503, 504})
RETRY_CAP_S = 5.0
LONG_POLL_S = 20
PIECE_BYTES = 1024 * 1024  # of an artifact that is saved, each requested separately
USER_AGENT = "capability-toolkit"


def load_ssl_context(cacert: str | Path | None) -> ssl.SSLContext:
    """Load the certificates of authorities: the machine's, or those of `SSL_CERT_FILE`.

    Args:
        cacert: a file of further trusted certificates, in PEM.

    Raises:
        RequestError: `INVALID_REQUEST` for a file that holds none.
    """
    names = ("SSL_CERT_FILE", "SSL_CERT_DIR")
    return _load_ssl_context(cacert and str(cacert), tuple(os.environ.get(name) for name in names))


def choose_ssl_context(access: ServerAccess, cacert: str | Path | None) -> ssl.SSLContext:
    """Choose the TLS context for an address; one without certificates for plain HTTP.

    Args:
        access: the address, and the certificates of its profile.
        cacert: a file of certificates, which takes precedence over that of a profile.

    Raises:
        RequestError: `INVALID_REQUEST` for a file that holds no certificates.
    """
    cacert = cacert or access.cacert
    if cacert is None and access.base_url.startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return load_ssl_context(cacert)


@cache
def _load_ssl_context(cacert: str | None, environment: tuple[str | None, ...]) -> ssl.SSLContext:
    """Load certificates, once for all clients of a process: it takes 25 ms."""
    try:
        context = httpx.create_ssl_context()
    except OSError:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"SSL_CERT_FILE ({environment[0]}) cannot be read: it names a file of certificates, in"
            " PEM.",
        ) from None
    if cacert is not None:
        try:
            context.load_verify_locations(cafile=cacert)
        except OSError:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"cacert ({cacert}) cannot be read: it names a file of certificates, in PEM.",
            ) from None
    return context


def resolve_max_wait_s(given: float | None) -> float:
    """Return how long to wait for a server that is away: as given, or `TOOLKIT_MAX_WAIT_S`.

    Raises:
        RequestError: `INVALID_REQUEST` for what is no number of seconds.
    """
    text = os.environ.get("TOOLKIT_MAX_WAIT_S", MAX_WAIT_S) if given is None else given
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "The wait for a server that is away (max_wait_s, TOOLKIT_MAX_WAIT_S) is a number of"
            " seconds, 0 or more.",
        )
    return seconds


def make_headers(access: ServerAccess) -> dict[str, str]:
    """Return the headers of every request.

    Raises:
        RequestError: `UNAUTHENTICATED` for a key with what no header can carry.
    """
    sent = {"User-Agent": USER_AGENT, "Accept": "application/json"}
    if access.api_key is None:
        return sent
    fault = find_key_fault(access.api_key)
    if fault is not None:
        raise RequestError(
            ErrorCode.UNAUTHENTICATED, f"The key has {fault}, as no key has: copy it again."
        )
    return {**sent, "Authorization": f"Bearer {access.api_key.get_secret_value()}"}


def find_key_fault(key: Secret) -> str | None:
    """Explain why a key cannot be sent in a header; none where it can."""
    text = key.get_secret_value()
    if any(ord(character) < 32 for character in text):
        return "a line end or another control character in it"
    return None if text.isascii() and text.isprintable() else "characters that are not ASCII"


def parse_error(response: httpx.Response, access: ServerAccess) -> ToolkitError:
    """Make the exception for a response outside 2xx."""
    from pydantic import ValidationError

    from toolkit.contract.base import ErrorEnvelope

    try:
        info = ErrorEnvelope.model_validate_json(response.content).error
    except ValidationError:
        return make_foreign_error(response)
    refused = info.code == ErrorCode.UNAUTHENTICATED.name
    if refused and access.api_key is None:
        info.message = (
            "No key was given: pass api_key=, set TOOLKIT_API_KEY, or log in by"
            f" `toolkit login {access.server}`; client.account.create(email) makes an account with"
            " one."
        )
    # An answer with a reason of its own, such as a disabled account, is better than a guess.
    told = info.message != ErrorCode.UNAUTHENTICATED.hint
    is_profiles = refused and access.key_from == "profile" and not told
    error = make_refused_key_error(access) if is_profiles else info.to_exception()
    wait = response.headers.get("retry-after", "")
    error.retry_after = float(wait) if wait.isdigit() else None
    error.request_id = info.request_id or response.headers.get("x-request-id")
    error.is_away = response.status_code in AWAY_STATUSES
    return error


def make_foreign_error(response: httpx.Response) -> ServiceError:
    """Make the exception for a response that this service does not give."""
    if response.status_code in AWAY_STATUSES:  # of a proxy whose service is away
        error = ServiceError(
            ErrorCode.UNAVAILABLE,
            f"{_format_origin(response.url)} answered {response.status_code}.",
        )
        error.is_away = True
        return error
    origin = _format_origin(response.url)
    said = f"{origin} answered {response.status_code}, and not as this service does"
    if response.has_redirect_location:
        said += f", but points to {_format_origin(response.url.join(response.headers['location']))}"
    return ServiceError(ErrorCode.UNAVAILABLE, f"{said}: check the base_url.")


def make_unreachable_error(
    error: httpx.TransportError, url: httpx.URL, *, known: bool
) -> ServiceError:
    """Make the exception for a service that cannot be reached.

    Args:
        error: the error of the transport.
        url: the address of the service.
        known: whether it has ever answered: an address that never did may be mistyped.
    """
    why, away = f"{type(error).__name__}); is it running, and is this its port?", True
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        why, away = _explain_distrust(str(error)), False
    elif url.scheme == "https" and "SSL" in str(error):
        why, away = "it does not speak https); try http:// in base_url.", False
    elif isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
        why = f"{type(error).__name__}); is it a server of this toolkit, and is it http:// there?"
        away = known
    elif isinstance(error, httpx.ConnectError) and isinstance(
        _find_root_cause(error), socket.gaierror
    ):
        why, away = "its name is not known); is it spelled so?", known
    raised = ServiceError(
        ErrorCode.UNAVAILABLE, f"{_format_origin(url)} could not be reached ({why}"
    )
    raised.is_away = away
    return raised


def _explain_distrust(said: str) -> str:
    if "mismatch" in said or "not valid for" in said:
        return "its certificate is for another name); use the name that the certificate is for."
    if "expired" in said:
        return "its certificate has expired); have it renewed."
    return (
        "its certificate is not trusted here); name the file of who vouches for it by cacert="
        " (--cacert), or by SSL_CERT_FILE."
    )


def _find_root_cause(error: BaseException) -> BaseException:
    """Return the first cause of an error."""
    while (earlier := error.__cause__ or error.__context__) is not None:
        error = earlier
    return error


def _format_origin(url: httpx.URL) -> str:
    """Format the scheme, host and port of an address: the rest of it may be a secret."""
    return str(httpx.URL(scheme=url.scheme, host=url.host, port=url.port))


def make_idempotency_header(method: str, path: str, transport: object) -> dict[str, str]:
    """Make the header by which a request that is sent twice does its work once.

    Reading and deleting are idempotent anyway, and a new key is shown only once. Nothing is lost
    between two threads, so an embedded engine need not store its responses.
    """
    if method != "POST" or getattr(transport, "lossless", False):
        return {}
    from toolkit.contract.account import answers_with_key

    if answers_with_key(path):
        return {}
    return {"Idempotency-Key": secrets.token_hex(16)}


class RetrySchedule:
    """The retries of one request, which does its work once all the same.

    Args:
        request: the request that is sent.
        max_wait_s: how long to wait for a service that is away; none for an embedded engine,
            which is not restarted as a server is.
    """

    def __init__(self, request: httpx.Request, max_wait_s: float | None) -> None:
        self._request = request
        self._max_wait_s = max_wait_s
        self._attempt = 0
        self._until: float | None = None

    def next_delay_s(self, error: ToolkitError, *, sent: bool) -> float | None:
        """Return the seconds until it is sent again; none where it is given up.

        Args:
            error: the error of the last attempt.
            sent: whether the service may have received it.
        """
        request, attempt = self._request, self._attempt
        self._attempt += 1
        repeatable = request.method in ("GET", "DELETE") or "idempotency-key" in request.headers
        if self._max_wait_s is None or not error.is_away:
            # New work is not sent again to a service that is overloaded.
            again = error.code.retryable and (
                request.method != "POST" or error.code is ErrorCode.UNAVAILABLE
            )
            return (
                compute_backoff_s(attempt, error)
                if repeatable and again and attempt < MAX_RETRIES
                else None
            )
        if sent and not repeatable:
            return None
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._max_wait_s
            if self._max_wait_s:
                log.warning("%s Trying again for %g s.", error.message, self._max_wait_s)
        if now >= self._until:
            return None
        return min(compute_backoff_s(min(attempt, 3), error), self._until - now)


def compute_backoff_s(attempt: int, error: ToolkitError) -> float:
    """Compute the seconds before the next attempt."""
    if error.retry_after is not None:
        return min(RETRY_CAP_S, error.retry_after)
    return random.uniform(0, min(RETRY_CAP_S, 0.2 * 2**attempt))  # noqa: S311 - no secret


def parse_data(envelope: Any, model: type[R]) -> R:
    """Parse the resource of an envelope."""
    return model.model_validate(envelope["data"])


def parse_envelope(response: httpx.Response) -> Any:
    """Parse the envelope of a response.

    Raises:
        ServiceError: `UNAVAILABLE` when it is none, as of a server of something else.
    """
    try:
        envelope = response.json()
    except ValueError:
        raise make_foreign_error(response) from None
    if not isinstance(envelope, dict) or "data" not in envelope:
        raise make_foreign_error(response)
    return envelope


def make_page_query(limit: int, cursor: str | None) -> dict[str, str | int]:
    """Make the query that asks for a page of a list."""
    return {"limit": limit} if cursor is None else {"limit": limit, "cursor": cursor}


def drop_none(**fields: object) -> dict[str, object]:
    """Return the fields that are not none."""
    return {name: value for name, value in fields.items() if value is not None}


@contextmanager
def open_source(source: bytes | str | Path) -> Iterator[bytes | IO[bytes]]:
    """Open what is to be uploaded: a file is read as it is sent."""
    if isinstance(source, bytes):
        yield source
        return
    with Path(source).open("rb") as file:
        yield file


class ArtifactDownload:
    """A download that writes an artifact to a file piece by piece, whole or not at all.

    Args:
        path: the file, or a folder that it is saved in under its own name.
        artifact: the artifact that is written.
    """

    def __init__(self, path: str | Path, artifact: "Artifact") -> None:
        target = Path(path)
        self._target = target / Path(artifact.filename).name if target.is_dir() else target
        self._partial = self._target.with_name(f".{secrets.token_hex(8)}.partial")
        self._artifact = artifact
        self._size = 0
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        """Create the file, under a temporary name."""
        self._file = self._partial.open("wb")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the file unless it is complete."""
        self._file.close()
        self._partial.unlink(missing_ok=True)

    @property
    def is_complete(self) -> bool:
        """True if all bytes are there."""
        return self._size >= self._artifact.size_bytes

    @property
    def headers(self) -> dict[str, str]:
        """The headers that ask for the next piece; none where one piece is all there is."""
        if self._artifact.size_bytes <= PIECE_BYTES:
            return {}
        return {"Range": f"bytes={self._size}-{self._size + PIECE_BYTES - 1}"}

    def write_response(self, response: httpx.Response) -> None:
        """Write the bytes of a response.

        Raises:
            ServiceError: as `write_bytes`.
        """
        self.write_bytes(response.content)
        # Stream and response refer to each other: break the cycle to free them at once.
        response.stream = httpx.ByteStream(b"")

    def write_bytes(self, data: bytes) -> None:
        """Write bytes.

        Raises:
            ServiceError: `UNAVAILABLE` for no bytes, or more than there are.
        """
        self._file.write(data)
        self._digest.update(data)
        self._size += len(data)
        if not data or self._size > self._artifact.size_bytes:
            raise self._make_damage_error()

    def finish(self) -> Path:
        """Give the file its name.

        Raises:
            ServiceError: `UNAVAILABLE` where these are not the bytes of the artifact.
        """
        if self._digest.hexdigest() != self._artifact.sha256:
            raise self._make_damage_error()
        self._file.close()
        return self._partial.replace(self._target)

    def _make_damage_error(self) -> ServiceError:
        return ServiceError(
            ErrorCode.UNAVAILABLE,
            f"The bytes of `{self._artifact.id}` came otherwise than they were kept, so nothing was"
            " saved: try again, and ask whoever runs the server for `toolkit doctor`.",
        )


def make_run_body(
    name: str,
    given: Mapping[str, object],
    version: str | None,
    options: Mapping[str, object],
    target: str = "capability",
) -> dict[str, object]:
    """Make the body that asks for a run, or for the choice that one would get."""
    return {
        "target": target,
        "name": name,
        "input": dict(given),
        "options": dict(options),
        **drop_none(version=version),
    }


def find_variable(provider: "Provider") -> "DiscoveredVariable":
    """Look up a vendor's conventional variable in this process."""
    from toolkit.client._record_view import DiscoveredVariable

    variable = provider.conventional_variable
    return DiscoveredVariable(
        provider=provider.id,
        title=provider.title,
        variable=variable,
        set=bool(os.environ.get(variable)),
        connected=provider.connected,
    )
