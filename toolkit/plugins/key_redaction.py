"""Redaction of a key in messages, and the forms in which a vendor may echo it."""

import base64
import json
import re
import string
from collections.abc import Iterable, Iterator
from urllib.parse import quote

REDACTED = "[key]"
CHUNK_CHARS = 8
# Shorter pieces also occur in unrelated texts of answers.
MIN_PIECE_CHARS = 2 * CHUNK_CHARS
# The rest of a word that contains a piece of a key is likely more of the key.
_WORD_CHARACTERS = f"{string.ascii_letters}{string.digits}_+-"
_WORD_REST = re.compile(r"[\w*+/=-]*")


def redact_message(text: str, secret: str) -> str:
    """Remove every piece of a key from a message, with the rest of the word that contains it.

    Any `CHUNK_CHARS` characters in a row count as a piece: a message loses little if an unrelated
    word is also removed.

    >>> redact_message("it ends in xteen-signs!", "k3y-with-sixteen-signs")
    'it ends in [key]!'
    """
    pieces = {
        form[at : at + CHUNK_CHARS]
        for form in list_key_forms(secret)
        for at in range(len(form) - CHUNK_CHARS + 1)
    }
    parts: list[str] = []
    start = at = 0
    while at <= len(text) - CHUNK_CHARS:
        if text[at : at + CHUNK_CHARS] not in pieces:
            at += 1
            continue
        parts += [text[start:at].rstrip(_WORD_CHARACTERS), REDACTED]
        while text[at : at + CHUNK_CHARS] in pieces:
            at += 1
        match = _WORD_REST.match(text, at + CHUNK_CHARS - 1)
        start = at = match.end() if match else at
    return "".join((*parts, text[start:]))


def list_key_forms(secret: str) -> Iterator[str]:
    """List the forms that a key, or each secret part of a JSON key, may have in a text."""
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
        yield from sorted(forms, key=len, reverse=True)


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
    """Return the part of a key's Base64 that is the same in any context, for each alignment."""
    for offset in range(3):
        content = b"\0" * offset + secret
        blocks = content[: len(content) // 3 * 3]
        core = base64.b64encode(blocks).decode()[4 if offset else 0 :]
        if len(core) >= CHUNK_CHARS:
            yield core
            yield core.replace("+", "-").replace("/", "_")
