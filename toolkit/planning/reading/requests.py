"""The pass that finds acts and things where they are asked for, clause by clause."""

import enum
from collections.abc import Sequence

from toolkit.planning.reading.grammar import get_grammar
from toolkit.planning.reading.mentions import (
    ACT_KINDS,
    TRANSFORMING_ACTS,
    Mention,
    UnavailableMention,
    get_kind,
)
from toolkit.planning.reading.noun_phrases import NounPhrase, find_head, read_noun_phrase
from toolkit.planning.reading.scan import Break, Phrase, Scan
from toolkit.planning.reading.verbs import find_verb, has_object

# Acts whose object is what they are about, even where it names something that can be made.
_TALKING_ACTS = frozenset(
    {"explain", "answer", "list", "brainstorm", "compare", "research", "classify"}
)


class Place(enum.Enum):
    """Where in a clause the reader stands."""

    OPEN = "open"  # a request may begin
    OBJECT = "object"  # after a verb
    AFTER = "after"  # after a noun that is asked for
    TOPIC = "topic"  # in words about something
    SUBJECT = "subject"  # after something mentioned before
    STATEMENT = "statement"  # in a clause that asks for nothing


class RequestFinder:
    """Finder of requests: walks the words once and keeps track of its place in the clause.

    Attributes:
        mentions: what is asked for, in order.
        unavailable: what is asked for that nothing here does.
        banned: kinds that are not to be made.
        only: kinds besides which none is to be made.
        facts: tokens where facts or sources are asked for.
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
        self._verb: Phrase | None = None
        self._current: Mention | None = None
        self._clause = 0
        self._end = 0
        self._join = "start"
        self._refers = False
        self._refers_to: str | None = None
        self._each = False
        self._is_only = False

    def find(self) -> None:
        """Walk through all sentences."""
        for start, end in self.scan.find_sentences():
            self._read_sentence(start, end)

    def _read_sentence(self, start: int, end: int) -> None:
        self._clause, self._end = start, end
        self._verb, self._current = None, None
        self._start_clause(start, "start")
        i, place = start, Place.OPEN
        steps = {
            Place.OPEN: self._read_open,
            Place.OBJECT: self._read_object,
            Place.AFTER: self._read_after,
            Place.TOPIC: self._read_topic,
            Place.SUBJECT: self._read_subject,
            Place.STATEMENT: self._read_statement,
        }
        while i < end:
            owner = self.scan.owners[i]
            if owner is not None:
                i, place = self._pass_over(i, owner, place)
                continue
            i, place = steps[place](i)

    def _pass_over(self, i: int, owner: str, place: Place) -> tuple[int, Place]:
        """Step over a word that another pass consumed."""
        if owner == "literal" and place in {Place.OBJECT, Place.OPEN}:
            if self._verb is not None and self._verb.category.startswith("act."):
                self._add_act(self._verb)
                self._verb = None
            return i + 1, Place.AFTER
        if owner == "artifact" and place is Place.OPEN:
            return i + 1, Place.SUBJECT
        if owner == "artifact" and place is Place.OBJECT:
            self._finish_verb()
            return i + 1, Place.AFTER
        if owner == "measure" and place is Place.OPEN and self._current is None:
            return i + 1, Place.OPEN
        return i + 1, place

    def _start_clause(self, i: int, join: str) -> None:
        self._clause, self._join = i, join
        self._refers, self._refers_to, self._each = False, None, False

    # Where a request may begin.

    def _read_open(self, i: int) -> tuple[int, Place]:
        scan = self.scan
        negated = self._read_negation(i)
        if negated is not None:
            return negated
        each = scan.find(i, "join.for_each")
        if each is not None:
            self._each = True
            phrase = read_noun_phrase(scan, each.end) if each.end < self._end else None
            if phrase is not None and phrase.head is not None and self.mentions:
                kind = get_kind(scan, phrase.head)
                if any(_is_same_kind(kind, one) for one in self.mentions):
                    self._refers, self._refers_to = True, kind
                    return phrase.end, Place.OPEN
            return each.end, Place.OPEN
        verb = find_verb(scan, i)
        if verb is not None:
            return self._open_verb(verb)
        skipped = scan.find(i, "polite", "join.then", "join.and")
        if skipped is not None:
            return skipped.end, Place.OPEN
        only = scan.find(i, "negation.only")
        if only is not None:
            self._is_only = True
            return only.end, Place.OPEN
        pronoun = self._find_reference(i)
        if pronoun is not None:
            self._refers, self._refers_to = True, self._get_reference_kind(pronoun)
            return pronoun.end, Place.SUBJECT
        phrase = read_noun_phrase(scan, i)
        if phrase.head is not None and not self._is_statement(phrase):
            if self._is_mentioned(phrase):
                self._refers, self._refers_to = True, get_kind(scan, phrase.head)
                return phrase.end, Place.SUBJECT
            self._add_noun(phrase, phrase.head)
            return self._leave_noun(phrase)
        question = scan.find(i, "question")
        if question is not None and (self._is_at_start(i) or "?" in self._text_after_sentence()):
            return self._open_question(i)
        fact = scan.find(i, "fact")
        if fact is not None and self.mentions:
            self.facts.append(i)
            return fact.end, Place.OPEN
        opening = self._skip_opening_phrase(i)
        if opening is not None:
            return opening, Place.OPEN
        filler = scan.find(i, "filler")
        if filler is not None:
            return filler.end, Place.OPEN
        return self._read_statement(i)

    def _is_at_start(self, i: int) -> bool:
        return all(
            self.scan.has(k, "polite", "join.", "filler", "article") or self.scan.owners[k]
            for k in range(self._clause, i)
        )

    def _text_after_sentence(self) -> str:
        last = self.scan.tokens[self._end - 1].end
        return self.scan.objective[last : last + 3]

    def _skip_opening_phrase(self, i: int) -> int | None:
        """Skip `For our website, …` and `From that, …`: a request follows the comma."""
        scan = self.scan
        if not scan.find(i, "about", "join.from", "join.as", "join.with"):
            return None
        if scan.find(i, "join.from"):
            self._refers = True
        end = scan.find_sentence_end(i, Break.COMMA)
        if end < self._end:
            self._clause = i
            return end
        # "From the answer make a card": no comma, but a verb follows.
        for k in range(i + 1, min(i + 6, self._end)):
            verb = find_verb(scan, k)
            if verb is not None and not verb.is_ambiguous:
                return k
        return None

    def _is_statement(self, phrase: NounPhrase) -> bool:
        """Tell whether a clause that opens with a noun says something instead of asking."""
        k = phrase.end
        if self._verb is not None or k >= self._end or self.scan.breaks[k]:
            return False
        word = self.scan.word(k)
        mentioned = phrase.is_definite and bool(self.mentions)
        return word in self.grammar.finite and not mentioned

    def _is_mentioned(self, phrase: NounPhrase) -> bool:
        """Tell whether a definite noun names what was asked for before."""
        if not phrase.is_definite or phrase.head is None or phrase.count > 1:
            return False
        kind = get_kind(self.scan, phrase.head)
        return any(_is_same_kind(kind, one) for one in self.mentions)

    def _find_reference(self, i: int) -> Phrase | None:
        """Return the pronoun at a word, if there is something that it can stand for."""
        pronoun = self.scan.find(i, "pronoun")
        if pronoun is None:
            return None
        head = self._find_noun_in(pronoun)
        if head is not None:
            kind = get_kind(self.scan, head)
            return pronoun if any(_is_same_kind(kind, one) for one in self.mentions) else None
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

    # Verbs.

    def _open_verb(self, verb: Phrase) -> tuple[int, Place]:
        self._verb = verb
        self._current = None
        if verb.particle is not None:
            self.scan.consume(verb.particle, verb.particle + 1, "act")
        inner = self._find_inner_reference(verb)
        if inner:
            self._refers = True
        if verb.category.startswith("unavailable."):
            self._add_unavailable(verb)
            self._verb = None
            return verb.end, Place.TOPIC
        if verb.category == "kind":
            self._add(Mention(verb.value, verb.start, verb.end, self._clause))
            return verb.end, Place.AFTER
        self.scan.consume(verb.start, verb.end, "act")
        if verb.category.startswith("act.") and self._has_about_inside(verb):
            self._add_act(verb)
            return verb.end, Place.TOPIC
        if inner and verb.category.startswith("act."):
            self._add_act(verb)
            return verb.end, Place.AFTER
        return verb.end, Place.OBJECT

    def _find_inner_reference(self, verb: Phrase) -> bool:
        """Tell whether a pronoun stands inside a verb: `read it aloud`."""
        return any(
            self.scan.has(k, "pronoun") and not find_head(self.scan, k + 1)
            for k in range(verb.start + 1, verb.end)
        )

    def _has_about_inside(self, verb: Phrase) -> bool:
        last = verb.end - 1
        return last > verb.start and any(
            phrase.category == "about" and phrase.end == verb.end
            for phrase in self.scan.phrases(last)
        )

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
        self.mentions.append(mention)
        self.scan.consume(mention.start, mention.end, "request")
        self._current = mention
        if self._is_only:
            self.only.add(mention.kind)
            self._is_only = False
        self._refers, self._refers_to = False, None
        return mention

    # Objects.

    def _read_object(self, i: int) -> tuple[int, Place]:
        scan = self.scan
        if scan.breaks[i] >= Break.CLAUSE:
            self._finish_verb()
            return self._reopen(i) or (i, Place.TOPIC)
        if scan.word(i) in self.grammar.objects and not scan.find(i, "polite"):
            return i + 1, Place.OBJECT
        polite = scan.find(i, "polite", "negation.only")
        if polite is not None:
            self._is_only = self._is_only or polite.category == "negation.only"
            return polite.end, Place.OBJECT
        pronoun = self._find_reference(i)
        if pronoun is not None:
            self._refers, self._refers_to = True, self._get_reference_kind(pronoun)
            self._finish_verb()
            return pronoun.end, Place.AFTER
        if scan.find(i, "about"):
            self._finish_verb()
            return self._read_after(i)
        phrase = read_noun_phrase(scan, i)
        if phrase.head is not None:
            return self._read_object_noun(phrase, phrase.head)
        self._current = None
        had_act = self._verb is not None and self._verb.category.startswith("act.")
        if not had_act:
            self.unknown += phrase.unknown
        self._finish_verb()
        if phrase.end > i and self._current is not None:
            self._note_topic(i, phrase.end)
            self._current.language = self._current.language or phrase.language
        if self._current is None:
            return max(phrase.end, i + 1), Place.AFTER
        return self._read_topic(i) if phrase.end == i else (phrase.end, Place.TOPIC)

    def _read_object_noun(self, phrase: NounPhrase, head: Phrase) -> tuple[int, Place]:
        """Read a noun as the object of the verb before it."""
        scan, verb = self.scan, self._verb
        kind = get_kind(scan, head)
        act = verb.category.removeprefix("act.") if verb and "act." in verb.category else None
        self._verb = None
        if verb is None or act is None:
            if self._is_mentioned(phrase):
                self._refers, self._refers_to = True, kind
                return phrase.end, Place.AFTER
            self._add_noun(phrase, head)
            return self._leave_noun(phrase)
        made = ACT_KINDS[act]
        if self._is_mentioned(phrase) and (made != kind or act in TRANSFORMING_ACTS):
            self._refers, self._refers_to = True, kind
            self._add_act(verb)
            return phrase.end, Place.AFTER
        if made == kind or (act == "write" and kind is not None and kind != "research"):
            self._add_noun(phrase, head, act)
            return self._leave_noun(phrase)
        if act == "write" and head.category == "unavailable.music":
            self._add_noun(phrase, head, act, kind="text")
            return self._leave_noun(phrase)
        if kind is None and act not in _TALKING_ACTS and act not in TRANSFORMING_ACTS:
            self._add_unavailable(head)
            return phrase.end, Place.TOPIC
        if made == "research" and kind == "text" and not phrase.tail:
            self._finish_act(verb, phrase)
            return phrase.start, Place.TOPIC
        if made == "text" and kind == "research":
            mention = self._add_act(verb)
            mention.needs_facts = True
            return phrase.end, Place.AFTER
        if made in {"speech", "card"} and kind is not None and scan.names.can_feed(kind, made):
            part = self._add_noun(phrase, head)
            mention = self._add_act(verb)
            mention.inputs.append(part)
            part.is_delivered = False
            return self._leave_noun(phrase)
        if made in {"image", "speech"} and kind in {"card", "speech", "image"}:
            self._add_noun(phrase, head, act)
            return self._leave_noun(phrase)
        self._finish_act(verb, phrase)
        return phrase.end, Place.TOPIC

    def _finish_act(self, verb: Phrase, phrase: NounPhrase) -> None:
        self._add_act(verb)
        self._note_topic(phrase.start, phrase.end)

    def _add_noun(
        self, phrase: NounPhrase, head: Phrase, act: str | None = None, kind: str | None = None
    ) -> Mention:
        """Add what a noun asks for; `quote card` asks for a card made of a quote."""
        scan = self.scan
        kind = kind or get_kind(scan, head)
        if kind is None:
            self._add_unavailable(head)
            return Mention("", head.start, head.end, self._clause)
        each = scan.find(phrase.start, "join.for_each") is not None
        return self._add(
            Mention(
                kind,
                head.start,
                head.end,
                self._clause,
                act=act,
                form=scan.text(head.start, head.end),
                is_creative=scan.has(head.start, "creative"),
                count=phrase.count,
                each=each,
                language=phrase.language,
                attributes=phrase.attributes,
            )
        )

    def _leave_noun(self, phrase: NounPhrase) -> tuple[int, Place]:
        if phrase.tail is not None:
            return phrase.tail, Place.TOPIC
        return phrase.end, Place.AFTER

    # After a noun that is asked for, and in its topic.

    def _read_after(self, i: int) -> tuple[int, Place]:
        scan = self.scan
        opened = self._reopen(i)
        if opened is not None:
            return opened
        each = scan.find(i, "join.for_each")
        if each is not None and self._current is not None:
            self._current.each = True
            return each.end, Place.TOPIC
        about = scan.find(i, "about")
        if about is not None:
            pronoun = self._find_reference(about.end) if about.end < self._end else None
            if pronoun is not None and self._current is not None:
                self._current.refers = True
                self._current.refers_to = self._get_reference_kind(pronoun)
                return pronoun.end, Place.AFTER
            return about.end, Place.TOPIC
        said = scan.find(i, "title", "polite", "filler")
        if said is not None:
            return said.end, Place.AFTER
        return self._read_detail(i) or self._read_topic(i)

    def _read_topic(self, i: int) -> tuple[int, Place]:
        scan = self.scan
        opened = self._reopen(i)
        if opened is not None:
            return opened
        if scan.breaks[i] >= Break.COMMA or scan.has(i, "join.", "attribute.", "language"):
            detail = self._read_detail(i)
            if detail is not None:
                return detail
        self._note_topic(i, i + 1)
        return i + 1, Place.TOPIC

    def _read_detail(self, i: int) -> tuple[int, Place] | None:
        """Read a language, a colour or a call for facts, which say how and not about what."""
        scan = self.scan
        language = scan.find(i, "language")
        if language is not None and self._current is not None and self._ends_here(language):
            self._current.language = language.value
            scan.consume(language.start, language.end, "language")
            return language.end, Place.AFTER
        attribute = scan.find(i, "attribute.")
        if attribute is not None and self._ends_here(attribute):
            if self._current is not None:
                self._current.attributes.append(i)
                scan.consume(attribute.start, attribute.end, "attribute")
            return attribute.end, Place.AFTER
        fact = scan.find(i, "fact")
        if fact is not None and (scan.breaks[i] or fact.end - fact.start > 1):
            self.facts.append(i)
            scan.consume(fact.start, fact.end, "fact")
            return fact.end, Place.AFTER
        return None

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

    def _reopen(self, i: int) -> tuple[int, Place] | None:
        """Begin another request in the middle of a sentence, where the words clearly ask for it."""
        scan = self.scan
        negated = self._read_negation(i)
        if negated is not None:
            return negated
        gap = scan.breaks[i]
        k, join = i, "and" if gap else ""
        while k < self._end and scan.is_free(k) and (k == i or not scan.breaks[k]):
            step = scan.find(k, "join.then", "join.and", "join.with", "join.as", "polite")
            if step is None:
                break
            kind = step.category.removeprefix("join.")
            if kind != "polite":
                join = kind if join in {"", "and", "then"} else join
            else:
                join = join or "want"
            k = step.end
        if not join or k >= self._end:
            return None
        return self._try_request(i, k, join, firm=gap >= Break.CLAUSE)

    def _try_request(self, i: int, k: int, join: str, firm: bool) -> tuple[int, Place] | None:
        scan = self.scan
        if not scan.is_free(k):
            return None
        verb = find_verb(scan, k) if join != "with" and join != "as" else None
        if verb is not None and self._is_asked(verb, join, firm):
            self._start_clause(i, "and")
            return self._open_verb(verb)
        only = scan.find(k, "negation.only")
        k = only.end if only is not None and only.end < self._end else k
        phrase = read_noun_phrase(scan, k)
        if phrase.head is None or len(phrase.unknown) > 3:
            return None
        named = phrase.has_article or phrase.count > 1 or phrase.attributes
        ends = phrase.end >= self._end or bool(scan.breaks[phrase.end])
        bare = join in {"with", "as"} or firm or phrase.start in self._measured_places(k)
        if not (named or bare or ends) or (phrase.tail is not None and not named):
            return None
        if phrase.is_definite and join == "with":
            return None
        if self._is_mentioned(phrase):
            return None
        if join == "as" and not self._converts(phrase):
            return None
        refers = join == "as"
        self._start_clause(i, join)
        self._is_only = self._is_only or only is not None
        self._refers = refers
        self._add_noun(phrase, phrase.head)
        return self._leave_noun(phrase)

    def _measured_places(self, k: int) -> Sequence[int]:
        return (k,) if self.scan.owners[k] == "measure" else ()

    def _converts(self, phrase: NounPhrase) -> bool:
        """Tell whether `as` or `on` hands what was asked for on to a noun."""
        if phrase.head is None:
            return False
        kind = get_kind(self.scan, phrase.head)
        if kind is None:
            return phrase.head.category in {"unavailable.video", "unavailable.document"}
        if not self.mentions and not self._refers:
            return kind in {"card", "speech"}
        return kind in {"card", "speech"} or any(
            self.scan.names.can_feed(one.kind, kind) and one.kind != kind for one in self.mentions
        )

    def _is_asked(self, verb: Phrase, join: str, firm: bool) -> bool:
        """Tell whether a verb in the middle of a sentence asks for something."""
        if join in {"then", "want"} or firm:
            return True
        k = verb.end
        if self._find_inner_reference(verb):
            return True
        if k >= self._end or self.scan.breaks[k]:
            return verb.end - verb.start > 1 or self.scan.owners[verb.start - 1] is not None
        scan = self.scan
        if scan.owners[k] is not None or scan.has(k, "article", "pronoun", "number", "language"):
            return True
        if scan.word(k) in self.grammar.objects or verb.category.startswith("unavailable."):
            return True
        return has_object(scan, k) and not verb.is_ambiguous and not self._current_is_topic()

    def _current_is_topic(self) -> bool:
        return self._current is not None and bool(self._current.topics)

    # Statements, questions, negations.

    def _read_subject(self, i: int) -> tuple[int, Place]:
        """Read on after something mentioned before: `The summary should go on a card`."""
        scan = self.scan
        opened = self._read_negation(i)
        if opened is not None:
            return opened
        verb = find_verb(scan, i) or scan.find(i, "act.speak", "act.translate", "unavailable.")
        refers_to = self._refers_to
        if verb is not None and verb.category != "make":
            if verb.category.startswith("unavailable."):
                self._add_unavailable(verb)
                return verb.end, Place.TOPIC
            self._refers = True
            self._add_act(verb)
            return verb.end, Place.AFTER
        join = scan.find(i, "join.as", "join.with")
        k = join.end if join is not None else i
        phrase = read_noun_phrase(scan, k) if k < self._end else None
        if phrase is not None and phrase.head is not None and not self._is_mentioned(phrase):
            kind = get_kind(scan, phrase.head)
            if kind is None or self._converts(phrase) or phrase.has_article:
                self._refers, self._refers_to = True, refers_to
                self._add_noun(phrase, phrase.head)
                return self._leave_noun(phrase)
        return self._read_statement(i, Place.SUBJECT)

    def _read_statement(self, i: int, place: Place = Place.STATEMENT) -> tuple[int, Place]:
        """Step through a clause that asks for nothing until one does."""
        scan = self.scan
        polite = scan.find(i, "polite")
        if polite is not None:
            self._start_clause(i, "start")
            return polite.end, Place.OPEN
        if scan.breaks[i] >= Break.COMMA and i > self._clause:
            opened = self._reopen(i)
            if opened is not None:
                return opened
            if scan.breaks[i] == Break.CLAUSE:
                self._start_clause(i, "and")
                return i, Place.OPEN
        return i + 1, place

    def _open_question(self, i: int) -> tuple[int, Place]:
        mention = Mention("text", i, i, self._clause, act="answer", is_question=True)
        self._add(mention)
        self._note_topic(i, i + 1)
        return i + 1, Place.TOPIC

    def _read_negation(self, i: int) -> tuple[int, Place] | None:
        """Read what is not wanted; a double negation wants it."""
        scan = self.scan
        negation = scan.find(i, "negation.before")
        if negation is None or "negations" in self._without:
            return None
        second = scan.find(negation.end, "negation.before") if negation.end < self._end else None
        if second is not None and not scan.breaks[negation.end]:
            scan.consume(i, second.end, "negation")
            self._verb = None
            return second.end, Place.OBJECT
        end = scan.find_sentence_end(negation.end - 1, Break.COMMA)
        kinds, last = self._find_negated(negation.end, min(end, self._end))
        if last is None:
            return None
        self.banned |= kinds
        scan.consume(i, last, "negation")
        return last, Place.AFTER if self._current is not None else Place.OPEN

    def _find_negated(self, start: int, end: int) -> tuple[set[str], int | None]:
        """Find the kinds that a negation bans, and where it ends."""
        scan = self.scan
        kinds: set[str] = set()
        last = None
        k = start
        while k < end:
            head = find_head(scan, k)
            verb = find_verb(scan, k) or scan.find(k, "act.")
            named = head or (verb if verb is not None and verb.category != "make" else None)
            if named is not None:
                kind = get_kind(scan, named)
                if kind is not None:
                    kinds.add(kind)
                last = k = named.end
                continue
            if last is not None:
                if not scan.find(k, "join.and") and scan.word(k) not in {"or", "nor"}:
                    break
                k += 1
                continue
            if not scan.has(k, "article", "filler", "make", "polite", "function_word", "pronoun"):
                return kinds, None
            if scan.find(k, "about"):
                return kinds, None
            k += 1
        return kinds, last if last is not None else None


def _is_same_kind(kind: str | None, mention: Mention) -> bool:
    return mention.kind == kind or (kind == "speech" and mention.kind == "clone")
