"""The shapes of keys: a value that has one is neither stored nor shown."""

import re

_CAPITALS_PATTERN = re.compile(r"[A-Z][A-Z0-9_]*")
_KEY_SHAPES = re.compile(
    r"^(sk[-_]|rpa_|xi[-_]|AIza|AKIA|ASIA|eyJ|ghp_|gsk_|bearer\s)|[A-Za-z0-9+/=_\-]{40,}$", re.I
)


def looks_like_key(text: str) -> bool:
    """Tell whether a value is more likely a secret than the name of one.

    >>> looks_like_key("MINIMAX_API_KEY")
    False
    """
    if text.startswith("arn:aws") or _CAPITALS_PATTERN.fullmatch(text):
        return False
    return _KEY_SHAPES.search(text) is not None
