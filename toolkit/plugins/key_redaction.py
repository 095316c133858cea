"""Redaction of a key in messages, and the forms in which a vendor may echo it."""

import base64
import json
import re
import string
from collections.abc import Iterable, Iterator
from typing import TypeAlias
from urllib.parse import quote

# A tuple, so that no secret is taken for its forms.
KeyForms: TypeAlias = tuple[str, ...]

REDACTED = "[key]"
CHUNK_CHARS = 8
# Shorter pieces also occur in unrelated texts of answers.
MIN_PIECE_CHARS = 2 * CHUNK_CHARS
# The rest of a word that contains a piece of a key is likely more of the key.
_WORD_CHARACTERS = f"{string.ascii_letters}{string.digits}_+-"
_WORD_REST = re.compile(r"[\w*+/=-]*")


def redact_message(text: str, forms: KeyForms) -> str:
    """Replace every piece of a key in a message by `[key]`, and the word that contains it.

    Any `CHUNK_CHARS` characters in a row count as a piece: a message loses little if an unrelated
    word is also removed.

    Args:
        text: the message.
        forms: the forms of the key, as `list_key_forms` lists them.

    >>> redact_message("it ends in xteen-signs!", list_key_forms("k3y-with-sixteen-signs"))
    'it ends in [key]!'
    """
    pieces = "\0".join(forms)
    parts: list[str] = []
    start = at = 0
    last = len(text) - CHUNK_CHARS
    while at <= last:
        if text[at : at + CHUNK_CHARS] not in pieces:
            at += 1
            continue
        parts += [text[start:at].rstrip(_WORD_CHARACTERS), REDACTED]
        while at <= last and text[at : at + CHUNK_CHARS] in pieces:
            at += 1
        match = _WORD_REST.match(text, at + CHUNK_CHARS - 1)
        start = at = match.end() if match else at
    return "".join((*parts, text[start:])) if parts else text


def list_key_forms(secret: str) -> KeyForms:
    """List the forms that a key, or each secret part of a JSON key, may have in a text.

    The longest form of a part comes first. A part of fewer than `CHUNK_CHARS` characters has none.
    """
    all_forms: list[str] = []
    for part in _list_secret_parts(secret):
        if len(part) < CHUNK_CHARS:
            continue  # too short to be a key: it occurs in many texts
        forms = {
            part,
            part[::-1],
            quote(part, safe=""),
            part.encode().hex(),
            *_encode_base64_forms(part.encode()),
        }
        all_forms += sorted(forms, key=len, reverse=True)
    return tuple(all_forms)


def _list_secret_parts(secret: str) -> Iterable[str]:
    if not secret.lstrip().startswith("{"):
        return [secret]
    try:
        members = json.loads(secret)
    except ValueError:
        return [secret]
    if not isinstance(members, dict):
        return [secret]
    # Regions and role names are short and not secret.
    return [
        member
        for member in members.values()
        if isinstance(member, str) and len(member) >= MIN_PIECE_CHARS
    ]


def _encode_base64_forms(secret: bytes) -> Iterator[str]:
    """Yield the part of a key's Base64 that is the same in any context, for each alignment.

    Each part comes in both alphabets of Base64, unless it is shorter than `CHUNK_CHARS`.
    """
    for offset in range(3):
        content = b"\0" * offset + secret
        blocks = content[: len(content) // 3 * 3]
        core = base64.b64encode(blocks).decode()[4 if offset else 0 :]
        if len(core) >= CHUNK_CHARS:
            yield core
            yield core.replace("+", "-").replace("/", "_")
