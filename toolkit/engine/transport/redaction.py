"""Redaction of a vendor's key in its replies: whole, in pieces and encoded (promise P16)."""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

from toolkit.plugins import Reply

REDACTED = "[key]"
CHUNK_CHARS = 8
# Shorter pieces also occur in unrelated texts.
MIN_PIECE_CHARS = 2 * CHUNK_CHARS
# Of a text that is still being written, this much of a key may be its beginning.
MIN_HELD_CHARS = 4
R = TypeVar("R", bound=Reply)
# The chunks of one form of a key, each with its offset; and all forms with theirs.
Chunks: TypeAlias = list[tuple[int, str]]
Forms: TypeAlias = list[tuple[str, Chunks]]


def redact_reply(reply: R, secret: str) -> R:
    """Remove the key of the request from a reply: from every text and from bytes that are text."""
    forms = _split_forms(secret)
    if not forms:
        return reply
    changed: dict[str, Any] = {}
    for field in fields(reply):
        value = getattr(reply, field.name)
        cleaned = _redact_value(value, forms)
        if cleaned != value:
            changed[field.name] = cleaned
    return replace(reply, **changed) if changed else reply


def redact_key(text: str, secret: str) -> str:
    """Remove a key from a text.

    >>> redact_key("it is k3y-with-sixteen-signs!", "k3y-with-sixteen-signs")
    'it is [key]!'
    """
    return _redact_text(text, _split_forms(secret))


class StreamRedactor:
    """Removes a key from a text that comes in pieces, wherever they are cut.

    What may be the beginning of a part of the key is held back until it is known, once it is
    `MIN_HELD_CHARS` long: any letter may be one, and would keep every word from its end.

    >>> redactor = StreamRedactor("k3y-with-sixteen-signs")
    >>> redactor.add("it is k3y-with-"), redactor.add("sixteen-signs! "), redactor.finish()
    ('it is ', '[key]! ', '')
    """

    def __init__(self, secret: str) -> None:
        self._forms = _split_forms(secret)
        self._tail = ""  # the end of what was shown
        self._held = ""

    def add(self, piece: str) -> str:
        """Return what can be shown now."""
        text = self._tail + self._held + piece
        overlap = max((_measure_overlap(text, form) for form, _ in self._forms), default=0)
        end = len(text) - overlap if overlap >= MIN_HELD_CHARS else len(text)
        end = max(end, len(self._tail))
        if end < len(text) and not self._redact(text).startswith(self._redact(text[:end])):
            end = len(self._tail)  # the cut would lie within what is to be removed
        return self._show(text, end)

    def finish(self) -> str:
        """Return the rest, when the text is complete."""
        text = self._tail + self._held
        return self._show(text, len(text))

    def _redact(self, text: str) -> str:
        return _redact_text(text, self._forms)

    def _show(self, text: str, end: int) -> str:
        """Show a text up to an end, but for what was shown of it, and hold the rest back."""
        redacted = self._redact(text[:end])
        pairs = enumerate(zip(self._tail, redacted, strict=False))
        start = next((at for at, (old, new) in pairs if old != new), len(self._tail))
        self._tail = text[max(0, end - MIN_HELD_CHARS + 1) : end]
        self._held = text[end:]
        return redacted[start:]


def _measure_overlap(text: str, form: str) -> int:
    """Count the characters at a text's end that occur in a form of a key, in a row."""
    count = 0
    while count < min(len(text), len(form)) and text[-count - 1 :] in form:
        count += 1
    return count


def _redact_value(value: object, forms: Forms) -> object:
    match value:
        case str():
            return _redact_text(value, forms)
        case bytes():
            try:
                text = value.decode("utf-8")
            except UnicodeDecodeError:
                return value  # an image or audio: changing it would break it
            return _redact_text(text, forms).encode() if _may_contain(value, forms) else value
        case list():
            return [_redact_value(one, forms) for one in value]
        case tuple() if type(value) is tuple:
            return tuple(_redact_value(one, forms) for one in value)
        case dict():
            return {
                _redact_value(name, forms): _redact_value(one, forms) for name, one in value.items()
            }
    return value


def _may_contain(data: bytes, forms: Forms) -> bool:
    return any(chunk.encode() in data for _, chunks in forms for _, chunk in chunks)


def _redact_text(text: str, forms: Forms) -> str:
    for form, chunks in forms:
        if len(text) >= min(MIN_PIECE_CHARS, len(form)):  # a shorter one cannot hold a piece
            text = _remove_form(text, form, chunks)
    return text


def _remove_form(text: str, form: str, chunks: Chunks) -> str:
    """Remove every piece of a key from a text: each long enough piece contains one whole chunk."""
    shortest = min(MIN_PIECE_CHARS, len(form))
    for offset, chunk in chunks:
        at = text.find(chunk)
        while at >= 0:
            start, end = _find_extent(text, at, form, offset)
            if end - start >= shortest:
                text = text[:start] + REDACTED + text[end:]
                end = start + len(REDACTED)
            else:
                end = at + 1
            at = text.find(chunk, end)
    return text


def _find_extent(text: str, at: int, form: str, offset: int) -> tuple[int, int]:
    """Return how far a text matches a key, before and after a chunk of it."""
    start, behind = at, offset
    while start > 0 and behind > 0 and text[start - 1] == form[behind - 1]:
        start, behind = start - 1, behind - 1
    end, ahead = at, offset
    while end < len(text) and ahead < len(form) and text[end] == form[ahead]:
        end, ahead = end + 1, ahead + 1
    return start, end


def _split_forms(secret: str) -> Forms:
    """Split each form of a key into consecutive chunks, each with its offset.

    Not kept between calls, though that would save a third of their time: a key is not kept.
    """
    return [
        (form, [(at, form[at : at + CHUNK_CHARS]) for at in _list_chunk_starts(form)])
        for form in _list_forms(secret)
    ]


def _list_chunk_starts(form: str) -> Iterable[int]:
    return range(0, len(form) - CHUNK_CHARS + 1, CHUNK_CHARS)


def _list_forms(secret: str) -> Iterator[str]:
    """List the forms that a key may have in a text; those of each secret part if it is JSON."""
    for part in _list_secret_parts(secret):
        if len(part) < CHUNK_CHARS:
            continue  # too short to be a key: it occurs in many texts
        seen = {
            part,
            quote(part, safe=""),
            part.encode().hex(),
            *_encode_base64_forms(part.encode()),
        }
        yield from sorted(seen, key=len, reverse=True)


def _list_secret_parts(secret: str) -> Iterable[str]:
    if not secret.lstrip().startswith("{"):
        return [secret]
    try:
        members = json.loads(secret)
    except ValueError:
        return [secret]
    if not isinstance(members, dict):
        return [secret]
    # A region or the name of a role is short, and not secret.
    return [one for one in members.values() if isinstance(one, str) and len(one) >= MIN_PIECE_CHARS]


def _encode_base64_forms(secret: bytes) -> Iterator[str]:
    """Return the part of a key's Base64 that is the same in any context, for each alignment."""
    for before in range(3):
        given = b"\0" * before + secret
        whole = given[: len(given) // 3 * 3]
        core = base64.b64encode(whole).decode()[4 if before else 0 :]
        if len(core) >= CHUNK_CHARS:
            yield core
            yield core.replace("+", "-").replace("/", "_")
