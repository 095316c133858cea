"""The last line of defence: a text that looks like a secret is never written to a log line.

No line with a known secret is logged; this is for secrets that were overlooked.
"""

import re

from toolkit.contract.ids import Prefix
from toolkit.contract.key_shapes import looks_like_key

REDACTED = "[redacted]"

_BEARER = re.compile(r"\b(bearer|basic)\s+[^\s\"',;]+", re.I)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_WORD = re.compile(r"[^\s\"'`,;:()\[\]{}<>=&?|]+")
# An id that the service made. None of these prefixes is a key's.
_OWN_ID = re.compile(rf"(?:{'|'.join(Prefix)})_[0-7][0-9a-hjkmnp-tv-z]{{25}}")
# A word that is no address: most values of our own lines, such as states and paths.
_SINGLE_WORD = re.compile(r"[A-Za-z0-9_./-]+")
_MAX_CLEAN_TEXTS, _MAX_CLEAN_CHARS = 1_000, 64


# Short texts without anything to redact, because lines repeat the same few. None of them is a
# secret, so they may stay in memory.
_clean_texts: set[str] = set()


def redact_text(text: str) -> str:
    """Redact likely keys and addresses; return one line of printable characters.

    >>> redact_text("the key sk-abc123 of ada@example.org was refused")
    'the key [redacted] of [redacted] was refused'
    """
    if text in _clean_texts or _OWN_ID.fullmatch(text):
        return text
    redacted = _redact_anew(text)
    if redacted == text and len(text) <= _MAX_CLEAN_CHARS:
        if len(_clean_texts) >= _MAX_CLEAN_TEXTS:
            _clean_texts.clear()
        _clean_texts.add(text)
    return redacted


def _redact_anew(text: str) -> str:
    if _SINGLE_WORD.fullmatch(text):
        return REDACTED if looks_like_key(text) else text
    text = _EMAIL.sub(REDACTED, _BEARER.sub(REDACTED, text))
    text = _WORD.sub(_redact_word, text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _redact_word(word: re.Match[str]) -> str:
    return REDACTED if looks_like_key(word[0]) else word[0]
