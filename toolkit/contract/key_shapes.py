"""The shapes of keys: a value that has one is neither stored nor shown."""

import re

_CAPITALS_PATTERN = re.compile(r"[A-Z][A-Z0-9_]*")
_KEY_PREFIX = re.compile(r"(sk[-_]|rpa_|xi[-_]|AIza|AKIA|ASIA|eyJ|ghp_|gsk_|bearer\s)", re.I)
_LONG_KEY_LENGTH = 40
_LONG_KEY = re.compile(rf"[A-Za-z0-9+/=_\-]{{{_LONG_KEY_LENGTH},}}$")


def looks_like_key(text: str) -> bool:
    """Tell whether a value is more likely a secret than the name of one.

    >>> looks_like_key("MINIMAX_API_KEY")
    False
    """
    if text.startswith("arn:aws") or _CAPITALS_PATTERN.fullmatch(text):
        return False
    if _KEY_PREFIX.match(text):
        return True
    return len(text) >= _LONG_KEY_LENGTH and _LONG_KEY.search(text) is not None
