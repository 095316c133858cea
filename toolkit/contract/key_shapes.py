"""Tests of what looks like a key, which is not stored or shown, and of what cannot be a key."""

import os
import re

_CAPITALS_PATTERN = re.compile(r"[A-Z][A-Z0-9_]*")
_KEY_PREFIX = re.compile(r"(sk[-_]|rpa_|xi[-_]|AIza|AKIA|ASIA|eyJ|ghp_|gsk_|bearer\s)", re.I)
_LONG_KEY_LENGTH = 40
_LONG_KEY = re.compile(rf"[A-Za-z0-9+/=_\-]{{{_LONG_KEY_LENGTH},}}$")


def looks_like_key(text: str) -> bool:
    """Check whether a value is more likely a secret than the name of a secret.

    >>> looks_like_key("MINIMAX_API_KEY")
    False
    """
    if text.startswith("arn:aws") or _CAPITALS_PATTERN.fullmatch(text):
        return False
    if _KEY_PREFIX.match(text):
        return True
    return len(text) >= _LONG_KEY_LENGTH and _LONG_KEY.search(text) is not None


_PATH_START = re.compile(r"(~?/|\.{1,2}/|[A-Za-z]:[\\/])")
_PATH_LIST = re.compile(r":[~.]{0,2}/")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LOCALE = re.compile(r"([a-z]{2,3}(_[A-Z]{2})?|C|POSIX)\.[Uu][Tt][Ff]-?8|[a-z]{2,3}_[A-Z]{2}")


def find_key_fault(value: str) -> str | None:
    """Return why a value cannot be a key, or None if it can be one.

    A pointer may name any variable, and a value that is no key must not be sent to a vendor. A JSON
    object is accepted, because some vendors take credentials in that form.

    >>> find_key_fault("/usr/local/bin:/usr/bin")
    'is a path'
    >>> find_key_fault("sk-proj-abc") is None
    True
    """
    if value.lstrip().startswith("{"):
        return None
    if not value.isascii() or not value.isprintable():
        return "has a line break, or a letter outside ASCII"
    if any(letter.isspace() for letter in value):
        return "has a space in it"
    if _URL.search(value):
        return "is a URL"
    # A key by Base64 may begin with a slash, but then it is no list and no file has its name.
    if _PATH_LIST.search(value) or (
        _PATH_START.match(value) and (len(value) < _LONG_KEY_LENGTH or os.path.lexists(value))
    ):
        return "is a path"
    if _LOCALE.fullmatch(value):
        return "is the name of a locale"
    return None
