"""Detection of the language that a prompt asks for: the one it names, else its own."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

ENGLISH = "en"
_ENGLISH_WORDS = (
    "the of and to in is a an for on with that it as are be by this write about what how why from"
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# The text that may follow `in German` where it means the language of the answer.
_AFTER_LANGUAGE = (
    r"(?=\s*(?:[.,;:!?)\"”\n]|$|\b(?:language|only|please|and|with|for|about|on|und|über)\b))"
)
_BEFORE_LANGUAGE = r"(?:in|into|auf|en|em|in het|op z'n|на|in lingua|using)"
_LANGUAGE_LABEL = r"\b(?:language|lang|sprache|langue|idioma|lingua|taal)\b"
_MIN_SCRIPT_SHARE = 0.25  # the least share of letters of a script, for a text to be in it


@dataclass(frozen=True, slots=True)
class Language:
    """A language: how it is recognized, and what is written in it.

    Attributes:
        code: such as `de`.
        names: those by which it is asked for.
        words: frequent ones, by which a text is known; for those of the Latin script.
        script: the range of characters that it alone is written in; empty for the Latin script.
        spaced: whether words stand between spaces; characters are counted where they do not.
        about: patterns of what a request is about.
        numbers: patterns of one to five.
        units: patterns of words, sentences and bullets.
        headline: what follows a topic in a title.
        sentences: about any topic.
        tails: of two words and of three, with which a text reaches the length asked for.
    """

    code: str
    names: tuple[str, ...]
    words: frozenset[str]
    script: str
    spaced: bool
    about: tuple[str, ...]
    numbers: tuple[str, ...]
    units: dict[str, str]
    headline: str
    sentences: tuple[str, ...]
    tails: tuple[str, ...]


@cache
def load_languages() -> dict[str, Language]:
    """Load the languages other than English, by their codes."""
    text = files(__package__).joinpath("languages.toml").read_text(encoding="utf-8")
    return {code: _parse_language(code, row) for code, row in tomllib.loads(text).items()}


def _parse_language(code: str, row: dict[str, Any]) -> Language:
    return Language(
        code=code,
        names=tuple(row["names"]),
        words=frozenset(row["words"].split()),
        script=row.get("script", ""),
        spaced=row.get("spaced", True),
        about=tuple(row["about"]),
        numbers=tuple(row["numbers"]),
        units=row["units"],
        headline=row["headline"],
        sentences=tuple(row["sentences"]),
        tails=tuple(row["tails"]),
    )


def detect_language(system: str, user: str, objective: str) -> str:
    """Detect the language that an answer is to be in.

    >>> detect_language("", "Write one line about tides in German.", "")
    'de'
    >>> detect_language("", "", "Warum sind die Gezeiten so stark?")
    'de'
    """
    return (
        _find_named_language(user)
        or _find_named_language(system)
        or detect_written_language(objective)
        or detect_written_language(user)
        or ENGLISH
    )


def _find_named_language(text: str) -> str:
    """Find the language that a text asks for by name or code; empty if it asks for none."""
    found: list[tuple[int, str]] = []
    for code, names in (
        *((c, one.names) for c, one in load_languages().items()),
        ("en", ("english",)),
    ):
        choice = "|".join(re.escape(name) for name in names)
        latin = "|".join(re.escape(name) for name in names if name.isascii() or name[0] < "\u0250")
        own = "|".join(re.escape(name) for name in names if name[0] >= "\u0250")
        label = rf"{_LANGUAGE_LABEL}\W{{0,3}}(?:{code}\b|{choice})"
        patterns = (
            [label, rf"\b{_BEFORE_LANGUAGE}\s+(?:{latin}){_AFTER_LANGUAGE}"] if latin else [label]
        )
        if own:  # 日本語で, 用中文, по-русски, 한국어로, हिंदी में, بالعربية
            patterns.append(rf"(?:用|以|на\s+)?(?:{own})(?:で|로|\s*में|回答|写|$|\W)")
        hits = [m.end() for one in patterns for m in re.finditer(one, text, re.I | re.M)]
        found += [(end, code) for end in hits]
    return max(found)[1] if found else ""


def detect_written_language(text: str) -> str:
    """Detect the language that a text is written in; empty if too little tells."""
    letters = [char for char in text if char.isalpha()]
    for code in ("ja", "ko", "zh", "ar", "hi", "ru"):  # Japanese has Chinese characters, too
        script = load_languages()[code].script
        share = 0.1 if code == "ja" else _MIN_SCRIPT_SHARE
        if letters and len(re.findall(f"[{script}]", text)) >= share * len(letters):
            return code
    tokens = [match.group().lower() for match in _WORD.finditer(text)]
    sets = {code: one.words for code, one in load_languages().items() if not one.script}
    sets[ENGLISH] = frozenset(_ENGLISH_WORDS.split())
    hits = {code: sum(token in words for token in tokens) for code, words in sets.items()}
    best = max(hits.values())
    if best == 0 or best < 0.12 * len(tokens):
        return ""
    if hits[ENGLISH] == best:
        return ENGLISH
    return max(hits, key=lambda code: hits[code])
