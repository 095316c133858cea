"""Defects in the signs of a text: garbled, lost or invisible signs, and words of two scripts."""

import re
import unicodedata

# Letters of Windows-1252 and Latin-1 that bytes of UTF-8 become when they are read in these.
_MISREAD = re.compile(
    r"[\u0080-\u00ff\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u2026"
    r"\u2030\u2039\u203a\u20ac\u2122]{2,}"
)
_OTHER_MISREAD = re.compile(r"锟斤拷|烫烫烫|屯屯屯|縺|繧|繝")
_LOST_LETTER = re.compile(r"(?<=[^\W\d_])\?(?=[^\W\d_])")
_MIXED = re.compile(r"\b(?=\w*[a-zA-Z])(?=\w*[\u0370-\u03ff\u0400-\u052f])[^\W\d_]{2,40}\b")
_HIDDEN = re.compile("[\u00ad\u200b\u2028\u2029\u2060-\u2064\ufeff]")
_HARMFUL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202d\u202e\U000e0020-\U000e007f]")
_FEW_HIDDEN = 4


def find_garbled(text: str) -> list[str]:
    """Find the runs of letters that were read in another encoding than they were written in.

    >>> find_garbled("Der WÃ¼rfel â€“ und Stéphane»")
    ['Ã¼', 'â€“']
    """
    runs = [match.group() for match in _MISREAD.finditer(text)]
    return [run for run in runs if _is_misread(run)] + _OTHER_MISREAD.findall(text)


def _is_misread(run: str) -> bool:
    """Return whether a run of letters is UTF-8 that was read as Windows-1252 or Latin-1."""
    for encoding in ("cp1252", "latin-1"):
        try:
            repaired = run.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
        if all(char.isalpha() or unicodedata.category(char)[0] in "PSZ" for char in repaired):
            return True
    return False


def count_lost_letters(text: str) -> int:
    """Count the question marks that stand for a letter inside of a word.

    >>> count_lost_letters("Gr??e aus M?nchen?")
    1
    """
    return len(_LOST_LETTER.findall(text))


def find_mixed_words(text: str) -> list[str]:
    """Find words that mix Latin letters with Greek or Cyrillic letters that look like them."""
    return [] if text.isascii() else _MIXED.findall(text)


def find_hidden_signs(text: str, max_share: float) -> list[str]:
    """Find invisible signs: harmful signs always, other signs if they are many.

    Args:
        text: the text; a byte-order mark at its start is ignored.
        max_share: maximum share of other invisible signs, from 0 to 1.
    """
    hidden = _HIDDEN.findall(text.removeprefix("\ufeff"))
    is_many = len(hidden) > max(_FEW_HIDDEN, len(text) * max_share)
    return [*_HARMFUL.findall(text), *(hidden if is_many else [])]
