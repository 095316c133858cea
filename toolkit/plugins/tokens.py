"""Estimates of the tokens of a text; budgets reserve by `bounds` instead."""

import re
from functools import lru_cache

_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_DIGITS = re.compile(r"[0-9]")
_SPACES = re.compile(r"\s")
_MARKS = _PUNCTUATION, _DIGITS, _SPACES
# The ASCII characters that each pattern matches.
_ASCII_MARKS = tuple(
    bytes(code for code in range(128) if pattern.match(chr(code))) for pattern in _MARKS
)
# Tokens per character: about the median of ten public tokenizers for each script
# (`python -m benchmarks.budget_truth` prints both).
_WEIGHTS: tuple[tuple[re.Pattern[str], float], ...] = tuple(
    (re.compile(f"[{characters}]"), weight)
    for characters, weight in (
        ("\u0080-\u024f\u1e00-\u1eff", 1.2),  # Latin with marks
        ("\u0250-\u036f", 1.9),  # marks that stand alone
        ("\u0370-\u03ff\u1f00-\u1fff", 0.8),  # Greek
        ("\u0400-\u052f", 0.45),  # Cyrillic
        ("\u0530-\u058f", 1.0),  # Armenian
        ("\u0590-\u08ff", 0.75),  # Hebrew, Arabic and their like
        ("\u0900-\u0dff", 0.95),  # the scripts of India
        ("\u0e00-\u0eff", 0.8),  # Thai, Lao
        ("\u0f00-\u0fff", 1.5),  # Tibetan
        ("\u1000-\u10ff", 1.05),  # Burmese, Georgian
        ("\u1200-\u177f", 2.3),  # Ethiopic, Cherokee
        ("\u1780-\u17ff", 1.3),  # Khmer
        ("\u1800-\u1dff", 2.6),  # Mongolian and others
        ("\u2000-\u2fff", 1.0),  # punctuation, symbols
        ("\u3000-\ud7ff\uf900-\ufaff", 1.05),  # Chinese, Japanese, Korean
        ("\ud800-\uf8ff\ufb00-\uffff", 2.0),  # of no script, or spelled in an odd way
        ("\U00010000-\U0010ffff", 2.6),  # emoji, historic scripts
    )
)


# A longer text is sampled at equal distances.
SAMPLE_CHARACTERS = 8_000


@lru_cache(maxsize=64)
def estimate_tokens(text: str) -> float:
    """Estimate the tokens of a text by its writing systems; a long text by a sample of it.

    >>> english, japanese = "The tide turns twice a day.", "潮は日に二度"
    >>> round(estimate_tokens(english)), round(estimate_tokens(japanese))
    (7, 6)
    """
    if len(text) > SAMPLE_CHARACTERS:
        sample = text[:: len(text) // SAMPLE_CHARACTERS + 1]
        return estimate_tokens(sample) * len(text) / len(sample)
    script_letters = 0
    tokens = 0.0
    if not text.isascii():
        for pattern, weight in _WEIGHTS:
            count = len(pattern.findall(text))
            script_letters += count
            tokens += weight * count
    marks, digits, spaces = _count_marks(text)
    letters = len(text) - script_letters - digits - spaces - marks
    return tokens + 0.28 * letters + 0.55 * digits + 0.05 * spaces + 0.6 * marks


def _count_marks(text: str) -> tuple[int, ...]:
    """Count the ASCII punctuation, the ASCII digits and the white space of a text, in this order.

    >>> _count_marks("a, 12"), _count_marks("é, 12")
    ((1, 2, 1), (1, 2, 1))
    """
    if not text.isascii():
        return tuple(len(pattern.findall(text)) for pattern in _MARKS)
    plain = text.encode()
    return tuple(len(plain) - len(plain.translate(None, marks)) for marks in _ASCII_MARKS)
