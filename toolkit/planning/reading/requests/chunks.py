"""Chunks of a clause in a language without spaces: the longest words, and the text between."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.planning.reading.requests.mentions import ACT_KINDS, get_kind
from toolkit.planning.reading.spans.measures import read_quantity
from toolkit.planning.reading.spans.noun_phrases import HEADS
from toolkit.planning.reading.spans.scan import Break, Phrase, Scan
from toolkit.planning.reading.spans.verbs import NOUNS_ONLY

BECOMING = frozenset("成为為作进進到")  # after a Chinese verb, before what its object becomes
_HAN = ("\u3400", "\u9fff")
_VERBS = ("act.", "make", "unavailable.")
_OTHERS = {
    "negation.before": "negation",
    "negation.after": "negation_after",
    "negation.only": "only",
    "pronoun": "pronoun",
    "join.for_each": "each",
    "join.and": "and",
    "join.then": "and",
    "join.with": "with",
    "language": "language",
    "attribute.": "attribute",
    "question": "question",
    "fact": "fact",
    "polite": "polite",
    "about": "about",
}


class ChunkKind(enum.Enum):
    """What a chunk is in its clause."""

    VERB = "verb"
    NOUN = "noun"
    COUNT = "count"
    TEXT = "text"
    TAKEN = "taken"  # consumed by another pass
    WEAK = "weak"  # a particle or another word without a meaning of its own


@dataclass(slots=True)
class Chunk:
    """A word that says something to the reader, or the text between two of them.

    Attributes:
        kind: what it is.
        start, end: its tokens.
        verb: the act that it names, as a verb.
        noun: the thing that it names.
        word: which of the other words it is: `negation`, `only`, `pronoun`, …
        count: how many, where it is a number with a counter.
        value: of a language.
    """

    kind: ChunkKind
    start: int
    end: int
    verb: Phrase | None = None
    noun: Phrase | None = None
    word: str = ""
    count: int = 0
    value: str = ""

    @property
    def is_ambiguous(self) -> bool:
        """Whether it can be a verb and a noun."""
        return self.verb is not None and self.noun is not None

    @property
    def act(self) -> str | None:
        """The key of the act that it names."""
        if self.verb is None or not self.verb.category.startswith("act."):
            return None
        return self.verb.category.removeprefix("act.")


def split_chunks(scan: Scan, start: int, end: int) -> list[Chunk]:
    """Split the words of a sentence into chunks."""
    chunks: list[Chunk] = []
    i = start
    while i < end:
        last = chunks[-1] if chunks else None
        chunk = _read_chunk(scan, i, end, last)
        if (
            chunk.kind is ChunkKind.TEXT
            and last is not None
            and last.kind is ChunkKind.TEXT
            and not scan.breaks[i]
        ):
            last.end = chunk.end
        else:
            chunks.append(chunk)
        i = chunk.end
    return chunks


def _read_chunk(scan: Scan, i: int, end: int, last: Chunk | None) -> Chunk:
    if not scan.is_free(i):
        return Chunk(ChunkKind.TAKEN, i, i + 1, word=scan.owners[i] or "")
    count = _read_count(scan, i, end)
    if count is not None:
        return count
    phrases = [one for one in scan.phrases(i) if one.end <= end]
    strong = [one for one in phrases if _is_strong(one) and _is_whole(scan, one, last)]
    if last is not None and last.kind is not ChunkKind.TEXT and _leads_to_noun(scan, i, strong):
        return Chunk(ChunkKind.WEAK, i, i + 1)  # "做|成|语音", and no idiom ("成语")
    longest = max((one.end for one in strong), default=i)
    weak = max((one.end for one in phrases if not _is_strong(one)), default=i)
    if longest > i and (longest >= weak or _becomes(scan, phrases, longest, weak)):
        return _make_chunk([one for one in strong if one.end == longest])
    if weak > i:
        return Chunk(ChunkKind.WEAK, i, weak)
    return Chunk(ChunkKind.TEXT, i, i + 1)


def _leads_to_noun(scan: Scan, i: int, strong: Sequence[Phrase]) -> bool:
    """Tell whether `成` after a verb stands by itself, as a longer noun begins after it."""
    longest = max((one.end for one in strong), default=i)
    nouns = (one for one in scan.phrases(i + 1) if one.category.startswith("thing."))
    return scan.word(i) in BECOMING and any(one.end > longest > i + 1 for one in nouns)


def _becomes(scan: Scan, phrases: Sequence[Phrase], end: int, last: int) -> bool:
    """Tell whether a verb and what its object becomes are one word: `写成`, `做成`."""
    joins = any(one.category == "join.as" and one.end == last for one in phrases)
    acts = any(one.category.startswith(("act.", "make")) and one.end == end for one in phrases)
    return joins and acts and end == last - 1 and scan.word(end) in BECOMING


def _is_strong(phrase: Phrase) -> bool:
    return phrase.category.startswith((*HEADS, *_VERBS, *_OTHERS))


def _is_whole(scan: Scan, phrase: Phrase, last: Chunk | None) -> bool:
    """Tell whether a short word is one, and not a part of a longer one that no lexicon has."""
    first, after = scan.word(phrase.start), phrase.end
    led = (
        last is not None
        and last.kind is ChunkKind.TEXT
        and last.end == phrase.start
        and scan.breaks[phrase.start] == Break.NONE
    )
    if phrase.category.startswith(("negation.only", "negation.before")) and is_kana(first):
        return not (led and is_kana(scan.word(phrase.start - 1)))
    if phrase.end - phrase.start > 1 or not _is_han(first):
        return True
    if phrase.category == "join.for_each" and scan.has(after, "act.", "make", "number"):
        return True
    if phrase.category.startswith(HEADS):
        follows = (
            after < len(scan) and scan.breaks[after] == Break.NONE and _is_han(scan.word(after))
        )
        is_free = scan.has(after, "join.with", "negation.") or (
            scan.lexicon.code == "zh"
            and scan.has(after, "function_word", "join.", "polite", "act.")
        )
        return not follows or is_free
    return not (led and _is_han(scan.word(phrase.start - 1)))


def is_kana(word: str) -> bool:
    """Tell whether a word begins with hiragana, as the ends of Japanese verbs are."""
    return "\u3041" <= word[:1] <= "\u3096"


def _is_han(word: str) -> bool:
    return len(word) == 1 and _HAN[0] <= word <= _HAN[1]


def _read_count(scan: Scan, i: int, end: int) -> Chunk | None:
    """Read a number with a counter: `三首`, `3枚の`."""
    number, after = read_quantity(scan, i)
    if number is None or not 1 <= number <= 50 or number != int(number) or after >= end:
        return None
    counter = scan.find(after, "counter")
    if counter is None:
        return None
    return Chunk(ChunkKind.COUNT, i, counter.end, count=int(number))


def _make_chunk(phrases: Sequence[Phrase]) -> Chunk:
    start, end = phrases[0].start, phrases[0].end
    noun = next((one for one in phrases if one.category.startswith(HEADS)), None)
    if noun is not None and noun.category.startswith("unavailable."):
        # A noun that is a thing in one sense and not available in another is the thing.
        available = [one for one in phrases if one.category.startswith(("kind", "thing."))]
        noun = available[0] if available else noun
    verb = next((one for one in phrases if one.category.startswith(("act.", "kind"))), None)
    verb = verb or next((one for one in phrases if one.category.startswith(_VERBS)), None)
    if verb is not None and verb.category in NOUNS_ONLY and not verb.is_ambiguous:
        verb = None
    if verb is not None or noun is not None:
        kind = ChunkKind.VERB if noun is None else ChunkKind.NOUN
        adds = any(one.category == "join.with" for one in phrases)
        return Chunk(kind, start, end, verb, noun, "with" if adds and verb is not None else "")
    for category, word in _OTHERS.items():
        for one in phrases:
            if one.category.startswith(category):
                return Chunk(ChunkKind.WEAK, start, end, word=word, value=one.value)
    return Chunk(ChunkKind.WEAK, start, end)


def get_chunk_kind(scan: Scan, chunk: Chunk) -> str | None:
    """Return the kind that a noun asks for, or else the one that a verb makes."""
    if chunk.noun is not None:
        return get_kind(scan, chunk.noun)
    return ACT_KINDS.get(chunk.act or "")
