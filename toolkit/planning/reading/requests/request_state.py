"""The state of reading requests: what was found so far, and where in a clause the reader stands."""

import enum

from toolkit.planning.reading.requests.mentions import (
    ACT_KINDS,
    Mention,
    UnavailableMention,
    get_kind,
)
from toolkit.planning.reading.spans.measures import read_quantity
from toolkit.planning.reading.spans.noun_phrases import NounPhrase, find_head
from toolkit.planning.reading.spans.scan import Break, Phrase, Scan
from toolkit.planning.reading.spans.verbs import find_verb
from toolkit.planning.reading.words.grammar import get_grammar


class Place(enum.Enum):
    """Where in a clause the reader stands."""

    OPEN = "open"  # a request may begin
    OBJECT = "object"  # after a verb
    AFTER = "after"  # after a noun that is asked for
    TOPIC = "topic"  # in words about something
    SUBJECT = "subject"  # after something mentioned before
    STATEMENT = "statement"  # in a clause that asks for nothing


class RequestState:
    """What was found so far in an objective, and the state of the clause that is read.

    Attributes:
        mentions: what is asked for, in order.
        unavailable: what is asked for that nothing here does.
        banned: kinds that are not to be made.
        only: kinds besides which none is to be made.
        facts: tokens where facts or sources are asked for.
        unknown_work: what that would be if it were a text.
        unknown: tokens of a thing that is asked for and that no lexicon knows.
    """

    def __init__(self, scan: Scan, without: frozenset[str] = frozenset()) -> None:
        self.scan = scan
        self._without = without
        self.grammar = get_grammar(scan.lexicon.code)
        self.mentions: list[Mention] = []
        self.unavailable: list[UnavailableMention] = []
        self.banned: set[str] = set()
        self.only: set[str] = set()
        self.facts: list[int] = []
        self.unknown: list[int] = []
        self.unknown_work: Mention | None = None
        self._verb: Phrase | None = None
        self._current: Mention | None = None
        self._clause = 0
        self._end = 0
        self._join = "start"
        self._refers = False
        self._refers_to: str | None = None
        self._each = False
        self._is_only = False
        self._unknown_count = 1
        self._wants = False
        self._hands_over = False
        self._ends_in_verb = False
        self.unknown_verb: int | None = None
        self._verb_place: int | None = None
        self._is_verb_unknown = False

    def _start_clause(self, i: int, join: str) -> None:
        self._clause, self._join = i, join
        self._refers, self._refers_to, self._each = False, None, False
        self._wants = False

    def _has_found(self) -> bool:
        """Tell whether anything is asked for so far."""
        return bool(self.mentions or self.unavailable)

    def _count_found(self) -> int:
        """Count what is asked for so far, be it there to be had or not."""
        return len(self.mentions) + len(self.unavailable)

    def _skip_items(self, i: int) -> int:
        """Return where the words after a list begin: `for each of the rivers Ebro and Po, …`."""
        items = [k for k in range(i, self._end) if self.scan.owners[k] == "item"]
        return items[-1] + 1 if items else i

    def _says_first(self) -> bool:
        """Tell whether a clause ends or opens with `first`, after something was asked for."""
        scan, start = self.scan, self._clause
        end = scan.find_sentence_end(start, Break.CLAUSE)
        return any(
            scan.word(k) in self.grammar.earlier
            and (k <= start + 1 or k + 1 >= end or scan.breaks[k + 1] >= Break.COMMA)
            for k in range(start, end)
        )

    def _skip_each(self, i: int) -> int:
        """Return where the words of what each is of end: `for each city write …`."""
        for k in range(i + 1, min(i + 4, self._end)):
            if self.scan.breaks[k] or self.scan.owners[k] == "item":
                break
            if find_verb(self.scan, k) is not None:
                return k
        return self._skip_items(i)

    def _has_question_mark(self) -> bool:
        last = self.scan.tokens[self._end - 1].end
        return any(mark in self.scan.objective[last : last + 3] for mark in "?？؟")

    def _is_mentioned(self, phrase: NounPhrase) -> bool:
        """Tell whether a definite noun names what was asked for before."""
        if phrase.head is None or phrase.count > 1:
            return False
        # "one text per language" says again of what was asked for how it is spread.
        number, _ = read_quantity(self.scan, phrase.start)
        again = number == 1 and self.scan.has(phrase.end, "join.for_each")
        if not phrase.is_definite and not again:
            return False
        kind = get_kind(self.scan, phrase.head)
        return any(is_same_kind(kind, one) for one in self.mentions)

    def _find_reference(self, i: int) -> Phrase | None:
        """Return the pronoun at a word, if there is something that it can stand for."""
        pronoun = self.scan.find(i, "pronoun")
        if pronoun is None:
            return None
        head = self._find_noun_in(pronoun)
        if head is not None:
            kind = get_kind(self.scan, head)
            return pronoun if any(is_same_kind(kind, one) for one in self.mentions) else None
        if pronoun.end < self._end and self._starts_noun(pronoun.end):
            return None  # "this poem", "that picture": a determiner
        return pronoun

    def _starts_noun(self, i: int) -> bool:
        return self.scan.breaks[i] == Break.NONE and find_head(self.scan, i) is not None

    def _find_noun_in(self, pronoun: Phrase) -> Phrase | None:
        for k in range(pronoun.start, pronoun.end):
            head = find_head(self.scan, k)
            if head is not None and head.end <= pronoun.end:
                return head
        return None

    def _get_reference_kind(self, pronoun: Phrase) -> str | None:
        head = self._find_noun_in(pronoun)
        return get_kind(self.scan, head) if head is not None else None

    def _add_act(self, verb: Phrase) -> Mention:
        act = verb.category.removeprefix("act.")
        mention = Mention(ACT_KINDS[act], verb.start, verb.end, self._clause, act=act)
        return self._add(mention)

    def _finish_verb(self) -> None:
        """Take a verb whose object names nothing to be made for the request itself."""
        verb, self._verb = self._verb, None
        if verb is not None and verb.category.startswith("act."):
            self._add_act(verb)

    def _add_unavailable(self, phrase: Phrase) -> None:
        kind = get_kind(self.scan, phrase)
        if kind is not None:
            self._add(Mention(kind, phrase.start, phrase.end, self._clause))
            return
        key = phrase.category.partition(".")[2]
        self.unavailable.append(UnavailableMention(key, phrase.start, phrase.end))
        self.scan.consume(phrase.start, phrase.end, "unavailable")
        self._current = None

    def _add(self, mention: Mention) -> Mention:
        mention.join = self._join
        mention.refers = mention.refers or self._refers
        mention.refers_to = mention.refers_to or self._refers_to
        mention.each = mention.each or self._each
        mention.is_part = mention.is_part or self._join == "with"
        mention.is_earlier = bool(self.mentions) and self._says_first()
        self.mentions.append(mention)
        self.scan.consume(mention.start, mention.end, "request")
        self._current = mention
        if self._is_only:
            self.only.add(mention.kind)
            self._is_only = False
        self._refers, self._refers_to = False, None
        return mention

    def _finish_act(self, verb: Phrase, phrase: NounPhrase) -> None:
        self._add_act(verb)
        self._note_topic(phrase.start, phrase.end)

    def _leave_noun(self, phrase: NounPhrase) -> tuple[int, Place]:
        if phrase.tail is not None:
            return phrase.tail, Place.TOPIC
        return phrase.end, Place.AFTER

    def _ends_here(self, phrase: Phrase) -> bool:
        """Tell whether a phrase stands by itself, and is not the first part of a longer one."""
        k = phrase.end
        if k >= self._end or self.scan.breaks[k] or self.scan.owners[k]:
            return True
        return self.scan.has(k, "join.", "about", "polite", "function_word", "negation")

    def _note_topic(self, start: int, end: int) -> None:
        mention = self._current
        if mention is None:
            return
        if mention.topics and mention.topics[-1][1] == start:
            mention.topics[-1] = (mention.topics[-1][0], end)
        else:
            mention.topics.append((start, end))


def is_same_kind(kind: str | None, mention: Mention) -> bool:
    """Tell whether a mention is of a kind; a voice is speech until it is cloned."""
    return mention.kind == kind or (kind == "speech" and mention.kind == "clone")
