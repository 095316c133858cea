"""Detection of the language that a prompt asks for: the one it names, else its own."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

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
_LANGUAGE_LABELS = ("language", "lang", "sprache", "langue", "idioma", "lingua", "taal")
_LANGUAGE_LABEL = rf"\b(?:{'|'.join(_LANGUAGE_LABELS)})\b"
_OWN_SCRIPTS = ("ko", "zh", "ar", "hi", "ru")
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
    finders = _compile_finders()
    folded = text.casefold()
    if not any(word in folded for word in finders.words):  # quicker than a pattern, and mostly so
        return ""
    found = [
        (match.end(), code)
        for code, patterns in finders.patterns
        for pattern in patterns
        for match in pattern.finditer(text)
    ]
    return max(found)[1] if found else ""


class _LanguageFinders(NamedTuple):
    """The patterns by which a text asks for a language.

    Attributes:
        words: the words of which a text that asks for any has at least one, case folded.
        patterns: those of each language, by its code.
    """

    words: tuple[str, ...]
    patterns: tuple[tuple[str, tuple[re.Pattern[str], ...]], ...]


@cache
def _compile_finders() -> _LanguageFinders:
    """Compile the patterns of all languages, which are part of the package and never change."""
    named = {code: one.names for code, one in load_languages().items()} | {ENGLISH: ("english",)}
    words = [*_LANGUAGE_LABELS, *(name for names in named.values() for name in names)]
    return _LanguageFinders(
        tuple(dict.fromkeys(word.casefold() for word in words)),
        tuple((code, _compile_patterns(code, names)) for code, names in named.items()),
    )


def _compile_patterns(code: str, names: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Compile the patterns by which a text asks for one language."""
    choice = "|".join(re.escape(name) for name in names)
    latin = "|".join(re.escape(name) for name in names if name.isascii() or name[0] < "\u0250")
    own = "|".join(re.escape(name) for name in names if name[0] >= "\u0250")
    patterns = [rf"{_LANGUAGE_LABEL}\W{{0,3}}(?:{code}\b|{choice})"]
    if latin:
        patterns.append(rf"\b{_BEFORE_LANGUAGE}\s+(?:{latin}){_AFTER_LANGUAGE}")
    if own:  # 日本語で, 用中文, по-русски, 한국어로, हिंदी में, بالعربية
        patterns.append(rf"(?:用|以|на\s+)?(?:{own})(?:で|로|\s*में|回答|写|$|\W)")
    return tuple(re.compile(one, re.I | re.M) for one in patterns)


def detect_written_language(text: str) -> str:
    """Detect the language that a text is written in; empty if too little tells."""
    marks = _compile_marks()
    if not text.isascii():  # or it has nothing of a script of its own
        letters = sum(map(str.isalpha, text))
        for code, pattern, share in marks.scripts:
            if letters and len(pattern.findall(text)) >= share * letters:
                return code
    tokens = [word.lower() for word in _WORD.findall(text)]
    hits = {code: sum(map(words.__contains__, tokens)) for code, words in marks.words.items()}
    best = max(hits.values())
    if best == 0 or best < 0.12 * len(tokens):
        return ""
    if hits[ENGLISH] == best:
        return ENGLISH
    return max(hits, key=lambda code: hits[code])


class _LanguageMarks(NamedTuple):
    """The marks by which it is told in which language a text is written.

    Attributes:
        scripts: a language, the characters of its script, and their least share of the letters.
        words: the frequent words of the languages in the Latin script, by language.
    """

    scripts: tuple[tuple[str, re.Pattern[str], float], ...]
    words: dict[str, frozenset[str]]


@cache
def _compile_marks() -> _LanguageMarks:
    """Compile the marks of all languages, which are part of the package and never change."""
    languages = load_languages()
    scripts = [  # Japanese first, which has Chinese characters, too
        (code, re.compile(f"[{languages[code].script}]"), share)
        for code, share in (("ja", 0.1), *dict.fromkeys(_OWN_SCRIPTS, _MIN_SCRIPT_SHARE).items())
    ]
    words = {code: one.words for code, one in languages.items() if not one.script}
    return _LanguageMarks(tuple(scripts), words | {ENGLISH: frozenset(_ENGLISH_WORDS.split())})
