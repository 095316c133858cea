"""Phrases of nine languages that checks look for, from the files in `words`.

A file has a key for each list, with entries as in the lexicons of `toolkit.planning.reading`:
`(can't|cannot) help` stands for two.
"""

import re
import tomllib
from functools import cache
from importlib import resources

from toolkit.planning.reading.words.lexicon import CODES, expand_entries
from toolkit.planning.reading.words.tokens import WITHOUT_SPACES, fold_text

_COMMAS = str.maketrans(dict.fromkeys(",;،、", ""))


def fold_phrase(text: str) -> str:
    """Fold a text as phrases are compared: without case, accents and commas.

    >>> fold_phrase("I’m sorry, but I can’t")
    "i'm sorry but i can't"
    """
    return fold_text(text).translate(_COMMAS)


@cache
def load_words(code: str) -> dict[str, tuple[str, ...]]:
    """Load the lists of a language, folded."""
    source = resources.files(__package__) / "words" / f"{code}.toml"
    data: dict[str, str] = tomllib.loads(source.read_text(encoding="utf-8"))
    return {
        name: tuple(entry for entry in map(fold_phrase, expand_entries(text)) if entry)
        for name, text in data.items()
    }


@cache
def compile_phrases(name: str, code: str | None = None) -> re.Pattern[str]:
    """Compile the phrases of a list, of one language or of all of them."""
    spaced: set[str] = set()
    dense: set[str] = set()
    for one in CODES if code is None else (code,):
        for entry in load_words(one).get(name, ()):
            (dense if one in WITHOUT_SPACES and not entry.isascii() else spaced).add(entry)
    return re.compile("|".join(_join_patterns(spaced, dense)) or r"(?!)")


def _join_patterns(spaced: set[str], dense: set[str]) -> list[str]:
    found = []
    if spaced:
        found.append(rf"(?<!\w)(?:{_join(spaced)})(?!\w)")
    if dense:
        found.append(_join(dense))
    return found


def _join(entries: set[str]) -> str:
    return "|".join(re.escape(entry) for entry in sorted(entries, key=lambda e: (-len(e), e)))


def find_phrase(name: str, folded: str) -> str | None:
    """Find the first phrase of a list in a folded text, in any language."""
    match = compile_phrases(name).search(folded)
    return match.group() if match else None


@cache
def load_function_words() -> dict[str, dict[str, float]]:
    """Load the function words of all languages, each with what it says for which of them.

    A word that several languages have says less for each.
    """
    source = resources.files(__package__) / "words" / "function_words.toml"
    data: dict[str, str] = tomllib.loads(source.read_text(encoding="utf-8"))
    owners: dict[str, list[str]] = {}
    for code, text in data.items():
        for word in dict.fromkeys(text.split()):
            owners.setdefault(word, []).append(code)
    return {word: dict.fromkeys(codes, len(codes) ** -0.5) for word, codes in owners.items()}
