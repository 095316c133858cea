"""The language of a text, by its script and its function words; none where too little speaks."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from toolkit.planning.review.texts.word_lists import load_function_words

# Scripts by ranges of characters, and the languages that are written in each.
_SCRIPTS: dict[str, str] = {
    "kana": "\u3041-\u30fa\u30fd-\u30ff\uff66-\uff9d",
    "han": "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003134f",
    "hangul": "\u1100-\u11ff\uac00-\ud7af",
    "arabic": "\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff",
    "cyrillic": "\u0400-\u052f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "hebrew": "\u05d0-\u05ea",
    "devanagari": "\u0900-\u097f",
    "bengali": "\u0980-\u09ff",
    "tamil": "\u0b80-\u0bff",
    "thai": "\u0e00-\u0e7f",
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff",
}
_LETTERS = {name: re.compile(f"[{span}]") for name, span in _SCRIPTS.items()}
SCRIPTS_OF = {
    "ja": {"kana", "han"}, "zh": {"han"}, "ko": {"hangul"}, "ar": {"arabic"}, "fa": {"arabic"},
    "ur": {"arabic"}, "ru": {"cyrillic"}, "uk": {"cyrillic"}, "bg": {"cyrillic"},
    "sr": {"cyrillic", "latin"}, "mk": {"cyrillic"}, "be": {"cyrillic"}, "el": {"greek"},
    "he": {"hebrew"}, "hi": {"devanagari"}, "mr": {"devanagari"}, "ne": {"devanagari"},
    "bn": {"bengali"}, "ta": {"tamil"}, "th": {"thai"},
}  # fmt: skip
_ONE_LANGUAGE = {
    "hangul": "ko", "greek": "el", "hebrew": "he", "devanagari": "hi", "bengali": "bn",
    "tamil": "ta", "thai": "th",
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ELISION = re.compile(r"^(?:[cdjlmnst]|qu|un|(?:de|a|ne|su|da|que)ll)['’](?=[^\W\d_]{2})")
_TECHNICAL = re.compile(r"https?://\S+|(?<!\S)\S{1,80}@\S+|`[^`\n]*`|#\w+|@\w+")
# Letters that speak for few of the languages in Latin letters, on top of their function words.
_LETTERS_OF = {
    "ß": "de", "ñ": "es", "¿": "es", "¡": "es", "ã": "pt", "õ": "pt", "ğ": "tr", "ı": "tr",
    "ș": "ro", "ț": "ro", "ő": "hu", "ű": "hu", "ł": "pl", "ř": "cs", "ů": "cs", "ě": "cs",
    "ľ": "sk", "ĺ": "sk", "đ": "vi", "ơ": "vi", "ư": "vi", "œ": "fr", "ç": "fr pt ca tr",
    "ø": "da no", "æ": "da no", "å": "sv da no", "ò": "it ca", "ì": "it", "ù": "it fr",
}  # fmt: skip
_LETTER_WEIGHT = 0.25
MIN_HITS = 1.5  # function words that a language is told by
_MIN_SHARE = 0.12  # of all words
_MIN_LEAD = 1.35  # over the next language
MIN_WORDS = 5  # of a sentence that is told by itself


@dataclass(frozen=True, slots=True)
class LanguageFinding:
    """The language of a text, as far as it can be told.

    Attributes:
        code: of the language; none where too little speaks for one.
        script: of most of its letters.
        letters: how many letters it has.
    """

    code: str | None
    script: str
    letters: int


def detect_text_language(text: str, least: float = MIN_HITS) -> LanguageFinding:
    """Tell the language of a text, by as many function words at least.

    >>> detect_text_language("Der Rucksack fasst 28 Liter und wiegt leer kaum etwas.").code
    'de'
    >>> detect_text_language("玄関で靴をお脱ぎください。").code
    'ja'
    >>> detect_text_language("Genkan de kutsu o onugi kudasai.").code
    """
    plain = _TECHNICAL.sub(" ", text)
    counts = count_scripts(plain)
    script = max(counts, key=lambda name: counts[name], default="")
    if counts["kana"] and counts["kana"] + counts["han"] >= counts[script]:
        script = "kana"
    return LanguageFinding(
        _detect_in_script(plain, script, counts, least), script, sum(counts.values())
    )


def count_scripts(text: str) -> Counter[str]:
    """Count the letters of each script in a text."""
    if text.isascii():
        return Counter(latin=len(_LETTERS["latin"].findall(text)))
    return Counter({name: len(pattern.findall(text)) for name, pattern in _LETTERS.items()})


def _detect_in_script(text: str, script: str, counts: Counter[str], least: float) -> str | None:
    match script:
        case "kana":
            # A Chinese text may quote a Japanese name.
            return "ja" if counts["kana"] * 8 >= counts["han"] else "zh"
        case "han":
            return "zh" if counts["han"] >= 6 else None
        case "latin" | "cyrillic" | "arabic":
            return _detect_by_words(text, script, least)
    return _ONE_LANGUAGE.get(script)


def _detect_by_words(text: str, script: str, least: float) -> str | None:
    words = split_words(text)
    scores = score_words(words)
    if script == "latin":
        for letter, number in Counter(text.lower()).items():
            for code in _LETTERS_OF.get(letter, "").split():
                scores[code] = scores.get(code, 0.0) + _LETTER_WEIGHT * min(number, 6)
    ranked = sorted(scores.items(), key=lambda pair: -pair[1])[:2]
    if not ranked:
        return "ar" if script == "arabic" and len(words) >= MIN_WORDS else None
    (code, most), second = ranked[0], ranked[1][1] if len(ranked) > 1 else 0.0
    if most < max(least, _MIN_SHARE * len(words)) or most < _MIN_LEAD * second:
        return None
    return code


def split_words(text: str) -> list[str]:
    """Split a text into its words, as languages are told by them."""
    return [word.lower().replace("’", "'") for word in _WORD.findall(text)]


def score_words(words: list[str]) -> dict[str, float]:
    """Score languages by the function words that they have in common with a text."""
    known = load_function_words()
    scores: dict[str, float] = {}
    for word, number in Counter(words).items():
        # One word a hundred times says less than a hundred words.
        weight = min(number, 8)
        entry = known.get(word)
        if entry is None and "'" in word:
            entry = known.get(_ELISION.sub("", word))
            elided = _ELISION.match(word)
            if elided is not None:
                for code in ("fr", "it", "ca"):
                    scores[code] = scores.get(code, 0.0) + 0.5 * weight
        for code, value in (entry or {}).items():
            scores[code] = scores.get(code, 0.0) + value * weight
    return scores


@lru_cache(maxsize=64)
def are_close(one: str, other: str) -> bool:
    """Tell whether two languages are so near that short texts in them are hard to tell apart."""
    groups = ({"da", "no", "sv"}, {"cs", "sk"}, {"hr", "sr"}, {"es", "pt", "gl", "ca"},
              {"ru", "uk", "bg", "sr"}, {"id", "ms"}, {"ar", "fa", "ur"}, {"nl", "af"})  # fmt: skip
    return one != other and any({one, other} <= group for group in groups)
