"""Redaction of a vendor's key in its replies: whole, in pieces and encoded (promise P16)."""

import re
from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from toolkit.plugins.key_redaction import CHUNK_CHARS, MIN_PIECE_CHARS, REDACTED, KeyForms

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Of a text that is still being written, this much of a key may be its beginning.
MIN_HELD_CHARS = 4
# An escape of JSON. Escapes of printable ASCII and of the slash have a group.
_WHOLE_ESCAPES = re.compile(r"(?:[^\\]|\\u[0-9A-Fa-f]{4}|\\[^u])*", re.S)
_ESCAPE = re.compile(r"\\(?:u00([2-7][0-9A-Fa-f])|(/)|.)", re.S)
D = TypeVar("D", bound="DataclassInstance")
# The chunks of one form of a key, each with its offset; and all forms with theirs, each with the
# length of its shortest piece.
Chunks: TypeAlias = list[tuple[int, str]]
Forms: TypeAlias = list[tuple[int, str, Chunks]]


def redact_reply(reply: D, key_forms: KeyForms) -> D:
    """Return a reply, or a piece of a streamed reply, with the key replaced in all its texts.

    Args:
        reply: the reply or the piece.
        key_forms: the forms of the key, as `list_key_forms` lists them.
    """
    forms = _split_forms(key_forms)
    return _redact_fields(reply, forms) if forms else reply


class StreamRedactor:
    """Removes a key from a text that comes in pieces, even if a cut splits the key.

    Text that may be the beginning of a part of the key is held back until it is known, once it has
    `MIN_HELD_CHARS`: a single letter may be a beginning, and would hold back the end of every word.

    >>> from toolkit.plugins.key_redaction import list_key_forms
    >>> redactor = StreamRedactor(list_key_forms("k3y-with-sixteen-signs"))
    >>> redactor.add("it is k3y-with-"), redactor.add("sixteen-signs! "), redactor.finish()
    ('it is ', '[key]! ', '')
    """

    def __init__(self, key_forms: KeyForms, *, is_json: bool = False) -> None:
        self._forms = _split_forms(key_forms)
        self._is_json = is_json
        self._cut = ""  # the beginning of an escape of JSON
        self._tail = ""  # the end of the text that was shown
        self._held = ""

    def add(self, piece: str) -> str:
        """Add a piece of the text; return the part without the key that can be shown now."""
        text = self._tail + self._held + (self._spell(piece) if self._is_json else piece)
        overlap = max((_measure_overlap(text, form) for _, form, _ in self._forms), default=0)
        end = len(text) - overlap if overlap >= MIN_HELD_CHARS else len(text)
        end = max(end, len(self._tail))
        if end < len(text) and not self._redact(text).startswith(self._redact(text[:end])):
            end = len(self._tail)  # the cut would lie within text to remove
        return self._show(text, end)

    def finish(self) -> str:
        """Return the text that was held back, without the key, when the text is complete."""
        text = self._tail + self._held + self._cut
        return self._show(text, len(text))

    def _spell(self, piece: str) -> str:
        """Return a piece of JSON without the escapes that it does not need: they could hide a key.

        JSON that is spelled so means the same.
        """
        text = self._cut + piece
        whole = _WHOLE_ESCAPES.match(text)
        end = 0 if whole is None else whole.end()
        self._cut = text[end:]
        return _ESCAPE.sub(_spell_plainly, text[:end])

    def _redact(self, text: str) -> str:
        return _redact_text(text, self._forms)

    def _show(self, text: str, end: int) -> str:
        """Return a text up to an end, redacted, without the part shown before; hold the rest back.

        The text begins with the tail of the text that was shown before.
        """
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
    for name in record.__dataclass_fields__:  # `fields` takes longer than the rest
        value = getattr(record, name)
        redacted_value = _redact_value(value, forms)
        if redacted_value != value:
            changes[name] = redacted_value
    return replace(record, **changes) if changes else record


def _redact_value(value: object, forms: Forms) -> object:
    if value is None or isinstance(value, str):  # most members are
        return _redact_spelled(value, forms) if value else value
    if is_dataclass(value) and not isinstance(value, type):
        return _redact_fields(value, forms)
    match value:
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
    """Return the character of an escape, or the escape itself if JSON needs it."""
    character = chr(int(escape[1], 16)) if escape[1] else escape[2]
    return character if character and character not in '"\\\x7f' else escape[0]


def _redact_text(text: str, forms: Forms) -> str:
    if len(text) < CHUNK_CHARS:  # no piece is so short
        return text
    for shortest, form, chunks in forms:
        if len(text) >= shortest:
            text = _remove_form(text, shortest, form, chunks)
    return text


def _remove_form(text: str, shortest: int, form: str, chunks: Chunks) -> str:
    """Replace each piece of a key in a text: any piece that is long enough has a whole chunk."""
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
    """Return the start and the end of the text that matches a key, around a chunk of the key."""
    start, behind = at, offset
    while start > 0 and behind > 0 and text[start - 1] == form[behind - 1]:
        start, behind = start - 1, behind - 1
    end, ahead = at, offset
    while end < len(text) and ahead < len(form) and text[end] == form[ahead]:
        end, ahead = end + 1, ahead + 1
    return start, end


def _split_forms(key_forms: KeyForms) -> Forms:
    """Split each form of a key into consecutive chunks, each with its offset."""
    forms: Forms = []
    for form in key_forms:
        starts = range(0, len(form) - CHUNK_CHARS + 1, CHUNK_CHARS)
        chunks = [(at, form[at : at + CHUNK_CHARS]) for at in starts]
        forms.append((min(MIN_PIECE_CHARS, len(form)), form, chunks))
    return forms
