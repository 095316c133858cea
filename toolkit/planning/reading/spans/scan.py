"""The words of an objective with what each of them was read as; the passes share it."""

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.planning.reading.words.lexicon import Lexicon
from toolkit.planning.reading.words.numbers import read_number
from toolkit.planning.reading.words.spelling import mend_tokens
from toolkit.planning.reading.words.tokens import Token, split_tokens

_SENTENCE_END = re.compile(r"[.!?…](?=[\s\"'”’»)\]*<])|[。！？؟\n]|<")
_CLAUSE_END = re.compile(r":(?!/)|[;：；؛—–]|\s-+\s")
# What is quoted ends there, and the sentence goes on: `「…です。」と言わせて`.
_QUOTE_END = re.compile(r"[。！？!?…]+[」』]")
_COMMA = re.compile(r"[,、，،()\[\]]")
# Entries of these say nothing of what is asked for: a shorter entry beside them is not hidden.
_WEAK_CATEGORIES = frozenset({"function_word", "filler", "article", "fact", "instruction"})
# A character of Chinese or Japanese may stand right beside it.
ARTIFACT_ID = re.compile(r"\bart_[0-7][0-9a-hjkmnp-tv-z]{25}\b", re.ASCII)
_JOIN_SIGNS = frozenset("+&×*=")
KINDS = frozenset({"text", "image", "speech", "card", "research", "clone"})


class Break(enum.IntEnum):
    """How far two words are apart."""

    NONE = 0
    COMMA = 1
    CLAUSE = 2
    SENTENCE = 3


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase that a lexicon or a capability knows, at its place.

    Attributes:
        start, end: its tokens.
        category: of the lexicon; `kind` where a capability claims it.
        value: what it stands for, where the category has values.
        is_ambiguous: whether it may be a verb or a noun.
        particle: the token that ends a verb whose parts stand apart.
        is_tail: whether it is only the last part of a word.
    """

    start: int
    end: int
    category: str
    value: str = ""
    is_ambiguous: bool = False
    particle: int | None = None
    is_tail: bool = False


class Scan:
    """An objective split into words, each owned by the pass that read it.

    Attributes:
        objective: the text.
        tokens: its words.
        lexicon: of its language.
        names: what capabilities claim.
        owners: for each word, the pass that consumed it.
        breaks: for each word, how far it is from the one before.
    """

    def __init__(
        self, objective: str, lexicon: Lexicon, names: CapabilityNames, *, mends: bool = True
    ) -> None:
        self.objective = objective
        self.lexicon = lexicon
        self.names = names
        # The lexicon looks at punctuation, too; the passes count in words.
        self._marked = lexicon.split_conjunctions(_split_objective(objective, lexicon.code))
        if mends:
            self._marked = mend_tokens(self._marked, lexicon.code, names.field_openings)
        kept = [i for i, token in enumerate(self._marked) if _is_kept(token)]
        self.tokens = [self._marked[i] for i in kept]
        self.owners: list[str | None] = [None] * len(self.tokens)
        self._places = kept
        self._words_before = _count_words_before(self._marked, kept)
        self._claimed = _index_claims(names, lexicon.code)
        self._phrases: dict[int, tuple[Phrase, ...]] = {}
        self._numbers: dict[int, tuple[float, int] | None] = {}

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def breaks(self) -> list[Break]:
        """The punctuation before each word."""
        found, end = [Break.SENTENCE] if self.tokens else [], 0
        for i in range(1, len(self.tokens)):
            end = self.tokens[i - 1].end
            found.append(_classify_gap(self.objective[end : self.tokens[i].start]))
        return found

    def word(self, i: int) -> str:
        """Return a word, folded; empty past the end."""
        return self.tokens[i].key if 0 <= i < len(self.tokens) else ""

    def text(self, start: int, end: int) -> str:
        """Return the objective's own spelling of some words."""
        if start >= end:
            return ""
        return self.objective[self.tokens[start].start : self.tokens[end - 1].end]

    def gap(self, i: int) -> str:
        """Return what stands before a word and after the one before it."""
        return self.objective[self.tokens[i - 1].end if i else 0 : self.tokens[i].start]

    def gap_after(self, end: int) -> str:
        """Return what stands after the word before a place and before the next one."""
        following = self.tokens[end].start if end < len(self.tokens) else len(self.objective)
        return self.objective[self.tokens[end - 1].end : following]

    def has_join_sign(self, i: int) -> bool:
        """Tell whether a word is a sign that joins what stands on both its sides, such as `+`."""
        return self.word(i) in {"+", "&"}

    def consume(self, start: int, end: int, owner: str) -> None:
        """Mark words as read by a pass."""
        for i in range(start, min(end, len(self.owners))):
            self.owners[i] = owner

    def is_free(self, i: int) -> bool:
        """Tell whether no pass has read a word yet."""
        return 0 <= i < len(self.owners) and self.owners[i] is None

    def find_sentence_start(self, i: int) -> int:
        """Return the index of the first word of a word's sentence."""
        while i > 0 and self.breaks[i] < Break.SENTENCE:
            i -= 1
        return i

    def find_sentence_end(self, i: int, least: Break = Break.SENTENCE) -> int:
        """Return the index after the last word before the next break of a strength."""
        end = i + 1
        while end < len(self.tokens) and self.breaks[end] < least:
            end += 1
        return min(end, len(self.tokens))

    def find_sentences(self) -> list[tuple[int, int]]:
        """Split all words into sentences."""
        return self.split_words(Break.SENTENCE)

    def split_words(self, least: Break) -> list[tuple[int, int]]:
        """Split all words at the breaks of a strength and above."""
        starts = [i for i, gap in enumerate(self.breaks) if gap >= least]
        return list(zip(starts, [*starts, len(self.tokens)][1:], strict=True))

    def read_number(self, i: int) -> tuple[float, int] | None:
        """Return the number that begins at a word, in digits or words, and where it ends."""
        if not self.is_free(i):
            return None
        if i not in self._numbers:
            found = read_number(self._marked, self._places[i], self.lexicon)
            self._numbers[i] = found and (
                found[0],
                self._words_before[self._places[i] + found[1]],
            )
        return self._numbers[i]

    def phrases(self, i: int) -> tuple[Phrase, ...]:
        """Return the phrases that begin at a word and end before the next break, longest first."""
        if i not in self._phrases:
            self._phrases[i] = self._list_phrases(i)
        return self._phrases[i]

    def find(self, i: int, *categories: str) -> Phrase | None:
        """Return the longest phrase of some categories at a word that is still free.

        A longer phrase of another category hides it: `make sure` is no `make`.
        """
        if not self.is_free(i):
            return None
        hidden = 0
        for phrase in self.phrases(i):
            if self.owners[i : phrase.end].count(None) < phrase.end - i:
                continue
            if phrase.category.startswith(categories):
                return phrase if phrase.end - i >= hidden else None
            if phrase.category not in _WEAK_CATEGORIES:
                hidden = max(hidden, phrase.end - i)
        return None

    def has(self, i: int, *categories: str) -> bool:
        """Tell whether a phrase of some categories begins at a word, hidden or not."""
        return any(phrase.category.startswith(categories) for phrase in self.phrases(i))

    def is_known(self, i: int) -> bool:
        """Tell whether any lexicon or capability knows what begins at a word."""
        return bool(self.phrases(i))

    def _list_phrases(self, i: int) -> tuple[Phrase, ...]:
        if not 0 <= i < len(self.tokens):
            return ()
        limit = self._find_break(i)
        found = []
        for entry in self.lexicon.find_entries(self._marked, self._places[i]):
            end = self._words_before[self._places[i] + entry.length]
            particle = entry.particle and self._words_before[entry.particle]
            if i < end <= limit and not self._encloses_pronoun(entry.category, i, end):
                one = Phrase(
                    i, end, entry.category, entry.value, entry.is_ambiguous, particle, entry.is_tail
                )
                found.append(one)
        claimed = [
            Phrase(i, i + len(key), "kind", kind)
            for key, kind in self._claimed.get(self.tokens[i].key, ())
            if i + len(key) <= limit
            and all(self.tokens[i + n].key == word for n, word in enumerate(key))
        ]
        # The reader's own words for a kind say more than the keywords of who makes it.
        longest = max((phrase.end for phrase in found if _names_request(phrase)), default=i)
        kept = [one for one in claimed if one.value not in KINDS or one.end > longest]
        return tuple(sorted([*kept, *found], key=lambda phrase: -phrase.end))

    def _encloses_pronoun(self, category: str, i: int, end: int) -> bool:
        """Tell whether a noun's words have a pronoun between them: `write it up` is no write-up."""
        return (
            end - i > 2
            and category.startswith(("thing.", "creative"))
            and any(self.tokens[k].key in self.lexicon.articles for k in range(i + 1, end - 1))
        )

    def _find_break(self, i: int) -> int:
        end = i + 1
        while end < len(self.tokens) and self.breaks[end] == Break.NONE and end - i < 12:
            end += 1
        return end


def _is_kept(token: Token) -> bool:
    return token.is_word or token.text in _JOIN_SIGNS


def _split_objective(objective: str, code: str) -> list[Token]:
    """Split an objective into tokens; the id of an artifact is one."""
    tokens = split_tokens(objective, code)
    if "art_" not in objective:
        return tokens
    spans = [match.span() for match in ARTIFACT_ID.finditer(objective)]
    merged = [Token(objective[a:b], objective[a:b], a, b) for a, b in spans]
    rest = [one for one in tokens if not any(a <= one.start < b for a, b in spans)]
    return sorted([*merged, *rest], key=lambda token: token.start)


def _count_words_before(tokens: Sequence[Token], kept: Sequence[int]) -> list[int]:
    """Count, for each place in all tokens, the words before it."""
    counts, words = [], set(kept)
    total = 0
    for i in range(len(tokens) + 1):
        counts.append(total)
        total += i in words
    return counts


def _index_claims(
    names: CapabilityNames, code: str
) -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """Index the phrases that capabilities claim by their first word."""
    index: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for phrase, kind in names.phrases.items():
        key = tuple(token.key for token in split_tokens(phrase, code) if token.is_word)
        if key:
            index.setdefault(key[0], []).append((key, kind))
    return index


def _names_request(phrase: Phrase) -> bool:
    return phrase.category.startswith(("act", "thing", "creative", "make"))


def _classify_gap(gap: str) -> Break:
    if gap in {" ", "", "-", "'"}:
        return Break.NONE
    if _QUOTE_END.fullmatch(gap):
        return Break.COMMA
    if _SENTENCE_END.search(gap):
        return Break.SENTENCE
    if _CLAUSE_END.search(gap):
        return Break.CLAUSE
    return Break.COMMA if _COMMA.search(gap) else Break.NONE
