"""Redaction of a vendor's key in its replies: whole, in pieces and encoded (promise P16)."""

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from toolkit.plugins import Reply
from toolkit.plugins.key_redaction import (
    CHUNK_CHARS,
    MIN_PIECE_CHARS,
    REDACTED,
    list_key_forms,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Of a text that is still being written, this much of a key may be its beginning.
MIN_HELD_CHARS = 4
# An escape of JSON. Escapes of printable ASCII and of the slash have a group.
_ESCAPE = re.compile(r"\\(?:u00([2-7][0-9A-Fa-f])|(/)|.)", re.S)
R = TypeVar("R", bound=Reply)
D = TypeVar("D", bound="DataclassInstance")
# The chunks of one form of a key, each with its offset; and all forms with theirs.
Chunks: TypeAlias = list[tuple[int, str]]
Forms: TypeAlias = list[tuple[str, Chunks]]


def redact_reply(reply: R, secret: str) -> R:
    """Remove the key of the request from a reply: from every text and from bytes that are text."""
    forms = _split_forms(secret)
    return _redact_fields(reply, forms) if forms else reply


class StreamRedactor:
    """Removes a key from a text that comes in pieces, even if a cut splits the key.

    Text that may be the beginning of a part of the key is held back until it is known, once it has
    `MIN_HELD_CHARS`: a single letter may be a beginning, and would hold back the end of every word.

    >>> redactor = StreamRedactor("k3y-with-sixteen-signs")
    >>> redactor.add("it is k3y-with-"), redactor.add("sixteen-signs! "), redactor.finish()
    ('it is ', '[key]! ', '')
    """

    def __init__(self, secret: str) -> None:
        self._forms = _split_forms(secret)
        self._tail = ""  # the end of the text that was shown
        self._held = ""

    def add(self, piece: str) -> str:
        """Return the text that can be shown now."""
        text = self._tail + self._held + piece
        overlap = max((_measure_overlap(text, form) for form, _ in self._forms), default=0)
        end = len(text) - overlap if overlap >= MIN_HELD_CHARS else len(text)
        end = max(end, len(self._tail))
        if end < len(text) and not self._redact(text).startswith(self._redact(text[:end])):
            end = len(self._tail)  # the cut would lie within text to remove
        return self._show(text, end)

    def finish(self) -> str:
        """Return the rest, when the text is complete."""
        text = self._tail + self._held
        return self._show(text, len(text))

    def _redact(self, text: str) -> str:
        return _redact_text(text, self._forms)

    def _show(self, text: str, end: int) -> str:
        """Show a text up to an end, except for its part already shown; hold the rest back."""
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


def _redact_fields(record: D, forms: Forms) -> D:
    changes: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        redacted_value = _redact_value(value, forms)
        if redacted_value != value:
            changes[field.name] = redacted_value
    return replace(record, **changes) if changes else record


def _redact_value(value: object, forms: Forms) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return _redact_fields(value, forms)
    match value:
        case str():
            return _redact_spelled(value, forms)
        case bytes():
            try:
                text = value.decode("utf-8")
            except UnicodeDecodeError:
                return value  # an image or audio: changing it would break it
            return _redact_spelled(text, forms).encode()
        case list():
            return [_redact_value(item, forms) for item in value]
        case tuple() if type(value) is tuple:
            return tuple(_redact_value(item, forms) for item in value)
        case dict():
            return {
                _redact_value(name, forms): _redact_value(member, forms)
                for name, member in value.items()
            }
    return value


def _redact_spelled(text: str, forms: Forms) -> str:
    """Remove a key from a text, also if it is JSON that spells the key by escapes.

    Such JSON is first written without the escapes that it does not need, which means the same.
    """
    if "\\" in text:
        spelled = _ESCAPE.sub(_spell_plainly, text)
        redacted = _redact_text(spelled, forms)
        if redacted != spelled:
            return redacted
    return _redact_text(text, forms)


def _spell_plainly(escape: re.Match[str]) -> str:
    """Return the character of an escape, unless JSON needs the escape."""
    character = chr(int(escape[1], 16)) if escape[1] else escape[2]
    return character if character and character not in '"\\\x7f' else escape[0]


def _redact_text(text: str, forms: Forms) -> str:
    for form, chunks in forms:
        if len(text) >= min(MIN_PIECE_CHARS, len(form)):  # a shorter text cannot hold a piece
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
        for form in list_key_forms(secret)
    ]


def _list_chunk_starts(form: str) -> Iterable[int]:
    return range(0, len(form) - CHUNK_CHARS + 1, CHUNK_CHARS)
