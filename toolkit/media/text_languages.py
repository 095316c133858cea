"""The language of a text, by py3langid; None if the evidence is too weak.

The first call loads a model of 5 MB.
"""

import re
from collections.abc import Container
from functools import cache
from typing import Any

from toolkit.media.text_parts import split_sentences

MAX_CHARACTERS = 4_000  # of a text, by which its language is detected
MAX_SENTENCES = 200  # of a text; each is detected by itself
_MIN_LETTERS, _MIN_SIGNS = 24, 6  # signs: of scripts in which each is a syllable or a word
_MIN_CONFIDENCE = 0.9
_TECHNICAL = re.compile(
    r"```.*?```|`[^`\n]*`|https?://\S+|\S{1,80}@\S+|[#@]\w+|<[^<>\n]{1,80}>", re.S
)
_LETTER = re.compile(r"[^\W\d_]")
_KANA = re.compile(r"[\u3041-\u30fa\uff66-\uff9d]")
_SIGN = re.compile(r"[\u3041-\u30fa\uff66-\uff9d\u3400-\u9fff\uac00-\ud7af]")
# Scripts other than Latin, by the letters that a text in each language mostly has.
_SCRIPTS = {
    letters: re.compile(f"[{span}]")
    for letters, span in {
        "ja": "\u3041-\u30fa\u3400-\u9fff", "zh": "\u3400-\u9fff", "ko": "\uac00-\ud7af",
        "ar fa ur": "\u0620-\u06d3", "ru uk bg be mk": "\u0400-\u052f", "el": "\u0370-\u03ff",
        "he": "\u05d0-\u05ea", "hi mr ne": "\u0900-\u097f", "th": "\u0e00-\u0e7f",
    }.items()
}  # fmt: skip
_MIN_SCRIPT_SHARE = 0.3
_LATIN = frozenset(
    (
        *("en", "de", "fr", "es", "it", "pt", "nl", "ca", "gl", "eu", "ro", "pl", "cs", "sk", "sl"),
        *("hr", "hu", "fi", "et", "lv", "lt", "sv", "da", "no", "nb", "nn", "is", "tr", "id", "ms"),
        *("vi", "sw", "cy", "ga", "la", "af", "sq", "eo"),
    )
)
_END_OF_LATIN = "\u0250"
# Short texts in the languages of a group look alike.
_ALIKE = (
    {"da", "no", "nb", "nn", "sv"}, {"cs", "sk"}, {"hr", "sr", "bs", "sl"}, {"id", "ms", "jv"},
    {"es", "gl", "ca", "an", "oc"}, {"pt", "gl"}, {"ru", "uk", "bg", "be", "mk", "sr"},
    {"ar", "fa", "ur", "ug", "ps"}, {"nl", "af"}, {"de", "lb"}, {"hi", "mr", "ne"},
    {"fr", "oc", "wa"}, {"it", "la", "co"},
)  # fmt: skip


@cache
def _load_identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier: Any = LanguageIdentifier
    return identifier.from_model_file(MODEL_FILE, norm_probs=True)


def guess_language(text: str, codes: Container[str]) -> str:
    """Return the most likely of some languages, even if the evidence is weak.

    >>> guess_language("Zeichne einen Igel", {"de", "en"})
    'de'
    """
    ranked: list[tuple[str, float]] = _load_identifier().rank(text)
    return next(code for code, _ in ranked if code in codes)


def detect_language(text: str) -> str | None:
    """Return the ISO 639-1 code of a text's language, or None if the language is not certain.

    >>> detect_language("Der Rucksack fasst 28 Liter und wiegt leer kaum etwas.")
    'de'
    >>> detect_language("玄関で靴をお脱ぎください。")
    'ja'
    >>> detect_language("ACME 3000")
    """
    plain = _TECHNICAL.sub(" ", text[:MAX_CHARACTERS])
    letters, signs = len(_LETTER.findall(plain)), len(_SIGN.findall(plain))
    if signs * 2 > letters and signs >= _MIN_SIGNS:
        if len(_KANA.findall(plain)) * 8 >= signs:
            return "ja"
    elif letters < _MIN_LETTERS:
        return None
    code: str
    code, confidence = _load_identifier().classify(plain)
    return code if confidence >= _MIN_CONFIDENCE else None


def is_alike(code: str, other_code: str) -> bool:
    """Return whether two languages are the same, or short texts in them look alike."""
    return code == other_code or any({code, other_code} <= group for group in _ALIKE)


def uses_latin(text: str) -> bool:
    """Return whether most letters of a text are Latin.

    >>> uses_latin("Tea"), uses_latin("緑茶 tea")
    (True, True)
    """
    letters = _LETTER.findall(text)
    latin = [letter for letter in letters if letter < _END_OF_LATIN]
    return len(latin) * 2 >= len(letters)


def lacks_script(text: str, code: str) -> bool:
    """Return whether a text is in other letters than its language uses.

    >>> lacks_script("Genkan de kutsu o onugi kudasai.", "ja"), lacks_script("Tea", "de")
    (True, False)
    """
    if code in _LATIN:
        return not uses_latin(text)
    letters = len(_LETTER.findall(text))
    script = next((script for codes, script in _SCRIPTS.items() if code in codes.split()), None)
    if script is None or not letters:
        return False
    return len(script.findall(text)) < _MIN_SCRIPT_SHARE * letters


def find_foreign_part(text: str, language: str, max_share: float) -> str:
    """Find the part of a text that is not in a language; empty if that part is small.

    Args:
        text: the text; its longest sentence in another language, or all of it, is returned.
        max_share: maximum share of the text in other languages, from 0 to 1.
    """
    text = _TECHNICAL.sub(" ", text)
    code = detect_language(text)
    if lacks_script(text, language) or (code is not None and not is_alike(code, language)):
        return text
    sentences = split_sentences(text)[:MAX_SENTENCES]
    codes = {part: detect_language(part) or language for part in sentences}
    foreign = [part for part in sentences if not is_alike(codes[part], language)]
    # In bytes, as a sign of some scripts says as much as several letters.
    sizes = {part: len(part.encode()) for part in sentences}
    if sum(sizes[part] for part in foreign) <= max_share * sum(sizes[part] for part in sentences):
        return ""
    return max(foreign, key=len)
