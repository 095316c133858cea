"""What a brief demands of a text that can be counted or told: measures, items, languages, forms."""

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.planning.reading.reader import read_objective
from toolkit.planning.reading.spans.measures import PlacedMeasure, find_measures, read_quantity
from toolkit.planning.reading.spans.scan import Scan
from toolkit.planning.reading.words.language import detect_language
from toolkit.planning.reading.words.lexicon import CODES, load_lexicon
from toolkit.planning.review.texts.languages import detect_text_language
from toolkit.planning.review.texts.word_lists import compile_phrases, find_phrase, fold_phrase

Unit = Literal["words", "characters", "sentences", "paragraphs", "lines", "items", "seconds"]
_UNITS: dict[str, Unit] = {
    "words": "words", "characters": "characters", "sentences": "sentences", "seconds": "seconds",
    "paragraphs": "paragraphs", "lines": "lines", "bullets": "items", "minutes": "seconds",
}  # fmt: skip
_PARTS = frozenset({"items", "lines", "paragraphs"})
_QUOTED = re.compile(
    r"«[^»]*»|“[^”]*”|„[^“”]*[“”]|\"[^\"]*\"|「[^」]*」|『[^』]*』|(?<!\w)'[^'\n]*'(?!\w)"
)
MAX_BRIEF = 4_000  # characters of a brief that are read; what follows is material
_MAX_ITEMS = 40
_RANGE_WORDS = frozenset(
    {
        "to",
        "or",
        "bis",
        "oder",
        "a",
        "ou",
        "o",
        "e",
        "y",
        "and",
        "und",
        "et",
        "ate",
        "hasta",
        "al",
        "او",
        "الى",
    }
)
# What makes a language the one to write in: "in French", "auf Deutsch", "French text".
_INTO = frozenset(
    {"in", "into", "auf", "ins", "en", "em", "a", "al", "to", "para", "na", "no", "用", "以", "で",
     "成", "译成", "翻译成"}
)  # fmt: skip
_FROM = frozenset({"from", "aus", "de", "du", "del", "dal", "do", "vom"})
_EXCLUDED_ACTS = ("act.research", "act.speak", "act.draw", "act.lay_out")
_EACH = frozenset({"each", "per", "apiece", "je", "jeweils", "chacun", "chacune", "chaque", "cada",
                   "ciascuno", "ciascuna", "ogni", "ずつ", "各", "每", "لكل", "كل"})  # fmt: skip
MIN_BRIEF_HITS = 1.0  # function words that a brief's language is told by
MIN_CHARACTERS = 20  # fewer are letters of a word
MAX_COUNT_WORDS = 3  # between a verb and the number of items it asks for


@dataclass(frozen=True, slots=True)
class Quantity:
    """How much of a unit a text is to have.

    Attributes:
        least, most: in numbers; both the same where one number is named.
        is_limit: whether it is a limit, and no number to come near to.
    """

    unit: Unit
    least: float
    most: float
    is_limit: bool = False

    @property
    def wording(self) -> str:
        """The quantity in words, for messages and instructions."""
        if self.most == float("inf"):
            return f"at least {self.least:g} {self.unit}"
        if self.is_limit and self.least == 0:
            return f"at most {self.most:g} {self.unit}"
        if self.least != self.most:
            return f"{self.least:g} to {self.most:g} {self.unit}"
        return f"about {self.most:g} {self.unit}"


@dataclass(frozen=True)
class Demands:
    """What a brief demands.

    Attributes:
        language: that the brief is written in; empty where there are too few words to tell.
        wanted: the languages that it asks the text to be in.
        named: the languages that it names, but for those to translate from.
        quantities: by unit.
        folded: its words for phrases to be found in, without what it quotes.
        topic: what it is about, as its reading has it.
        is_language_sure: whether enough of its words tell its language.
        is_creative: whether it asks for a poem, a slogan or the like, which may not name its topic.
    """

    language: str = ""
    wanted: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    quantities: dict[Unit, Quantity] = field(default_factory=dict)
    folded: str = ""
    topic: str = ""
    is_creative: bool = False
    is_language_sure: bool = False

    def asks(self, name: str) -> bool:
        """Tell whether the brief has a phrase of a word list, of its language or of English.

        Many an English word is at home elsewhere, but `di` says something else in each language.
        """
        if not self.is_language_sure or self.language not in CODES:
            return find_phrase(name, self.folded) is not None
        lists = {compile_phrases(name, code) for code in (self.language, "en")}
        return any(phrases.search(self.folded) for phrases in lists)

    def compile(self, name: str) -> re.Pattern[str]:
        """Compile a word list of the brief's language, as its words may be others elsewhere."""
        return compile_phrases(name, self.language if self.language in CODES else None)

    @cached_property
    def informs(self) -> bool:
        """Tell whether the text is to tell of its topic, and not only to hang on it.

        A slogan for a bakery and a picture in words need not name it, an article on it has to.

        Example:
            >>> read_demands("Explain the tides.").informs
            True
            >>> read_demands("Write a welcome text for a cottage.").informs
            False
        """
        if self.compile("informing").search(self.folded):
            return True
        if self.compile("describing").search(self.folded):
            return False
        topic = fold_phrase(self.topic)
        words = self.compile("about")
        before, found, _ = self.folded.partition(topic) if topic else (self.folded, "", "")
        if not found:  # what it is about was not told from the rest
            return words.search(self.folded) is not None
        ends = [match.end() for match in words.finditer(self.folded)]
        return any(not self.folded[end : len(before)].strip() for end in ends if end <= len(before))


@lru_cache(maxsize=256)
def read_demands(brief: str) -> Demands:
    """Read what a brief demands; the same brief always demands the same.

    >>> demands = read_demands("Write 3 sentences in French on tea, at most 40 words.")
    >>> demands.quantities["words"].wording, sorted(demands.wanted)
    ('at most 40 words', ['fr'])
    """
    brief = brief[:MAX_BRIEF]
    if not any(map(str.isalpha, brief)):
        return Demands()
    # What it quotes is to be used, not obeyed.
    plain = _QUOTED.sub(lambda match: " " * len(match.group()), brief)
    language = detect_language(brief)
    scan = Scan(plain, load_lexicon(language), CapabilityNames())
    told = detect_text_language(plain, MIN_BRIEF_HITS).code
    if told in CODES and told != language:
        told = None  # few words that two languages share, as in "a job as a gardener"
    # The words of a language without a lexicon are only like those of another.
    is_known = told is None or told in CODES
    quantities = _read_quantities(scan) if is_known else {}
    if is_known and "items" not in quantities and (items := _read_item_count(scan)) is not None:
        quantities["items"] = items
    wanted, named = _read_languages(scan)
    reading = read_objective(brief, CapabilityNames())
    return Demands(
        told or language,
        wanted,
        named,
        quantities,
        fold_phrase(plain),
        reading.topic,
        any(request.is_creative for request in reading.requests),
        told is not None,
    )


def _read_quantities(scan: Scan) -> dict[Unit, Quantity]:
    found: dict[Unit, Quantity] = {}
    for placed in find_measures(scan):
        unit, value = _UNITS.get(placed.measure.name), placed.measure.value
        if unit is None or not isinstance(value, int | float) or value <= 0 or unit in found:
            continue
        # "a story with two examples", "pros, cons and one line": of a part, not of the whole.
        if _is_of_part(scan, placed) or (unit == "characters" and value < MIN_CHARACTERS):
            continue
        if placed.measure.name == "minutes":
            value *= 60
        match placed.measure.bound:
            case "at_most":
                found[unit] = Quantity(unit, 0, value, is_limit=True)
            case "at_least":
                found[unit] = Quantity(unit, value, float("inf"), is_limit=True)
            case _:
                found[unit] = Quantity(unit, _read_lower_end(scan, placed.start, value), value)
    return found


def _is_of_part(scan: Scan, placed: PlacedMeasure) -> bool:
    """Tell whether a measure is of a part: "and two examples", "one sentence on each"."""
    around = (*range(placed.end, placed.end + 3), *range(placed.start - 3, placed.start))
    near = [k for k in around if 0 <= k < len(scan)]
    # "Four paragraphs split par une ligne" are no four a line.
    is_each = placed.end < len(scan) and scan.has(placed.end, "join.for_each")
    if is_each or any(scan.word(k) in _EACH for k in near):
        return True
    if _UNITS[placed.measure.name] not in _PARTS:
        return False
    if placed.measure.value == 1:
        return placed.measure.name != "paragraphs"
    return scan.has(placed.start - 1, "join.and", "join.with")


def _read_lower_end(scan: Scan, start: int, most: float) -> float:
    """Read the first number of "50 to 60 words"; the same number where there is none."""
    for at in (start - 2, start - 1):
        joined = at == start - 1 or scan.word(start - 1) in _RANGE_WORDS
        if at < 0 or not joined:
            continue
        number, end = read_quantity(scan, at)
        if number is None or end != at + 1 or number >= most:
            continue
        if at == start - 2 or re.fullmatch(r"\s*[-–—~～〜/、]\s*|至|到|から|か", scan.gap(start)):
            return number
    return most


def _read_item_count(scan: Scan) -> Quantity | None:
    """Read the number of things that are asked for: "write seven slogans", "5 name ideas"."""
    for i in range(len(scan)):
        if i and (not scan.has(i, "act.", "make") or scan.has(i, *_EXCLUDED_ACTS)):
            continue
        # Without a verb the number itself has to come first.
        near = range(i + 1, i + 1 + MAX_COUNT_WORDS) if scan.has(i, "act.", "make") else range(1)
        for k in (k for k in near if k < len(scan)):
            if k and (scan.breaks[k] or scan.has(k - 1, "join", "about")):
                break
            number, end = read_quantity(scan, k)
            if number is None:
                continue
            is_plain = number == int(number) and 2 <= number <= _MAX_ITEMS
            if scan.has(end, "counter"):
                end = max(p.end for p in scan.phrases(end) if p.category == "counter")
            if is_plain and end < len(scan) and not scan.breaks[end] and _names_items(scan, end):
                return Quantity("items", number, number)
            return None
    return None


def _names_items(scan: Scan, i: int) -> bool:
    """Tell whether the words after a number can be what a list has."""
    if scan.has(i, "unit.", "function_word", "join") or not scan.word(i)[:1].isalpha():
        return False
    if i + 1 >= len(scan) or scan.has(i + 1, "unit.bullets", "function_word"):
        return True
    return not scan.has(i + 1, "unit.")


def _read_languages(scan: Scan) -> tuple[frozenset[str], frozenset[str]]:
    wanted: set[str] = set()
    named: set[str] = set()
    for i in range(len(scan)):
        for phrase in scan.phrases(i):
            if phrase.category != "language":
                continue
            before = scan.word(i - 1)
            if before not in _FROM:
                named.add(phrase.value)
            follows = phrase.end < len(scan) and scan.has(phrase.end, "thing.text", "unit.words")
            # "in a French café" names no language, "in French" ends its phrase.
            is_noun = phrase.end >= len(scan) or not _continues(scan, phrase.end)
            into = before in _INTO or scan.word(i).startswith("in ")
            if (into and is_noun and before not in _FROM) or (
                follows and before not in _FROM and _is_own_text(scan, phrase.end)
            ):
                wanted.add(phrase.value)
            break
    return frozenset(wanted), frozenset(named)


def _continues(scan: Scan, i: int) -> bool:
    """Tell whether the word after the name of a language belongs to it, as in "French café"."""
    if scan.breaks[i]:
        return False
    return not scan.has(i, "function_word", "join", "about", "bound", "number", "unit", "polite",
                        "act.", "make", "article", "filler")  # fmt: skip


def _is_own_text(scan: Scan, i: int) -> bool:
    """Tell whether a kind of text at a word is what is asked for, and not one that is there."""
    return not any(scan.has(k, "act.translate", "act.summarize") for k in range(i))
