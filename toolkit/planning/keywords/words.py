"""The words of nine languages, and the terms of an objective with their meanings.

Each language has one file, `words/<code>.toml`. An entry is a word or a phrase; `poem*` stands for
the words that begin so and have at most five letters more.
"""

import itertools
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from typing import Any

CODES = ("en", "de", "fr", "es", "it", "pt", "ja", "zh", "ar")
UNSPACED = frozenset({"ja", "zh"})
MAX_TAIL = 5  # letters after the stem of a word
MAX_TELLING = 600  # characters by which the language is told
MIN_COMPOUND = 4  # letters of the last part of a compound
TEXT_UNITS = frozenset({"words", "characters", "sentences", "paragraphs", "lines", "items"})
# The other meanings that each word with a meaning has.
IMPLIED = {
    "definite": ("article", "function"), "numbers": ("article",), "refer": ("function",),
    "article": ("function",), "about": ("function",), "languages": ("detail",),
    "bound": ("detail",),
}  # fmt: skip
_CLOSERS = {
    "“": "”", "„": "“”", '"': '"', "«": "»", "»": "«", "「": "」", "『": "』", "《": "》",
    "‚": "‘", "‹": "›", "‘": "’", "'": "'", "’": "’",
}  # fmt: skip
_SINGLE = frozenset("‘'’")
_SIGNS = "぀-ヿ㐀-鿿豈-﫿ｦ-ﾝー々"
_LETTER = rf"(?:(?![{_SIGNS}])[^\W\d_][\u0300-\u036f\u0640\u064b-\u0652]*)"
_TOKEN = re.compile(
    r"(?P<artifact>art_[0-9a-z]{10,40})"
    r"|(?P<address>(?:https?://|www\.)[^\s<>]+|[\w.+-]+@[\w-]+\.[\w.]+"
    r"|[\w-]+\.(?:pdf|docx?|xlsx?|pptx?|csv|m4a|mp3|mp4|wav|mov|png|jpe?g|txt|ya?ml|json|zip)\b)"
    r"|(?P<number>\d+(?:[.,:]\d+)*)"
    rf"|(?P<word>[{_SIGNS}]+|{_LETTER}(?:{_LETTER}|[0-9_])*(?:['’-](?:{_LETTER}|[0-9])+)*)"
    r"|(?P<mark>[^\w\s])"
)
_LETTERS = str.maketrans(
    {**dict(zip("æœøłđı", ("ae", "oe", "o", "l", "d", "i"), strict=True)), "’": "'", "‘": "'"}
    | dict(zip("أإآىةٱ", "ااايها", strict=True)) | {chr(0x660 + n): str(n) for n in range(10)}
)  # fmt: skip
_POWERS = {"十": 10, "百": 100, "千": 1000}
_DIGITS = dict(zip("一二两兩三四五六七八九", (1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
_NUMERAL_SIGNS = frozenset({*_DIGITS, *_POWERS})
_NUMERAL = re.compile(
    r"[一二两兩三四五六七八九十百千]*[十百千][一二两兩三四五六七八九十百千]*(?=[個个字句行条點点词詞段项语語])"
)
_CJK = re.compile(f"[{_SIGNS}]+")


@lru_cache(maxsize=8_192)
def fold(text: str) -> str:
    """Fold case, accents and the spellings of a letter.

    >>> fold("Café Straße")
    'cafe strasse'
    """
    plain = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(c for c in plain if not unicodedata.combining(c) or "゙" <= c <= "゜")
    return unicodedata.normalize("NFC", kept).translate(_LETTERS)


@dataclass(slots=True)
class Term:
    """A word, a phrase, a mark or a quotation of an objective.

    Attributes:
        text: the characters of the objective, without the quotation marks.
        start, end: its place in the objective.
        meanings: the value of each meaning that it has, such as `{"thing": "image"}`.
    """

    text: str
    start: int
    end: int
    meanings: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, meaning: str) -> str:
        return self.meanings.get(meaning, "")

    def has(self, *meanings: str) -> bool:
        """Return True if it has one of these meanings."""
        return not self.meanings.keys().isdisjoint(meanings)

    @property
    def is_unknown(self) -> bool:
        """True if it is a word without a meaning."""
        return not self.meanings


def read_number(term: Term) -> int:
    """Read the number that a term names; 0 if it names none.

    >>> read_number(Term("一百五十", 0, 4, {"number": "一百五十"}))
    150
    """
    value = term["number"] or term["numbers"]
    if value.isdigit() or not value:
        return int(value or 0)
    if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", value):  # "1,200"
        return int(re.sub("[.,]", "", value))
    total, digit = 0, 0
    for sign in value:
        if sign in _POWERS:
            total, digit = total + max(digit, 1) * _POWERS[sign], 0
        else:
            digit = _DIGITS.get(sign, 0)
    return total + digit


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of a language.

    Attributes:
        words: the meanings of each word and phrase.
        stems: the meanings of the beginnings of words with different endings.
        longest: the words of the longest phrase, or its characters where words have no spaces.
        grammar: further facts about the language, such as the order of words.
        starts: the first sign of each word.
    """

    code: str
    words: Mapping[str, Mapping[str, str]]
    stems: Mapping[str, Mapping[str, str]]
    longest: int
    grammar: Mapping[str, str]
    starts: frozenset[str] = frozenset()

    @property
    def is_spaced(self) -> bool:
        """True if spaces part its words."""
        return self.code not in UNSPACED

    def find_meanings(self, key: str) -> Mapping[str, str]:
        """Find the meanings of a word or a phrase; an unknown word has no meaning."""
        for form in self._list_forms(key):
            if form != key and "-" in key and not self._is_thing(form):
                continue
            meanings = dict(self.words.get(form, ()))
            for cut in range(MAX_TAIL + 1):
                stem, tail = form[: len(form) - cut], form[len(form) - cut :]
                if " " not in tail and len(stem) >= 2 and stem in self.stems:
                    meanings = {**self.stems[stem], **meanings}
                    break
            if meanings:
                return meanings
        return {}

    def _list_forms(self, key: str) -> Iterator[str]:
        """List a word without the particles that are written as one with it."""
        yield key
        for prefix in self.grammar.get("prefixes", "").split():
            if key.startswith(prefix) and len(key) - len(prefix) >= 3:
                yield key[len(prefix) :]
        if self.grammar.get("compounds") and " " not in key:
            for cut in range(3, len(key) - MIN_COMPOUND + 1):
                if self._is_thing(key[cut:]):
                    yield key[cut:]

    def _is_thing(self, tail: str) -> bool:
        if "thing" in self.words.get(tail, ()):
            return True
        return any(
            "thing" in self.stems.get(tail[: len(tail) - cut], ())
            for cut in range(min(3, len(tail) - MIN_COMPOUND) + 1)
        )


@lru_cache(maxsize=len(CODES))
def load_vocabulary(code: str) -> Vocabulary:
    """Load the words of a language."""
    source = resources.files(__package__) / "words" / f"{code}.toml"
    data = tomllib.loads(source.read_text(encoding="utf-8"))
    words: dict[str, dict[str, str]] = {}
    stems: dict[str, dict[str, str]] = {}
    longest = 1
    for meaning, value, text in _list_entries(data):
        for raw in text.replace("\n", " ").split(","):
            entry, _, entry_value = raw.partition("=")
            key = fold(" ".join(entry.split()))
            if not key:
                continue
            table = stems if key.endswith("*") else words
            meanings = table.setdefault(key.rstrip("*"), {})
            meanings.setdefault(meaning, entry_value.strip() or value)
            for implied in IMPLIED.get(meaning, ()):
                meanings.setdefault(implied, "")
            if meaning == "unit" and value in TEXT_UNITS:
                meanings.setdefault("thing", "text")
            longest = max(longest, len(key) if code in UNSPACED else key.count(" ") + 1)
    starts = frozenset(word[0] for word in words)
    return Vocabulary(code, words, stems, longest, data.get("grammar", {}), starts)


def _list_entries(data: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str, str]]:
    """List the meaning, the value and the entries of each key of a file."""
    one_meaning = {"things": "thing", "acts": "act", "units": "unit", "bounds": "bound"}
    for section, keys in data.items():
        for name, text in keys.items() if section not in {"grammar", "missing"} else ():
            meaning = one_meaning.get(section, name if section == "words" else section)
            yield meaning, "" if meaning == name else name, text
    acts: Mapping[str, Any] = data.get("missing", {})
    for name, inner in acts.items():
        for act, text in inner.items():
            yield "missing", f"{name}.{act}", text


def find_language(text: str) -> str:
    """Find the language of an objective, by its script and its most frequent words."""
    parts = _split_text(text[:MAX_TELLING])
    plain = "".join(part.text if part.has("word") else " " for part in parts)
    kana, han, arabic = (len(re.findall(signs, plain)) for signs in ("[぀-ヿ]", "[㐀-鿿]", "[؀-ۿ]"))
    latin = len(re.findall("[A-Za-z]", plain)) / 4
    if max(kana + han, arabic) > latin:
        return "ar" if arabic > kana + han else "ja" if kana else "zh"
    words = [fold(part.text) for part in parts if part.has("word")]
    scores = {
        code: sum(_weigh(load_vocabulary(code), word) for word in words)
        for code in CODES
        if code not in UNSPACED and code != "ar"
    }
    return max(scores, key=lambda code: scores[code])


def _weigh(language: Vocabulary, word: str) -> float:
    meanings = language.words.get(word, {})
    if meanings.keys() & {"function", "polite", "ask", "article"}:
        return 1.0
    return 0.6 if meanings or language.find_meanings(word) else 0.0


def add_keywords(language: Vocabulary, keywords: Mapping[str, str]) -> Vocabulary:
    """Add words that name a capability of their own, as an act and as a thing.

    Args:
        language: the vocabulary that the keywords extend.
        keywords: the id of the capability by each of them.
    """
    words = dict(language.words)
    for keyword, capability_id in keywords.items():
        words[fold(keyword)] = {"thing": capability_id, "act": capability_id}
    spaces = max((keyword.count(" ") + 1 for keyword in keywords), default=1)
    return replace(language, words=words, longest=max(language.longest, spaces))


def read_terms(text: str, language: Vocabulary) -> list[Term]:
    """Read the terms of an objective, the longest phrases first."""
    parts = _split_text(text)
    if language.code in UNSPACED:
        parts = [piece for part in parts for piece in _split_unspaced(part, language)]
    terms: list[Term] = []
    place, cache = 0, dict[str, Mapping[str, str]]()
    while place < len(parts):
        size, term = _match(parts, place, language, cache)
        terms.append(term)
        place += size
    return terms


def _match(
    parts: list[Term], place: int, language: Vocabulary, cache: dict[str, Mapping[str, str]]
) -> tuple[int, Term]:
    """Match the longest phrase that begins at a part; the meanings are cached."""
    first = parts[place]
    if first["mark"]:
        meanings = language.words.get(first.text, {})
        return 1, Term(first.text, first.start, first.end, {**first.meanings, **meanings})
    if not first.has("word"):
        return 1, first
    longest = 1 if language.code in UNSPACED else language.longest
    words = itertools.takewhile(lambda part: part.has("word"), parts[place : place + longest])
    run = [fold(part.text) for part in words]
    for size in range(len(run), 0, -1):
        key = " ".join(run[:size])
        if key not in cache:
            cache[key] = language.find_meanings(key)
        meanings = cache[key]
        if meanings:
            last = parts[place + size - 1]
            joined = " ".join(part.text for part in parts[place : place + size])
            return size, Term(joined, first.start, last.end, meanings)
    return 1, Term(first.text, first.start, first.end)


def _split_text(text: str) -> list[Term]:
    """Split a text into words, numbers, marks and quotations; the time is linear in its length."""
    parts: list[Term] = []
    place, absent = 0, set[str]()
    while place < len(text):
        if text[place] in _CLOSERS and (end := _find_closer(text, place, absent)) > 0:
            inner = text[place + 1 : end]
            parts.append(Term(inner, place, end + 1, {"literal": ""}))
            place = end + 1
            continue
        token = _TOKEN.match(text, place)
        if token is None:
            if text[place] == "\n":
                parts.append(Term("\n", place, place + 1, {"mark": "\n"}))
            place += 1
            continue
        kind = str(token.lastgroup)
        value = token[0] if kind in {"mark", "number"} else ""
        parts.append(Term(token[0], place, token.end(), {kind: value}))
        place = token.end()
    return parts


def _find_closer(text: str, place: int, absent: set[str]) -> int:
    """Find the end of a quotation; -1 if none begins here."""
    opener = text[place]
    if opener in absent or (opener in _SINGLE and place and text[place - 1].isalnum()):
        return -1
    ends = [_find_one(text, place, closer) for closer in _CLOSERS[opener]]
    places = [end for end in ends if end > place]
    if not places:
        absent.add(opener)
        return -1
    return min(places)


def _find_one(text: str, place: int, closer: str) -> int:
    end = text.find(closer, place + 1)
    while closer in _SINGLE and 0 < end < len(text) - 1 and text[end + 1].isalnum():
        end = text.find(closer, end + 1)
    return end


def _split_unspaced(part: Term, language: Vocabulary) -> Iterator[Term]:
    """Split a run of signs into numbers, the longest known words, and the signs between them."""
    if not part.has("word") or not _CJK.match(part.text):
        yield part
        return
    text, words = part.text, language.words
    folded = "".join(fold(sign) if len(fold(sign)) == 1 else sign for sign in text)
    place = unknown = 0
    while place < len(text):
        numeral = _NUMERAL.match(text, place) if folded[place] in _NUMERAL_SIGNS else None
        end = numeral.end() if numeral else 0
        if not end and folded[place] in language.starts:
            longest = min(len(text), place + language.longest)
            end = next((n for n in range(longest, place, -1) if folded[place:n] in words), 0)
        if end:
            meanings = {"number": text[place:end]} if numeral else words[folded[place:end]]
            if place > unknown:
                yield Term(
                    text[unknown:place], part.start + unknown, part.start + place, {"word": ""}
                )
            yield Term(text[place:end], part.start + place, part.start + end, meanings)
            unknown = end
        place = end or place + 1
    if place > unknown:
        yield Term(text[unknown:], part.start + unknown, part.end, {"word": ""})
