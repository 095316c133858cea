"""About how many tokens a text is, for estimates; what budgets go by is in `bounds`."""

import re
from functools import lru_cache

_PUNCTUATION = re.compile(r"[^\w\s]|_", re.ASCII)
_DIGITS = re.compile(r"[0-9]")
_SPACES = re.compile(r"\s")
# Tokens a character, the middle of what public tokenizers make of each script (benchmarks/tokens).
_WEIGHTS: tuple[tuple[re.Pattern[str], float], ...] = tuple(
    (re.compile(f"[{characters}]"), weight)
    for characters, weight in (
        (r"\u00a0-\u024f\u1e00-\u1eff", 0.55),  # Latin with marks
        (r"\u0370-\u05ff", 0.50),  # Greek, Cyrillic, Armenian, Hebrew
        (r"\u0600-\u08ff", 0.50),  # Arabic, Syriac, N'Ko
        (r"\u0900-\u0dff", 0.75),  # the scripts of India
        (r"\u0e00-\u1dff", 0.85),  # Thai, Lao, Tibetan, Georgian, Ethiopic, Khmer, Mongolian
        (r"\u2000-\u2fff", 0.80),  # punctuation, symbols
        (r"\u3000-\ud7ff\uf900-\uffff", 0.80),  # Chinese, Japanese, Korean
        (r"\U00010000-\U0010ffff", 1.80),  # emoji, historic scripts
    )
)


@lru_cache(maxsize=64)
def expect_tokens(text: str) -> float:
    """The tokens that a text is expected to be, by its scripts.

    >>> round(expect_tokens("The tide turns twice a day.")), round(expect_tokens("潮は日に二度"))
    (6, 5)
    """
    other = 0
    tokens = 0.0
    if not text.isascii():
        for pattern, weight in _WEIGHTS:
            count = len(pattern.findall(text))
            other += count
            tokens += weight * count
    digits, spaces = len(_DIGITS.findall(text)), len(_SPACES.findall(text))
    marks = len(_PUNCTUATION.findall(text)) - other
    letters = len(text) - other - digits - spaces - marks
    return tokens + 0.24 * letters + 0.55 * digits + 0.10 * spaces + 0.55 * marks
