"""Answers of vendors: validated JSON, failures as our codes, and never a key in a message."""

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import quote

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Access, ProviderError
from toolkit.plugins.json_reader import read_json
from toolkit.plugins.key_redaction import REDACTED, redact_message

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
Json: TypeAlias = dict[str, Any]
# The error code of a failure, and whether to retry; None stands for the code's default.
Classification: TypeAlias = tuple[ErrorCode, bool | None]

MAX_EXCERPT_CHARACTERS = 200
MAX_QUOTED_CHARACTERS = 20 * MAX_EXCERPT_CHARACTERS  # the part of a text that is searched for keys
MAX_RETRY_AFTER_S = 3600.0
REQUEST_ID_HEADERS = (
    "x-request-id", "request-id", "x-amzn-requestid", "trace-id", "apim-request-id",
)  # fmt: skip
KEY_REFUSED: Classification = (ErrorCode.PROVIDER_AUTH_FAILED, False)
# Waiting does not lift this limit, but another connection may have credit.
OUT_OF_CREDIT: Classification = (ErrorCode.PROVIDER_RATE_LIMITED, False)
REFUSED: Classification = (ErrorCode.PROVIDER_REJECTED, False)

# The meaning of a status if the body has no code of the vendor's own.
_CLASSIFICATION_BY_STATUS: dict[int, Classification] = {
    401: KEY_REFUSED,
    402: OUT_OF_CREDIT,
    403: KEY_REFUSED,
    408: (ErrorCode.PROVIDER_TIMEOUT, None),
    409: (ErrorCode.PROVIDER_UNAVAILABLE, None),
    425: (ErrorCode.PROVIDER_UNAVAILABLE, None),
    429: (ErrorCode.PROVIDER_RATE_LIMITED, None),
}


@dataclass(frozen=True, slots=True)
class VendorResponse:
    """An answer of a vendor, with the access that its redaction needs.

    Attributes:
        access: the access of the request; its secret is removed from every quoted text.
    """

    access: Access = field(repr=False)
    response: httpx.Response

    @property
    def vendor(self) -> str:
        """The id of the vendor that was asked, which may be asked by another vendor's flow."""
        return self.access.vendor

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.response.status_code

    @property
    def is_failure(self) -> bool:
        """True unless the status is 2xx; a redirect is a failure, as it is never followed."""
        return not 200 <= self.status < 300

    @property
    def request_id(self) -> str | None:
        """The vendor's id of the call, from the headers; None if they have no id."""
        for name in REQUEST_ID_HEADERS:
            value = self.response.headers.get(name)
            if value is not None:
                return self.read_label(value)
        return None

    def json(self) -> Json:
        """Parse the answer as a JSON object; a failing answer may have any content type.

        Raises:
            ProviderError: `PROVIDER_BAD_RESPONSE` for any other answer, such as an HTML page; a
                failing status without a JSON object keeps its own code.
        """
        kind = self.response.headers.get("content-type", "").partition(";")[0].strip().lower()
        value = _parse_json(self.response.content)
        if isinstance(value, dict) and (self.is_failure or not kind or "json" in kind):
            return value
        if self.is_failure:
            raise self.build_failure("")
        content = (
            "an empty body" if not self.response.content else self.redact_excerpt(kind) or "no type"
        )
        raise self.build_bad_response(
            f"{self.vendor} answered with {content} instead of a JSON object.",
        )

    def build_failure(
        self,
        text: object,
        *,
        verdict: Classification | None = None,
        number: int | None = None,
        request_id: str | None = None,
    ) -> ProviderError:
        """Build the error for an answer that reports a failure.

        Args:
            text: the vendor's message; quoted unless it is about the key.
            verdict: meaning of the vendor's own code; that of the HTTP status by default.
            number: the vendor's own code; the HTTP status by default.
            request_id: the vendor's id of the call from the body; that of the headers by default.
        """
        verdict = verdict or _classify_status(self.status)
        number = self.status if number is None else number
        if verdict == KEY_REFUSED:
            # Vendors echo parts of a refused key, so their words are not repeated.
            message = f"{self.vendor} did not accept the key for this ({number})."
        else:
            words = self.redact_excerpt(text)
            lead = "is out of credit or quota" if verdict == OUT_OF_CREDIT else "answered"
            message = f"{self.vendor} {lead} ({number}){': ' + words if words else ''}"
            message += "" if message.endswith((".", "!", "?")) else "."
        return self.build_error(verdict, message, request_id=request_id)

    def build_error(
        self, verdict: Classification, message: str, *, request_id: str | None = None
    ) -> ProviderError:
        """Build an error with the status, the retry hints and the request id of the answer."""
        code, retryable = verdict
        hint = self.response.headers.get("x-should-retry", "").strip().lower()
        if retryable is None and hint in ("true", "false"):
            retryable = hint == "true"
        return ProviderError(
            code,
            message,
            retryable=retryable,
            retry_after=parse_retry_after(self.response),
            status=self.status,
            vendor_request_id=request_id or self.request_id,
        )

    def build_bad_response(self, message: str, *, request_id: str | None = None) -> ProviderError:
        """Build the error for an answer that is not what the vendor documents."""
        verdict = (ErrorCode.PROVIDER_BAD_RESPONSE, None)
        return self.build_error(verdict, message, request_id=request_id)

    def redact_excerpt(self, text: object) -> str:
        """Return at most a line of the vendor's text, without any echo of the key."""
        return redact_excerpt(text, self.access)

    def read_label(self, value: object) -> str | None:
        """Return a vendor's short name, such as that of a model; None if it is empty or no text."""
        return redact_excerpt(value, self.access) or None if isinstance(value, str) else None


def parse_retry_after(response: httpx.Response) -> float | None:
    """Parse the seconds to wait, which vendors give as milliseconds, seconds or an HTTP date.

    Returns None without such a header, and `MAX_RETRY_AFTER_S` for a longer or an invalid time: the
    vendor is left alone, but not for ever.
    """
    milliseconds = response.headers.get("retry-after-ms", "").strip()
    header = response.headers.get("retry-after", "").strip()
    if not milliseconds and not header:
        return None
    seconds = _parse_delay(milliseconds)
    seconds = _parse_delay(header) if seconds is None else seconds / 1000
    return MAX_RETRY_AFTER_S if seconds is None else min(seconds, MAX_RETRY_AFTER_S)


def _parse_delay(text: str) -> float | None:
    """Parse the seconds until a time, a number or an HTTP date; returns None if it is invalid."""
    if re.fullmatch(r"\d{1,300}(\.\d{1,300})?", text, re.A):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
        if date.tzinfo is None:  # the date ends with `-0000`: UTC without a known time zone
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def redact_excerpt(text: object, access: Access) -> str:
    """Return up to `MAX_EXCERPT_CHARACTERS` printable characters of a text, without the key.

    The vendor's ids of the endpoint and the pod are removed, too: they are not for callers.
    """
    excerpt = text[:MAX_QUOTED_CHARACTERS] if isinstance(text, str) else ""
    line = excerpt
    if not line.isprintable():
        line = "".join(c if c.isprintable() else " " for c in excerpt)
    if access.secret:
        line = redact_message(line.replace(access.secret, REDACTED), access.key_forms)
    for name, what in ((access.endpoint, "the endpoint"), (access.pod, "the pod")):
        line = line.replace(name, what) if name else line
    return " ".join(line.split())[:MAX_EXCERPT_CHARACTERS]


def to_finite_number(value: object) -> float | None:
    """Return a finite number that is not negative, as counts and prices are; None otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        counted = float(value)
    except OverflowError:
        return None
    return counted if math.isfinite(counted) and counted >= 0 else None


def clean_text(value: object) -> str | None:
    """Return a text without NUL and lone surrogates, which no store accepts; None if no text."""
    if not isinstance(value, str):
        return None
    return value.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def get_object(body: Json, name: str) -> Json:
    """Return a member that is an object, or an empty object if it is missing or no object."""
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def list_objects(body: Json, name: str) -> list[Json]:
    """List the objects in a member; without any if it is no list."""
    value = body.get(name)
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def get_first(body: Json, name: str) -> Json:
    """Return the first item of a member that is a list, if it is an object, or else {}."""
    value = body.get(name)
    first = value[0] if isinstance(value, list) and value else None
    return first if isinstance(first, dict) else {}


def read_numbers(body: Json, *names: str) -> tuple[float | None, ...]:
    """Return the named members as `to_finite_number` converts them, a missing member as None."""
    return tuple([to_finite_number(body.get(name)) for name in names])


def build_json_request(
    url: str, fields: Mapping[str, object], headers: Mapping[str, str]
) -> httpx.Request:
    """Build a POST of a JSON object.

    The body and the headers are written here as httpx writes them: httpx takes five times as long.
    """
    target, host = _parse_url(url)
    body = _ENCODER.encode(fields).encode()
    lines = {"Host": host, "Content-Length": str(len(body)), "Content-Type": "application/json"}
    request = httpx.Request(
        "POST", target, headers={**lines, **headers}, stream=httpx.ByteStream(body)
    )
    request.read()
    return request


@lru_cache(maxsize=256)
def _parse_url(url: str) -> tuple[httpx.URL, str]:
    """Parse the URL of a vendor's operation, and its host.

    The cache needs no invalidation, because there are few URLs and a URL never changes.
    """
    parsed = httpx.URL(url)
    return parsed, parsed.netloc.decode("ascii")


def quote_path_segment(name: str) -> str:
    """Quote a name with any characters as a single segment of a path.

    Raises:
        ProviderError: `PROVIDER_REJECTED` for `.` and `..`, which would name another path.
    """
    if name in (".", ".."):
        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED, "The name of a model or voice cannot be `.` or `..`."
        )
    return quote(name, safe="")


def build_bearer_headers(access: Access) -> dict[str, str]:
    """Build the header with the key; empty without a secret, as a private server may need none.

    Raises:
        ProviderError: `SECRET_UNRESOLVED` for a secret that no header can carry.
    """
    if not access.secret:
        return {}
    key = check_header_safe(access.secret)
    header = access.dialect.key_header
    return {header: key} if header else {"Authorization": f"Bearer {key}"}


def read_json_secret(secret: str) -> dict[str, object]:
    """Read the members of a secret that is a JSON object, by their names in lower case.

    Empty for any other secret, such as a key.

    >>> read_json_secret('{"Region": "eu-west-1"}'), read_json_secret("k3y")
    ({'region': 'eu-west-1'}, {})
    """
    if not secret.lstrip().startswith("{"):
        return {}
    try:
        members = json.loads(secret)
    except (ValueError, RecursionError):
        return {}
    return {str(name).lower(): value for name, value in members.items()}


def read_text_member(members: Mapping[str, object], *names: str) -> str:
    """Return the first text among members of these names, without spaces around; "" if none."""
    values = (members.get(name) for name in names)
    return next((value.strip() for value in values if isinstance(value, str)), "")


def make_secret_error(message: str) -> ProviderError:
    """Make the error for a secret whose content is not what the vendor needs.

    Args:
        message: what the secret must hold; it must quote nothing of the secret.
    """
    return ProviderError(ErrorCode.SECRET_UNRESOLVED, message)


def check_header_safe(secret: str) -> str:
    """Return a secret, unless no header can carry it.

    Raises:
        ProviderError: `SECRET_UNRESOLVED` for a secret that no header can carry.
    """
    # The error of httpx would quote the secret. A JSON object holds credentials of another vendor.
    if not (secret.isascii() and secret.isprintable()) or secret.lstrip().startswith("{"):
        raise ProviderError(
            ErrorCode.SECRET_UNRESOLVED,
            "The secret is not a key: it has a line break, a brace, or a character outside ASCII.",
        )
    return secret


def _classify_status(status: int) -> Classification:
    if status >= 500:
        return ErrorCode.PROVIDER_UNAVAILABLE, None
    if status < 400:  # a redirect: the key would travel with it
        return ErrorCode.PROVIDER_BAD_RESPONSE, False
    return _CLASSIFICATION_BY_STATUS.get(status, REFUSED)


def _parse_json(content: bytes) -> object:
    try:
        return read_json(content)
    except (ValueError, RecursionError):
        return None
