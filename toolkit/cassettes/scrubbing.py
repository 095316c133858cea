"""Scrubbing of exchanges: removes secrets, and the ids of single calls."""

import json
import re
from base64 import b64encode
from urllib.parse import quote, quote_plus

import httpx

from toolkit.plugins import REPLAY_PLACEHOLDER

PLACEHOLDER = REPLAY_PLACEHOLDER
SCRUBBED = "scrubbed"
# Shorter secrets, such as the `none` for a self-hosted server, also occur in other texts.
MIN_SECRET_LENGTH = 8

# Kept: the body's type, the billed units, and the target of a redirect.
_KEPT_HEADERS = re.compile(
    r"content-type|content-language|location|.*(cost|usage|billed|credit|service-tier).*"
)
_RATE_LIMIT_HEADERS = re.compile(r".*(limit|remaining|reset).*")
# These headers differ from call to call and identify the caller.
_PER_CALL_HEADERS = re.compile(
    r"(.*-)?(request-?id|trace-?id|correlation-?id)|cf-ray|set-cookie|date|x-amz-cf-id"
)
_IDS_IN_JSON = re.compile(
    rb'("(?:x[_-])?(?:amzn[_-])?(?:request|trace|response)[_-]?id"\s*:\s*)'
    rb'(?:"(?:[^"\\]|\\.)*"|-?\d+)',
    re.IGNORECASE,
)


class Scrubber:
    """A scrubber that replaces the secrets it knows, in all their spellings.

    >>> scrubber = Scrubber()
    >>> scrubber.add_secret("sk-1234567890")
    >>> scrubber.scrub_text("?key=sk-1234567890")
    '?key=replayed'
    """

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._spellings: list[bytes] = []

    def add_secret(self, secret: str) -> None:
        """Scrub a secret from now on; if it is a JSON object, scrub each of its texts."""
        if secret in self._secrets:
            return
        self._secrets.add(secret)
        spellings = {form for part in _split_secret(secret) for form in _list_spellings(part)}
        # The longest first, because a spelling may be the beginning of another.
        self._spellings = sorted({*self._spellings, *spellings}, key=lambda s: (-len(s), s))

    def scrub_bytes(self, content: bytes) -> bytes:
        """Replace every secret in the content by a placeholder."""
        for spelling in self._spellings:
            if spelling in content:
                content = content.replace(spelling, PLACEHOLDER.encode())
        return content

    def scrub_text(self, text: str) -> str:
        """Replace every secret in the text by a placeholder."""
        return self.scrub_bytes(text.encode("utf-8", "surrogatepass")).decode(
            "utf-8", "surrogatepass"
        )

    def scrub_headers(self, headers: httpx.Headers) -> dict[str, str]:
        """Return the headers to record, with a placeholder for headers that differ by call."""
        recorded_headers: dict[str, str] = {}
        for name, value in sorted(headers.items()):
            if _PER_CALL_HEADERS.fullmatch(name):
                recorded_headers[name] = SCRUBBED
            elif _KEPT_HEADERS.fullmatch(name) and not _RATE_LIMIT_HEADERS.fullmatch(name):
                recorded_headers[name] = self.scrub_text(value)
        return recorded_headers

    def scrub_body(self, content: bytes, *, is_json: bool) -> bytes:
        """Remove the secrets from an answer's body; the rest of it stays byte for byte.

        Args:
            content: body as the vendor sent it, decoded.
            is_json: whether members such as `request_id` are scrubbed, too. Members that later
                requests refer to, such as `id` and `voice_id`, stay.
        """
        content = self.scrub_bytes(content)
        return _IDS_IN_JSON.sub(rb'\1"%s"' % SCRUBBED.encode(), content) if is_json else content


def _split_secret(secret: str) -> list[str]:
    """Return a secret, and its texts if it is a JSON object, except those of a region."""
    parts = [secret]
    try:
        value = json.loads(secret)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        # A region is no secret, and is part of the host's name.
        members = [v for name, v in value.items() if "region" not in str(name).lower()]
        parts += [text for text in members if isinstance(text, str)]
    return [text for part in parts for text in {part, part.strip()}]


def _list_spellings(secret: str) -> list[bytes]:
    """List the spellings of a secret in URLs, JSON and headers; empty if it is too short."""
    if len(secret) < MIN_SECRET_LENGTH:
        return []
    raw = secret.encode("utf-8", "surrogatepass")
    escaped = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    texts = {*escaped, *(text.replace("/", "\\/") for text in escaped)}
    coded = [quote(raw, safe=""), quote(raw), quote_plus(raw), b64encode(raw).decode().rstrip("=")]
    coded += [text.lower() for text in coded[:3] if "%" in text]
    return [raw, *(text.encode("utf-8", "surrogatepass") for text in {*texts, *coded})]
