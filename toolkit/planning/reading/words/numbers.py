"""Numbers of an objective, in digits and in words."""

import re
from collections.abc import Sequence

from .lexicon import Lexicon
from .tokens import WITHOUT_SPACES, Token

IDEOGRAPHS = {character: value for value, character in enumerate("〇一二三四五六七八九")} | {
    "零": 0, "两": 2, "兩": 2, "十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000,
}  # fmt: skip
POINT_FOR_THOUSANDS = frozenset({"de", "es", "it", "pt"})
GROUPED_BY_COMMA = re.compile(r"\d{1,3}(?:[,٬]\d{3})+(?:\.\d+)?$")
GROUPED_BY_POINT = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?$")


def read_number(tokens: Sequence[Token], i: int, lexicon: Lexicon) -> tuple[float, int] | None:
    """Read the number that starts at a token.

    Words are added and multiplied as they are said: "two hundred and fifty", "vierhundert".

    Args:
        tokens: of the objective.
        i: the index of the first token.
        lexicon: of its language.

    Returns:
        The number and how many tokens it takes, or none.
    """
    if tokens[i].is_number:
        value = parse_digits(tokens[i].key, lexicon.code)
        if value is None:
            return None
        factor, length = read_words(tokens, i + 1, lexicon)
        is_factor = length == 1 and factor in {1000, 10_000, 1_000_000}
        return (value * factor, 2) if is_factor else (value, 1)
    if lexicon.code in WITHOUT_SPACES and tokens[i].key in IDEOGRAPHS:
        return read_ideographs(tokens, i)
    value, length = read_words(tokens, i, lexicon)
    return (value, length) if length else None


def parse_digits(key: str, code: str) -> float | None:
    """Parse a number in digits, with the marks of its language; none of a ratio such as 16:9."""
    if GROUPED_BY_COMMA.match(key):
        key = key.replace(",", "").replace("٬", "")
    elif code in POINT_FOR_THOUSANDS and GROUPED_BY_POINT.match(key):
        key = key.replace(".", "")
    try:
        return float(key.replace(",", ".").replace("٫", "."))
    except ValueError:
        return None


def read_words(tokens: Sequence[Token], i: int, lexicon: Lexicon) -> tuple[float, int]:
    """Add up the number words that start at a token; of length 0 where none does."""
    total = part = 0.0
    least = float("inf")  # what the next word has to be below, to be added
    at = end = i
    while at < len(tokens):
        found = find_number(tokens, at, lexicon)
        if found is None:
            joins = end > i and at == end and is_and(tokens[at], lexicon) and least > 1
            if not joins:
                break
            at += 1
            continue
        value, length = found
        if value >= 100 and part and value > part:
            part *= value
        elif value < least:
            part += value
        else:
            break
        least = 100 if part >= 100 and value >= 100 else 10 if value >= 20 else 0
        if value >= 1000:
            total, part, least = total + part, 0.0, 1000
        at = end = at + length
    return total + part, end - i


def find_number(tokens: Sequence[Token], i: int, lexicon: Lexicon) -> tuple[float, int] | None:
    """The value and length of the longest number word that starts at a token."""
    for entry in lexicon.find_entries(tokens, i):
        if entry.category == "number":
            return float(entry.value), entry.length
    return None


def is_and(token: Token, lexicon: Lexicon) -> bool:
    """Tell whether a word joins the parts of a number: "two hundred and ten"."""
    return any(category == "join.and" for category, _ in lexicon.meanings.get(token.key, ()))


def read_ideographs(tokens: Sequence[Token], i: int) -> tuple[float, int]:
    """Read a number in Chinese characters."""
    total = part = digit = 0
    end = i
    while end < len(tokens) and (value := IDEOGRAPHS.get(tokens[end].key)) is not None:
        if value == 10_000:
            total, part, digit = (total + part + digit or 1) * value, 0, 0
        elif value >= 10:
            part, digit = part + (digit or 1) * value, 0
        else:
            digit = (
                digit * 10 + value
                if end > i and tokens[end - 1].key in "一二三四五六七八九"
                else value
            )
        end += 1
    return float(total + part + digit), end - i
