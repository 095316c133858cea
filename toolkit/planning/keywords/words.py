"""The words of nine languages, and the terms of an objective with their meanings.

Each language has one file, `words/<code>.toml`. An entry is a word or a phrase; `poem*` stands for
the words that begin so and have at most five letters more.
"""

import functools
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources

from toolkit.media.text_languages import guess_language

CODES = ("en", "de", "fr", "es", "it", "pt", "ja", "zh", "ar")
UNSPACED = frozenset({"ja", "zh"})
MAX_PHRASE = 16  # words, or signs where no spaces part words
MAX_TAIL = 5  # letters after the stem of a word
MAX_TELLING = 600  # characters by which the language is told
TEXT_UNITS = ("words", "characters", "sentences", "paragraphs", "lines", "items")
# The other meanings that each word with a meaning has.
IMPLIED = {
    "definite": ("article", "function"), "numbers": ("article",), "refer": ("function",),
    "article": ("function",), "about": ("function",), "languages": ("detail",),
    "bound": ("detail",),
}  # fmt: skip
_MARKS = {
    **dict.fromkeys(".!。！\n;；•", "stop"), **dict.fromkeys("?？؟", "question"),
    **dict.fromkeys(",、，،", "comma"), **dict.fromkeys(":：", "colon"),
    **dict.fromkeys("-–—", "dash"), **dict.fromkeys("~〜～", "range"),
}  # fmt: skip
_SIGN = "[぀-ヿ㐀-鿿豈-﫿ｦ-ﾝー々]"
_NUMERAL = "[一二两兩三四五六七八九十百千]"
_QUOTED = (
    r"“[^“”]*”|„[^„“”]*[“”]|\"[^\"]*\"|«[^«»]*»|»[^«»]*«|「[^「」]*」|『[^『』]*』|《[^《》]*》"
    r"|‹[^‹›]*›|‚[^‚‘]*‘|(?<!\w)['‘’](?:[^'‘’]|(?<=\w)['’](?=\w))+['’](?!\w)"
)
_TOKEN = re.compile(
    rf"(?P<literal>{_QUOTED})|(?P<artifact>art_[0-9a-z]{{10,40}})"
    r"|(?P<address>(?:https?://|www\.)[^\s<>]+|[\w.+-]{1,64}@[\w-]+\.[\w.]+"
    r"|[\w-]{1,64}\.(?:pdf|docx?|xlsx?|pptx?|csv|m4a|mp[34]|wav|mov|png|jpe?g|txt|json|zip)\b)"
    rf"|(?P<number>\d+(?:[.,:]\d+)*|{_NUMERAL}*[十百千]{_NUMERAL}*(?=[個个字句行条點点词詞段项语語]))"
    rf"|(?P<word>{_SIGN}|[^\W\d_](?:(?!{_SIGN})[\w\u0300-\u036f\u064b-\u0652]|['’-](?=\w))*)"
    r"|(?P<mark>[^\w\s]|\n)"
)
_LETTERS = str.maketrans("øłđı’‘أإآىةٱ", "oldi''ااايها") | {ord("æ"): "ae", ord("œ"): "oe"}


@functools.lru_cache(maxsize=8_192)
def fold(text: str) -> str:
    """Return a text in lower case, without accents, and with one spelling of each letter.

    >>> fold("Café Straße")
    'cafe strasse'
    """
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(c for c in plain if not unicodedata.combining(c) or "゙" <= c <= "゜")
    return unicodedata.normalize("NFC", letters).translate(_LETTERS)


@dataclass(slots=True)
class Term:
    """A word, a phrase, a punctuation mark or a quotation of an objective.

    Attributes:
        text: the characters of the objective, without the quotation marks.
        meanings: the value of each meaning that it has, such as `{"thing": "image"}`; an unknown
            word has none.
    """

    text: str
    start: int
    end: int
    meanings: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, meaning: str) -> str:
        return self.meanings.get(meaning, "")


def read_number(term: Term) -> int:
    """Read the whole number that a term names; 0 if it names none.

    >>> read_number(Term("一百五十", 0, 4, {"number": "一百五十"}))
    150
    """
    value = term["number"] or term["numbers"]
    if re.fullmatch(r"\d+|\d{1,3}(?:[.,]\d{3})+", value):
        return int(re.sub("[.,]", "", value))
    total = digit = 0
    for sign in value if value.isnumeric() else "":
        number = int(unicodedata.numeric(sign))
        total, digit = (total + max(digit, 1) * number, 0) if number > 9 else (total, number)
    return total + digit


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of a language that the keyword planner knows, with their meanings.

    Attributes:
        words: the meanings of each word and phrase, and of beginnings such as `poem*`.
        grammar: further facts about the language, such as the order of words.
        beginnings: the beginnings of phrases.
    """

    code: str
    words: Mapping[str, Mapping[str, str]]
    grammar: Mapping[str, str]
    beginnings: frozenset[str]

    def find_meanings(self, key: str) -> Mapping[str, str]:
        """Find the meanings of a word or phrase, or of a compound by its end; may be empty."""
        for form in self._list_forms(key):
            ends = range(len(form), max(1, form.rfind(" "), len(form) - MAX_TAIL - 1), -1)
            stem = next((stem for end in ends if (stem := f"{form[:end]}*") in self.words), "")
            meanings = {**self.words.get(stem, {}), **self.words.get(form, {})}
            if meanings and (form == key or "thing" in meanings or "prefixes" in self.grammar):
                return meanings
        return {}

    def _list_forms(self, key: str) -> Iterator[str]:
        yield key
        for prefix in self.grammar.get("prefixes", "").split():
            if key.startswith(prefix) and len(key) - len(prefix) >= 3:
                yield key[len(prefix) :]
        if "compounds" in self.grammar and " " not in key:
            yield from (key[cut:] for cut in range(3, len(key) - 3))


@functools.lru_cache(maxsize=len(CODES))
def load_vocabulary(code: str) -> Vocabulary:
    """Load the vocabulary of a language from its file; later calls return the same vocabulary."""
    data = tomllib.loads((resources.files(__package__) / f"words/{code}.toml").read_text("utf-8"))
    grammar = data.pop("grammar")
    words: dict[str, dict[str, str]] = {}
    for meaning, entries in data.items():
        for value, text in entries.items() if isinstance(entries, dict) else [("", entries)]:
            for raw in text.split(","):
                entry, _, entry_value = raw.partition("=")
                meanings = words.setdefault(fold(" ".join(entry.split())), {})
                meanings.setdefault(meaning, entry_value.strip() or value)
                for implied in IMPLIED.get(meaning, ()):
                    meanings.setdefault(implied, "")
                if meaning == "unit" and value in TEXT_UNITS:
                    meanings.setdefault("thing", "text")
    return Vocabulary(code, words, grammar, _list_beginnings(code, words))


def _list_beginnings(code: str, phrases: Iterable[str]) -> frozenset[str]:
    ends = ((p, n) for p in phrases for n in range(1, len(p)) if code in UNSPACED or p[n] == " ")
    return frozenset(phrase[:end] for phrase, end in ends)


def choose_vocabulary(text: str, keywords: Mapping[str, str] | None = None) -> Vocabulary:
    """Guess the language of a text, and return its words and the keywords of capabilities."""
    language = load_vocabulary(guess_language(re.sub(_QUOTED, " ", text[:MAX_TELLING]), CODES))
    extra = {fold(word): {"thing": name, "act": name} for word, name in (keywords or {}).items()}
    beginnings = language.beginnings | _list_beginnings(language.code, extra)
    return replace(language, words={**language.words, **extra}, beginnings=beginnings)


def read_terms(text: str, language: Vocabulary) -> list[Term]:
    """Split a text into terms with their meanings; the longest known phrase is one term."""
    find = functools.cache(language.find_meanings)
    glue = "" if language.code in UNSPACED else " "
    parts, terms, end = list(_split_text(text)), list[Term](), 0
    for place, part in enumerate(parts):
        if part.start < end:
            continue  # it is in a phrase
        key, meanings, end = "", part.meanings, part.end
        if "mark" in meanings:
            meanings = {**meanings, **find(part.text)}
        elif "word" in meanings:
            meanings = {}
            for piece in parts[place : place + MAX_PHRASE]:
                key += f"{glue if key else ''}{fold(piece.text)}"
                if "word" in piece.meanings and (values := find(key)):
                    meanings, end = values, piece.end
                if "word" not in piece.meanings or key not in language.beginnings:
                    break
        if terms and not (meanings or terms[-1].meanings) and terms[-1].end == part.start:
            part = Term("", terms.pop().start, end)
        words = part.text if "literal" in meanings else text[part.start : end]
        terms.append(Term(words, part.start, end, meanings))
    return terms


def _split_text(text: str) -> Iterator[Term]:
    """Split a text into words, numbers, marks and quotations; the time is linear in its length."""
    for token in _TOKEN.finditer(text):
        kind, value = str(token.lastgroup), token[0]
        value = value[1:-1] if kind == "literal" else value
        meanings = {"mark": "", _MARKS.get(value, "mark"): ""} if kind == "mark" else {kind: value}
        yield Term(value, *token.span(), meanings)
