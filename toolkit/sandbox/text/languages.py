"""The languages that the simulated model writes: their data, and detection of the language."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

ENGLISH = "en"
_MAX_AMOUNT = 2000
_MIN_SCRIPT_SHARE = 0.15  # minimum share of a script's letters that identifies the script
_MIN_WORD_SHARE = 0.12  # minimum share of a language's frequent words that identifies it
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_PHRASE_END = r"[.,;:?!。，！？،؟।\n(（「『」』]"
HEAD = r"^(?:(?!(?:about|on|of|for|to|with)\b)\S+\s+){0,6}?\W*"


@cache
def load_languages() -> dict[str, dict[str, Any]]:
    """Load the data of all languages, by code; `languages.toml` explains it."""
    return tomllib.loads(files(__package__).joinpath("languages.toml").read_text(encoding="utf-8"))


def is_spaced(code: str) -> bool:
    """Return True if spaces separate the words of a language."""
    return bool(load_languages()[code].get("spaced", True))


def join_sentences(sentences: list[str], code: str) -> str:
    """Join sentences to one text."""
    return " ".join(sentences) if is_spaced(code) else "".join(sentences)


@cache
def compile_cue(name: str) -> re.Pattern[str]:
    """Compile a pattern of English requests."""
    rows = load_languages()
    words = {
        "NUMBER": rf"(\d+|{'|'.join(rows[ENGLISH]['numbers'])})",
        "CODES": "|".join(rows),
        "NAMES": "|".join(name for row in rows.values() for name in row["names"]),
        "PHRASES": "|".join(
            re.escape(phrase) for row in rows.values() for phrase in row["phrases"]
        ),
        "HEAD": HEAD,
    }
    pattern: str = rows[ENGLISH]["cues"][name]
    for word, form in words.items():
        pattern = pattern.replace(word, form)
    return re.compile(pattern, re.I | re.X)


@cache
def compile_amount(unit: str, code: str) -> re.Pattern[str]:
    """Compile the pattern of an amount, such as `five sentences`."""
    row = load_languages()[code]
    number = rf"(\d+|{'|'.join(row['numbers'])})"
    form = rf"(?:{row['units'].get(unit, '(?!)')})"  # an unknown unit matches nothing
    if is_spaced(code):
        return re.compile(rf"(?<!\w){number}(?:[\s-]+|(?<=\d)){form}", re.I)
    return re.compile(rf"{number}\s*{form}", re.I)


def find_amount(unit: str, text: str, code: str) -> int | None:
    """Find how many of a unit a text asks for."""
    match = compile_amount(unit, code).search(text)
    return read_number(match.group(1), code) if match else None


def read_number(text: str, code: str = ENGLISH) -> int:
    """Read a number in digits or words."""
    if text.isdigit():
        return max(1, min(int(text), _MAX_AMOUNT))
    numbers = enumerate(load_languages()[code]["numbers"], start=1)
    return next((n for n, form in numbers if re.fullmatch(form, text, re.I)), 1)


@cache
def compile_topic_end(code: str) -> re.Pattern[str]:
    """Compile the pattern of the text that follows a topic."""
    row = load_languages()[code]
    ends = [_PHRASE_END, rf"\s(?:auf|en|in|em|op)\s+(?:{'|'.join(row['names'])})\b"]
    return re.compile("|".join([*ends, *row.get("topic_ends", [])]), re.I)


def detect_language(system: str, instruction: str, objective: str, source: str = "") -> str:
    """Detect the language of the answer, and return its code."""
    return (
        _find_named_language(instruction)
        or _find_named_language(system)
        or detect_written_language(objective)
        or detect_written_language(source)
        or ENGLISH
    )


def _find_named_language(text: str) -> str:
    """Find the last language that a text asks for by name, or "" if it names none."""
    matches = list(compile_cue("language").finditer(text))
    if not matches:
        return ""
    name = matches[-1].group(matches[-1].lastindex or 0).casefold()
    rows = load_languages().items()
    return next(code for code, row in rows if name in (code, *row["names"], *row["phrases"]))


def detect_written_language(text: str) -> str:
    """Detect the language that a text is written in, or return "" if there are too few signs."""
    letters = sum(map(str.isalpha, text))
    tokens = [word.lower() for word in _WORD.findall(text)]
    hits: dict[str, int] = {}
    for code, row in load_languages().items():  # Japanese first: it has Chinese characters too
        if "script" not in row:
            hits[code] = sum(map(frozenset(row["words"].split()).__contains__, tokens))
        elif letters and not text.isascii():
            number = len(re.findall(f"[{row['script']}]", text))
            if number >= _MIN_SCRIPT_SHARE * letters:
                return code
    best = max(hits, key=lambda code: hits[code])  # English first
    return best if hits[best] and hits[best] >= _MIN_WORD_SHARE * len(tokens) else ""
