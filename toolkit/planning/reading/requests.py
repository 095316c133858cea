"""The pass that finds acts and things where they are asked for, clause by clause."""

import enum
from collections.abc import Sequence
from dataclasses import replace

from toolkit.planning.reading.grammar import get_grammar
from toolkit.planning.reading.mentions import (
    ACT_KINDS,
    TRANSFORMING_ACTS,
    Mention,
    UnavailableMention,
    get_kind,
)
from toolkit.planning.reading.noun_phrases import (
    UNAVAILABLE_NOUNS,
    NounPhrase,
    find_head,
    read_noun_phrase,
)
from toolkit.planning.reading.scan import Break, Phrase, Scan
from toolkit.planning.reading.verbs import find_verb, has_clitic, has_object, is_unknown_verb

# Acts whose object is what they are about, even where it names something that can be made.
_TALKING_ACTS = frozenset(
    {"explain", "answer", "list", "brainstorm", "compare", "research", "classify"}
)


# What says how something is made, wherever it stands.
_DETAILS = ("join.", "attribute.", "language", "act.clone")


# Pictures that have to be right, and not only to look like what they show.
_DRAWN_BY_NUMBERS = frozenset({"unavailable.chart", "unavailable.qr_code"})
# What something made can be turned into, if only something here did that.
_TURNED_INTO = frozenset(
    {
        "unavailable.video",
        "unavailable.document",
        "unavailable.slides",
        "unavailable.spreadsheet",
        "unavailable.website",
        "unavailable.chart",
        "unavailable.model_3d",
        "unavailable.music",
        "unavailable.map",
    }
)
_FILES = frozenset(
    {
        "unavailable.document",
        "unavailable.spreadsheet",
        "unavailable.slides",
        "unavailable.website",
        "unavailable.read_file",
    }
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
        self._unknown_count = 1
        self._wants = False
        self._hands_over = False
        self.unknown_verb: int | None = None
        self._verb_place: int | None = None
        self._is_verb_unknown = False

    def find(self) -> None:
        """Walk through all sentences."""
        for start, end in self.scan.find_sentences():
            self._read_sentence(start, end)

    def _read_sentence(self, start: int, end: int) -> None:
        self._clause, self._end = start, end
        self._verb, self._current, self._hands_over = None, None, False
        self._verb_place, self._is_verb_unknown = None, False
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
        found = len(self.mentions) + len(self.unavailable)
        while i < end:
            owner = self.scan.owners[i]
            if owner is not None:
                i, place = self._pass_over(i, owner, place)
                continue
            i, place = steps[place](i)
        self._finish_verb()
        if len(self.mentions) + len(self.unavailable) == found and self._has_question_mark():
            self._ask_whole_sentence(start, end)
        self._check_question(start, end)
        if len(self.mentions) + len(self.unavailable) == found:
            self._check_edit(start, end)
        if len(self.mentions) + len(self.unavailable) == found:
            self._check_objects(start, end)

    def _check_objects(self, start: int, end: int) -> None:
        """Look for what nothing here does in a sentence that asks for something unknown."""
        scan = self.scan
        stating = self.grammar.subject | self.grammar.finite
        if self._verb_place is None or any(scan.word(k) in stating for k in range(start, end)):
            return
        for k in range(self._verb_place, end):
            head = find_head(scan, k)
            if head is not None and head.category.startswith("unavailable."):
                self._add_unavailable(head)
                return

    def _check_edit(self, start: int, end: int) -> None:
        """Take a sentence that does something else with an artifact for an edit of it."""
        scan = self.scan
        owners = scan.owners[start:end]
        if "artifact" not in owners or "negation" in owners or self._verb_place is None:
            return
        stated = any(scan.word(k) in self.grammar.finite for k in range(start, end))
        if not stated:
            self.unavailable.append(UnavailableMention("edit_image", start, end))

    def _ask_whole_sentence(self, start: int, end: int) -> None:
        """Take a sentence with a question mark for a question, if it has words of its own."""
        known = [k for k in range(start, end) if self.scan.has(k, "function_word", "question")]
        if any(not self.scan.has(k, "polite") for k in known):
            self._start_clause(start, "start")
            self._open_question(start)
            self._note_topic(start, end)

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
        self._wants = False

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
            return self._skip_items(each.end), Place.OPEN
        verb = find_verb(scan, i)
        if verb is not None:
            return self._open_verb(verb)
        skipped = scan.find(i, "polite", "join.then", "join.and")
        if skipped is not None:
            self._wants = self._wants or skipped.category == "polite"
            return skipped.end, Place.OPEN
        only = scan.find(i, "negation.only")
        if only is not None:
            self._is_only = True
            if only.end - i > 1 and find_head(scan, only.end - 1) is not None:
                return i + 1, Place.OPEN
            limited = read_noun_phrase(scan, only.end) if only.end < self._end else None
            if limited is not None and limited.head is not None:
                kind = get_kind(scan, limited.head)
                if any(_is_same_kind(kind, one) for one in self.mentions):
                    self.only.add(kind or "")
                    self._is_only = False
                    return limited.end, Place.STATEMENT
            return only.end, Place.OPEN
        pronoun = self._find_reference(i)
        if pronoun is not None:
            self._refers, self._refers_to = True, self._get_reference_kind(pronoun)
            return pronoun.end, Place.SUBJECT
        phrase = read_noun_phrase(scan, i)
        if is_unknown_verb(scan, i) and not self._find_reference(i):
            return self._open_unknown_verb(i)
        if phrase.head is not None and not self._is_statement(phrase):
            if self._is_mentioned(phrase):
                self._refers, self._refers_to = True, get_kind(scan, phrase.head)
                return phrase.end, Place.SUBJECT
            self._add_noun(phrase, phrase.head)
            return self._leave_noun(phrase)
        question = scan.find(i, "question")
        if question is not None and self._opens_question(i):
            return self._open_question(i)
        fact = self._find_fact(i)
        if fact is not None:
            return fact, Place.OPEN
        if phrase.head is None and phrase.language and self._wants and self.mentions:
            return self._add_translation(phrase)
        if phrase.head is None and self._wants and phrase.has_article:
            if self._names_work(phrase):
                return self._add_unknown_work(phrase)
            if phrase.unknown:
                self.unknown += phrase.unknown
                self._current = None
                return phrase.end, Place.AFTER
        if self._is_unknown_verb(i):
            return self._hand_over(i)
        opening = self._skip_opening_phrase(i)
        if opening is not None:
            return opening, Place.OPEN
        if (
            scan.word(i) in self.grammar.finite
            and i > self._clause
            and scan.has(i - 1, "filler", "polite", "pronoun")
        ):
            return i + 1, Place.OPEN
        filler = scan.find(i, "filler")
        if filler is not None:
            return filler.end, Place.OPEN
        return self._read_statement(i)

    def _find_fact(self, i: int) -> int | None:
        """Return where a short call for facts ends: `Use sources.`"""
        if not self.mentions:
            return None
        for k in (i, i + 1):
            fact = self.scan.find(k, "fact") if k < self._end else None
            if fact is not None and (k == i or self.scan.find(i, "join.from", "join.with")):
                self.facts.append(k)
                self.scan.consume(i, fact.end, "fact")
                return fact.end
        return None

    def _open_unknown_verb(self, i: int) -> tuple[int, Place]:
        """Look for what nothing here does among the objects of a verb that nobody knows."""
        scan = self.scan
        end = scan.find_sentence_end(i, Break.COMMA)
        for k in range(i + 1, min(end, self._end)):
            head = find_head(scan, k)
            if head is not None and head.category.startswith("unavailable."):
                self._add_unavailable(head)
                return end, Place.TOPIC
        if not self.mentions and self.unknown_verb is None:
            self.unknown_verb = i
        self._verb, self._verb_place, self._is_verb_unknown = None, i, True
        return i + 1, Place.OBJECT

    def _hand_over(self, i: int) -> tuple[int, Place]:
        """Read a verb that no lexicon knows and whose object was mentioned before.

        It may lead to something known: `set it on a card`. If it takes what was made somewhere
        else, as in `hang it up in the hallway`, nothing here does that.
        """
        scan = self.scan
        self._verb, self._verb_place = None, i
        causes = scan.word(i) in self.grammar.causatives and bool(self.mentions)
        styles = scan.owners[i + 1] == "artifact" or scan.word(i) in self.grammar.styling
        if (styles and not causes) or not self.mentions:
            return i + 1, Place.OBJECT
        k = i + 2
        while k < self._end and not scan.breaks[k] and scan.word(k) in self.grammar.particles:
            k += 1
        end = scan.find_sentence_end(i, Break.COMMA)
        known = any(
            find_head(scan, n) or scan.has(n, "act.", "unavailable.") for n in range(i + 1, end)
        )
        if causes and known:
            self._refers = True
            return k, Place.SUBJECT
        led = causes or scan.word(k) in self.grammar.leading
        if led and not known and k < end and not scan.has(k, "article"):
            self.unavailable.append(UnavailableMention("handle", i, min(k + 1, self._end)))
            return min(k + 1, self._end), Place.TOPIC
        return i + 1, Place.OBJECT

    def _skip_items(self, i: int) -> int:
        """Return where the words after a list begin: `for each of the rivers Ebro and Po, …`."""
        items = [k for k in range(i, self._end) if self.scan.owners[k] == "item"]
        return items[-1] + 1 if items else i

    def _opens_question(self, i: int) -> bool:
        """Tell whether a question begins at a word: with a question mark, or with `why`."""
        if self._has_question_mark():
            return True
        if self.scan.word(i) in self.grammar.conditions:
            return False
        if self.scan.word(i) in self.grammar.finite:
            return False
        return any(
            one.category == "question" and (one.end == i + 1 or self.scan.has(i, "act."))
            for one in self.scan.phrases(i)
        )

    def _has_question_mark(self) -> bool:
        last = self.scan.tokens[self._end - 1].end
        return any(mark in self.scan.objective[last : last + 3] for mark in "?？؟")

    def _is_unknown_verb(self, i: int) -> bool:
        """Tell whether an unknown word stands where a verb does: `Load it into …`."""
        scan = self.scan
        k = i + 1
        if k >= self._end or scan.breaks[k] or scan.has(i, "function_word", "article", "pronoun"):
            return False
        if scan.owners[k] == "artifact":
            return True
        return scan.word(k) in self.grammar.pronouns

    def _skip_opening_phrase(self, i: int) -> int | None:
        """Skip `For our website, …` and `From that, …`: a request follows the comma."""
        scan = self.scan
        if not scan.find(i, "about", "join.from", "join.as", "join.with"):
            return None
        if scan.find(i, "join.from"):
            self._refers = True
            last = scan.find_sentence_end(i, Break.COMMA)
            self.facts += [k for k in range(i, last) if scan.has(k, "fact")][:1]
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
        mentioned = phrase.is_definite and bool(self.mentions)
        if self.scan.word(k) in self.grammar.finite and not mentioned:
            return True
        # "a clean sample of it is art_…" says which artifact is which.
        return any(
            self.scan.word(n) in self.grammar.finite and self.scan.owners[n + 1] == "artifact"
            for n in range(k, self._end - 1)
        )

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
        self._verb, self._verb_place = verb, verb.start
        self._current = None
        if verb.particle is not None:
            self.scan.consume(verb.particle, verb.particle + 1, "act")
        inner = self._find_inner_reference(verb) or has_clitic(self.scan, verb)
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
        has_about = self._has_about_inside(verb)
        end = verb.end + self._has_hyphen_pronoun(verb.end)
        if verb.category.startswith("act.") and (has_about or inner):
            self._finish_verb()
            return end, Place.TOPIC if has_about else Place.AFTER
        return end, Place.OBJECT

    def _find_inner_reference(self, verb: Phrase) -> bool:
        """Tell whether a pronoun is part of a verb: `read it aloud`, `léelo`, `lis-le`."""
        if verb.value in self.grammar.enclitics or self._has_hyphen_pronoun(verb.end):
            return True
        return any(
            self._has_hyphen_pronoun(k)
            or (self.scan.has(k, "pronoun") and not find_head(self.scan, k + 1))
            for k in range(verb.start + 1, verb.end)
        )

    def _has_hyphen_pronoun(self, k: int) -> bool:
        scan = self.scan
        return k < len(scan) and scan.word(k) in self.grammar.enclitics and scan.gap(k) == "-"

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
        skipped = self.grammar.objects | self.grammar.particles
        if scan.word(i) in skipped and not scan.find(i, "polite", "join.as"):
            return i + 1, Place.OBJECT
        polite = scan.find(i, "polite", "negation.only")
        if polite is not None:
            self._is_only = self._is_only or polite.category == "negation.only"
            return polite.end, Place.OBJECT
        pronoun = self._find_reference(i)
        if pronoun is not None:
            self._refers, self._refers_to = True, self._get_reference_kind(pronoun)
            self._hands_over = self._verb is None or self._verb.category == "make"
            self._finish_verb()
            return pronoun.end, Place.AFTER
        if scan.find(i, "about"):
            self._finish_verb()
            return self._read_after(i)
        phrase = read_noun_phrase(scan, i)
        if phrase.head is not None:
            return self._read_object_noun(phrase, phrase.head)
        self._current = None
        if self._names_work(phrase):
            return self._add_unknown_work(phrase)
        if phrase.language and not phrase.unknown:
            return self._add_translation(phrase)
        had_act = self._verb is not None and self._verb.category.startswith("act.")
        if not had_act:
            self.unknown += phrase.unknown
            self._unknown_count = phrase.count
        elif phrase.is_definite and self._works_on_given(phrase):
            self._refers = True
            self._finish_verb()
            return phrase.end, Place.AFTER
        self._finish_verb()
        if phrase.end > i and self._current is not None:
            self._note_topic(i, phrase.end)
            self._current.language = self._current.language or phrase.language
        if self._current is None:
            return max(phrase.end, i + 1), Place.AFTER
        return self._read_topic(i) if phrase.end == i else (phrase.end, Place.TOPIC)

    def _names_work(self, phrase: NounPhrase) -> bool:
        """Tell whether a noun is a work, though no lexicon has it: it is `about` something."""
        if self._verb is not None and self._verb.category.startswith("act."):
            return False
        if not phrase.unknown:
            return False
        if phrase.count > 1 and self._verb is not None:
            return True
        about = self.scan.find(phrase.end, "about")
        return about is not None and not self.scan.has(phrase.end, "join.")

    def _add_unknown_work(self, phrase: NounPhrase) -> tuple[int, Place]:
        self._verb = None
        first, last = phrase.unknown[-1], phrase.end
        mention = Mention("text", first, last, self._clause, form=self.scan.text(first, last))
        mention.listed = phrase.count
        self._add(mention)
        return phrase.end, Place.AFTER

    def _add_translation(self, phrase: NounPhrase) -> tuple[int, Place]:
        """Add what `a French version` asks for: a translation of what was made before."""
        verb, self._verb = self._verb, None
        act = "translate" if verb is None or verb.category == "make" else verb.category[4:]
        mention = Mention(ACT_KINDS.get(act, "text"), phrase.start, phrase.end, self._clause)
        mention.act, mention.language = act, phrase.language
        mention.refers = act == "translate"
        self._add(mention)
        return phrase.end, Place.AFTER

    def _works_on_given(self, phrase: NounPhrase) -> bool:
        """Tell whether `the line` stands for what was quoted or made before."""
        act = self._verb.category[4:] if self._verb is not None else ""
        if act not in TRANSFORMING_ACTS | {"speak", "lay_out"}:
            return False
        given = bool(self.mentions) or "literal" in self.scan.owners[: phrase.start]
        rest = phrase.end
        return given and (rest >= self._end or not self.scan.find(rest, "about"))

    def _read_object_noun(self, phrase: NounPhrase, head: Phrase) -> tuple[int, Place]:
        """Read a noun as the object of the verb before it."""
        scan, verb = self.scan, self._verb
        kind = get_kind(scan, head)
        act = verb.category.removeprefix("act.") if verb and "act." in verb.category else None
        self._verb = None
        is_there = phrase.is_definite or phrase.is_possessive
        if self._is_verb_unknown and is_there and not self.mentions:
            self.unavailable.append(UnavailableMention("handle", phrase.start, phrase.end))
            return phrase.end, Place.TOPIC
        if verb is None or act is None:
            if self._is_mentioned(phrase):
                self._refers, self._refers_to = True, kind
                return phrase.end, Place.AFTER
            self._add_noun(phrase, head)
            return self._leave_noun(phrase)
        made = ACT_KINDS[act]
        if act in {"speak", "lay_out"} and not phrase.has_article:
            phrase.is_definite = True
        if self._is_mentioned(phrase) and (made != kind or act in TRANSFORMING_ACTS):
            self._refers, self._refers_to = True, kind
            self._add_act(verb)
            return phrase.end, Place.AFTER
        if made == kind or (act == "write" and kind is not None and kind != "research"):
            self._add_noun(phrase, head, act)
            return self._leave_noun(phrase)
        if kind is None and self._reads_file(phrase, head, act):
            self._add_unavailable(replace(head, category="unavailable.read_file"))
            return phrase.end, Place.TOPIC
        if act == "write" and head.category == "unavailable.database":
            self._add_noun(phrase, head, act, kind="text")
            return self._leave_noun(phrase)
        unseen = self._find_unseen(phrase, kind, made)
        if unseen is not None:
            self._add_unavailable(replace(head, category=unseen))
            return phrase.end, Place.TOPIC
        is_motif = act == "draw" and head.category not in _DRAWN_BY_NUMBERS
        if kind is None and act not in _TALKING_ACTS | TRANSFORMING_ACTS and not is_motif:
            self._add_unavailable(head)
            return phrase.end, Place.TOPIC
        if made == "research" and kind == "text" and not phrase.tail:
            self._finish_act(verb, phrase)
            return phrase.end, Place.TOPIC
        if act == "list" and kind == "research":
            self._add_noun(phrase, head)
            return self._leave_noun(phrase)
        if made == "text" and kind == "research":
            mention = self._add_act(verb)
            mention.needs_facts = True
            return phrase.end, Place.AFTER
        if made in {"speech", "card"} and "literal" in scan.owners[phrase.end : self._end]:
            self._add_act(verb)
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

    def _find_unseen(self, phrase: NounPhrase, kind: str | None, made: str) -> str | None:
        """Return what it takes to work on a picture or a recording of somebody's."""
        is_there = phrase.is_possessive or (phrase.is_definite and not phrase.tail)
        if made not in {"text", "research"} or not is_there or self._is_mentioned(phrase):
            return None
        return {"image": "unavailable.look_at_image", "speech": "unavailable.transcribe"}.get(
            kind or ""
        )

    def _reads_file(self, phrase: NounPhrase, head: Phrase, act: str) -> bool:
        """Tell whether a verb works on a file of somebody's: `sum the PDF up`."""
        is_file = head.category in _FILES and (phrase.is_definite or phrase.is_possessive)
        return is_file and act not in {"write", "draw", "lay_out", "research"}

    def _finish_act(self, verb: Phrase, phrase: NounPhrase) -> None:
        self._add_act(verb)
        self._note_topic(phrase.start, phrase.end)

    def _add_noun(
        self, phrase: NounPhrase, head: Phrase, act: str | None = None, kind: str | None = None
    ) -> Mention:
        """Add what a noun asks for; `quote card` asks for a card made of a quote."""
        scan = self.scan
        kind = kind or get_kind(scan, head)
        if kind == "text" and self._labels_quote(phrase):
            self.scan.consume(head.start, head.end, "label")
            return Mention("", head.start, head.end, self._clause)
        music = self._find_music(phrase, head) if act != "write" else None
        if music is not None and "music.generate" not in scan.names.kinds:
            self._add_unavailable(music)
            return Mention("", head.start, head.end, self._clause)
        if kind is None:
            self._add_unavailable(head)
            return Mention("", head.start, head.end, self._clause)
        each = scan.find(phrase.start, "join.for_each") is not None
        is_listed = scan.word(head.end - 1) in self.grammar.listed
        count = 1 if is_listed else max(phrase.count, self._unknown_count)
        self._unknown_count = 1
        return self._add(
            Mention(
                kind,
                head.start,
                head.end,
                self._clause,
                act=act,
                form=scan.text(head.start, head.end),
                is_creative=scan.has(head.start, "creative"),
                count=count,
                each=each,
                language=phrase.language,
                attributes=phrase.attributes,
            )
        )

    def _labels_quote(self, phrase: NounPhrase) -> bool:
        """Tell whether a noun only names the quoted words after it: `title “Sold out”`."""
        is_quoted = phrase.end < self._end and self.scan.owners[phrase.end] == "literal"
        return is_quoted and bool(self.mentions) and not phrase.count > 1

    def _find_music(self, phrase: NounPhrase, head: Phrase) -> Phrase | None:
        """Return the song that a noun asks for, unless its words alone are wanted."""
        if head.start > phrase.start and phrase.modifier is not None:
            return None
        return next(
            (
                one
                for one in self.scan.phrases(head.start)
                if one.category == "unavailable.music" and one.end == head.end
            ),
            None,
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
            named = read_noun_phrase(scan, each.end) if each.end < self._end else None
            kind = get_kind(scan, named.head) if named and named.head else None
            if named is not None and any(_is_same_kind(kind, one) for one in self.mentions[:-1]):
                self._current.refers, self._current.refers_to = True, kind
                return named.end, Place.AFTER
            return each.end, Place.TOPIC
        if scan.word(i) in self.grammar.times and self._current is not None:
            self._current.count = max(self._current.count, self.grammar.times[scan.word(i)])
            scan.consume(i, i + 1, "count")
            return i + 1, Place.AFTER
        done = self._find_participle(i)
        if done is not None:
            self._add_unavailable(done)
            return done.end, Place.TOPIC
        about = scan.find(i, "about")
        if about is not None:
            pronoun = self._find_reference(about.end) if about.end < self._end else None
            if pronoun is not None and self._current is not None:
                self._current.refers = True
                self._current.refers_to = self._get_reference_kind(pronoun)
                return pronoun.end, Place.AFTER
            return about.end, Place.TOPIC
        same = scan.find(i, "join.with", "join.from")
        given = self._find_reference(same.end) if same and same.end < self._end else None
        if given is not None and self._current is not None and self._current.kind != "text":
            self._current.refers = True
            self._current.refers_to = self._get_reference_kind(given)
            return given.end, Place.AFTER
        said = scan.find(i, "title", "polite", "filler")
        if said is not None:
            return said.end, Place.AFTER
        return self._read_detail(i) or self._read_topic(i)

    def _find_participle(self, i: int) -> Phrase | None:
        """Return what is to be done with what was asked for: `a card, sent to all members`."""
        scan = self.scan
        verb = scan.find(i, "unavailable.")
        if verb is None or not self.mentions or verb.category in UNAVAILABLE_NOUNS:
            return None
        if verb.is_ambiguous or verb.category == "unavailable.live_data":
            return None
        k = verb.end
        ends = k >= self._end or bool(scan.breaks[k])
        return (
            verb if ends or scan.has(k, "join.as", "article", "pronoun", "function_word") else None
        )

    def _read_topic(self, i: int) -> tuple[int, Place]:
        scan = self.scan
        opened = self._reopen(i)
        if opened is not None:
            return opened
        done = self._find_participle(i) if scan.breaks[i] else None
        if done is not None:
            self._add_unavailable(done)
            return done.end, Place.TOPIC
        live = self._find_live_data(i)
        if live is not None:
            self._add_unavailable(live)
            return live.end, Place.TOPIC
        if self._current is not None and self._current.is_question and scan.has(i, "fact"):
            self._current.needs_facts = True
        if scan.breaks[i] or scan.has(i, *_DETAILS) or scan.word(i) in self.grammar.means:
            detail = self._read_detail(i)
            if detail is not None:
                return detail
        self._note_topic(i, i + 1)
        return i + 1, Place.TOPIC

    def _find_live_data(self, i: int) -> Phrase | None:
        """Return what asks for the state of this moment: of a poem it is only the topic."""
        live = self.scan.find(i, "unavailable.live_data")
        if live is None:
            return None
        current = self._current
        asks = current is None or current.is_question or live.end - live.start > 1
        if current is not None and current.is_creative:
            return live if asks and any(self.scan.breaks[current.end : i + 1]) else None
        return live if asks else None

    def _read_detail(self, i: int) -> tuple[int, Place] | None:
        """Read a language, a colour or a call for facts, which say how and not about what."""
        scan = self.scan
        voice = scan.find(i, "act.clone")
        if voice is not None and self._current is not None and self._current.kind == "speech":
            current = self._current
            mention = self._add_act(voice)
            mention.is_delivered, self._current = False, current
            return voice.end, Place.AFTER
        sent = self._find_sending(i)
        if sent is not None:
            self._add_unavailable(sent)
            return sent.end, Place.TOPIC
        language = scan.find(i, "language")
        if language is not None and self._current is not None and self._ends_here(language):
            self._current.language = language.value
            scan.consume(language.start, language.end, "language")
            return language.end, Place.AFTER
        attribute = scan.find(i, "attribute.")
        if attribute is not None and self._ends_here(attribute):
            spoken = attribute.category == "attribute.pace" and scan.has(i, "act.speak")
            if spoken and self._current is not None and self._current.kind != "speech":
                self._refers = True
                spoken_as = Mention("speech", i, attribute.end, self._clause, act="speak")
                self._add(spoken_as).attributes.append(i)
            elif self._current is not None:
                self._current.attributes.append(i)
                scan.consume(attribute.start, attribute.end, "attribute")
            return attribute.end, Place.AFTER
        fact = scan.find(i, "fact")
        if fact is not None and (scan.breaks[i] or fact.end - fact.start > 1):
            self.facts.append(i)
            scan.consume(fact.start, fact.end, "fact")
            return fact.end, Place.AFTER
        return None

    def _find_sending(self, i: int) -> Phrase | None:
        """Return the way that something made is to be sent by: `get it to Ann by email`."""
        if self.scan.word(i) not in self.grammar.means or not self.mentions:
            return None
        if not self._hands_over:
            return None
        for phrase in self.scan.phrases(i + 1) if i + 1 < self._end else ():
            if phrase.category == "unavailable.send":
                return phrase
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

    def _reopen(self, i: int, *, strict: bool = False) -> tuple[int, Place] | None:
        """Begin another request in the middle of a sentence, where the words clearly ask for it."""
        scan = self.scan
        negated = self._read_negation(i)
        if negated is not None:
            return negated
        gap = scan.breaks[i]
        k, join = i, "and" if gap else ""
        head = find_head(scan, i) if self._current is not None and scan.has(i, "join.as") else None
        if head is not None and head.end - i > 1:
            return self._try_request(i, i, "as", firm=False, strict=strict)
        while k < self._end and scan.is_free(k) and (k == i or not scan.breaks[k]):
            step = scan.find(k, "join.then", "join.and", "join.with", "join.as", "polite")
            if step is None:
                if join and scan.word(k) in self.grammar.addressees and find_verb(scan, k + 1):
                    k, join = k + 1, "want"
                break
            kind = step.category.removeprefix("join.")
            if kind != "polite":
                join = kind if join in {"", "and", "then"} else join
            else:
                join = join or "want"
            k = step.end
        if not join or k >= self._end:
            return None
        return self._try_request(i, k, join, firm=gap >= Break.CLAUSE, strict=strict)

    def _try_request(
        self, i: int, k: int, join: str, *, firm: bool, strict: bool
    ) -> tuple[int, Place] | None:
        scan = self.scan
        if not scan.is_free(k):
            return None
        verb = find_verb(scan, k) if join not in {"with", "as"} else None
        if verb is not None and self._is_asked(verb, join, firm, strict):
            if self._is_detail(verb, join):
                return None
            self._start_clause(i, "and")
            return self._open_verb(verb)
        if join not in {"with", "as"} and self._is_unknown_verb(k) and self.mentions:
            self._start_clause(i, "and")
            return self._hand_over(k)
        only = scan.find(k, "negation.only")
        k = only.end if only is not None and only.end < self._end else k
        repeated = scan.find(k, "about", "join.as") if join == "and" else None
        if repeated is not None and repeated.end < self._end and scan.has(repeated.end, "article"):
            k = repeated.end  # "d'un slogan et d'un logo"
        if self.mentions and scan.find(k, "attribute.format") and scan.breaks[i]:
            return None
        phrase = read_noun_phrase(scan, k)
        if join == "with" and phrase.head is None:
            return self._try_participle(i, phrase)
        if phrase.head is None or len(phrase.unknown) > 3 or strict:
            return None
        if self._is_statement(phrase):
            return None
        if join == "with" and get_kind(scan, phrase.head) == "research" and self._current:
            self.facts.append(phrase.head.start)
            scan.consume(phrase.head.start, phrase.head.end, "fact")
            return self._leave_noun(phrase)
        if only is not None and any(
            _is_same_kind(get_kind(scan, phrase.head), one) for one in self.mentions
        ):
            self.only.add(get_kind(scan, phrase.head) or "")
            return phrase.end, Place.AFTER
        if self._continues_reference(phrase, phrase.head):
            return phrase.end, Place.AFTER
        merged = self._merge_noun(phrase, phrase.head, join)
        if merged is not None:
            return merged
        named = (
            phrase.has_article
            or phrase.count > 1
            or phrase.attributes
            or (k > i and scan.has(k - 1, "article"))
        )
        ends = phrase.end >= self._end or bool(scan.breaks[phrase.end])
        bare = join in {"with", "as"} or firm or phrase.start in self._measured_places(k)
        if not (named or bare or ends) or (phrase.tail is not None and not named):
            return None
        kind = get_kind(scan, phrase.head)
        if phrase.is_definite and join == "with" and kind is not None:
            return None
        if kind == "research" and join == "with" and scan.has(phrase.head.start, "fact"):
            self.facts.append(phrase.head.start)
            return phrase.end, Place.AFTER
        if join == "as" and scan.has(i, "about") and not self._may_carry(kind, i):
            return None
        if self._is_mentioned(phrase):
            if join in {"then", "want", "and"} and phrase.end < self._end:
                self._start_clause(i, "and")
                self._refers, self._refers_to = True, kind
                return phrase.end, Place.SUBJECT
            return None
        if self._is_part(phrase, phrase.head, join):
            return None
        if join == "as" and not self._converts(phrase):
            return None
        turned = phrase.has_article or scan.word(i) in self.grammar.turning
        if join == "as" and kind is None and not turned:
            return None
        refers = join == "as"
        self._start_clause(i, join)
        self._is_only = self._is_only or only is not None
        self._refers = refers
        self._add_noun(phrase, phrase.head)
        return self._leave_noun(phrase)

    def _is_detail(self, verb: Phrase, join: str) -> bool:
        """Tell whether a verb says what goes into a text that is asked for already."""
        current = self._current
        if join in {"then", "want"} or current is None or current.kind != "text":
            return False
        colon = any(self.scan.breaks[k] == Break.CLAUSE for k in range(current.end, verb.start + 1))
        return (
            colon and ACT_KINDS.get(verb.category[4:]) == "text" and not verb.end - verb.start > 1
        )

    def _may_carry(self, kind: str | None, i: int) -> bool:
        """Tell whether a word such as `on` puts something on it, and does not say what it is of."""
        if kind is None:
            return self._current is None or self._current.refers
        return kind in {"card", "clone"} and not self.scan.has(i, "join.for_each")

    def _try_participle(self, i: int, phrase: NounPhrase) -> tuple[int, Place] | None:
        """Read `with his observatory drawn on it`: a part, named by what it shows."""
        verb = self.scan.find(phrase.end, "act.draw", "act.speak") if phrase.unknown else None
        if verb is None or self.scan.breaks[phrase.end]:
            return None
        self._start_clause(i, "with")
        self._add_act(verb)
        self._note_topic(phrase.start, phrase.end)
        return verb.end, Place.AFTER

    def _is_part(self, phrase: NounPhrase, head: Phrase, join: str) -> bool:
        """Tell whether a noun is a part of the text before it: `a quiz with five questions`."""
        current = self._current
        if current is None or current.kind != "text" or join == "then":
            return False
        if get_kind(self.scan, head) != "text" or phrase.language:
            return False
        return join == "with" or self.scan.word(head.end - 1) in self.grammar.parts

    def _continues_reference(self, phrase: NounPhrase, head: Phrase) -> bool:
        """Tell whether a bare noun joins what is referred to: `lay story and drawing out`."""
        current = self._current
        if current is None or not current.refers or phrase.has_article:
            return False
        kind = get_kind(self.scan, head)
        earlier = [one for one in self.mentions if one is not current]
        return any(_is_same_kind(kind, one) for one in earlier) and kind != current.kind

    def _merge_noun(self, phrase: NounPhrase, head: Phrase, join: str) -> tuple[int, Place] | None:
        """Merge a noun with the act before it: `illustrate it with two pictures`."""
        current = self._current
        if current is None or join not in {"with", "as"} or not self.mentions:
            return None
        if get_kind(self.scan, head) != current.kind:
            return None
        if current.kind == "text":
            if join != "as" or current.act in TRANSFORMING_ACTS:
                return None
            spread = any(self.scan.has(k, "join.for_each") for k in range(phrase.start, head.start))
            current.count = max(current.count, current.listed) if spread else 1
            self.scan.consume(head.start, head.end, "request")
            return self._leave_noun(phrase)
        if join == "with" and current.form:
            return None
        current.count = max(current.count, phrase.count)
        current.form = current.form or self.scan.text(head.start, head.end)
        current.attributes += phrase.attributes
        self.scan.consume(head.start, head.end, "request")
        return self._leave_noun(phrase)

    def _measured_places(self, k: int) -> Sequence[int]:
        return (k,) if self.scan.owners[k] == "measure" else ()

    def _converts(self, phrase: NounPhrase) -> bool:
        """Tell whether `as` or `on` hands what was asked for on to a noun."""
        if phrase.head is None:
            return False
        kind = get_kind(self.scan, phrase.head)
        if kind is None:
            return self._refers or phrase.head.category in _TURNED_INTO or not self.mentions
        if not self.mentions and not self._refers:
            return True
        if kind == "clone":
            return True
        return kind in {"card", "speech"} or any(
            self.scan.names.can_feed(one.kind, kind) and one.kind != kind for one in self.mentions
        )

    def _is_asked(self, verb: Phrase, join: str, firm: bool, strict: bool) -> bool:
        """Tell whether a verb in the middle of a sentence asks for something."""
        k = verb.end
        if has_clitic(self.scan, verb):
            return True
        if strict:
            return join == "want" or (not verb.is_ambiguous and self._has_requested_object(k))
        if join in {"then", "want"} or firm:
            return True
        if self._find_inner_reference(verb):
            return True
        if k >= self._end or self.scan.breaks[k]:
            if verb.category == "act.speak" and self.scan.breaks[verb.start]:
                return True
            return verb.end - verb.start > 1 or self.scan.owners[verb.start - 1] is not None
        scan = self.scan
        if scan.owners[min(k + 1, self._end - 1)] == "measure":
            return True
        if scan.owners[k] is not None or scan.has(k, "article", "pronoun", "number", "language"):
            return True
        if scan.word(k) in self.grammar.objects:
            return True
        if verb.category.startswith("unavailable."):
            return not verb.is_ambiguous or verb.end - verb.start > 1
        return has_object(scan, k) and not verb.is_ambiguous and not self._current_is_topic()

    def _has_requested_object(self, k: int) -> bool:
        if k >= self._end or self.scan.breaks[k]:
            return False
        phrase = read_noun_phrase(self.scan, k)
        return phrase.head is not None and phrase.has_article and not phrase.is_definite

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
        language = scan.find(i, "language")
        if language is not None and refers_to == "text" and self._ends_here(language):
            mention = Mention("text", language.start, language.end, self._clause, act="translate")
            mention.language, mention.refers, mention.refers_to = language.value, True, "text"
            self._add(mention)
            return language.end, Place.AFTER
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
        wants = polite is None and scan.word(i) in self.grammar.wants and self._is_first_person(i)
        if polite is not None or wants:
            self._start_clause(i, "start")
            self._wants = True
            return polite.end if polite is not None else i + 1, Place.OPEN
        if scan.breaks[i] >= Break.COMMA and i > self._clause:
            opened = self._reopen(i, strict=scan.breaks[i] < Break.CLAUSE)
            if opened is not None:
                return opened
            if scan.breaks[i] == Break.CLAUSE:
                self._start_clause(i, "and")
                return i, Place.OPEN
        return i + 1, place

    def _is_first_person(self, i: int) -> bool:
        """Tell whether a verb within a few words of `I` or `we` is theirs."""
        near = (self.scan.word(k).partition("'")[0] for k in range(max(self._clause, i - 3), i))
        return any(word in self.grammar.subject for word in near)

    def _open_question(self, i: int) -> tuple[int, Place]:
        mention = Mention("text", i, i, self._clause, act="answer", is_question=True)
        self._add(mention)
        self._note_topic(i, i + 1)
        return i + 1, Place.TOPIC

    def _check_question(self, start: int, end: int) -> None:
        """Take a question about this moment, or about an artifact, for what it needs."""
        asked = self.mentions[-1] if self.mentions else None
        if asked is None or not asked.is_question or asked.start < start:
            return
        text = self.scan.text(start, end).casefold()
        key = None
        personal = any(self.scan.word(k) in self.grammar.subject for k in range(start, end))
        if any(now in text for now in self.grammar.now) and not personal:
            key = "live_data"
        elif "artifact" in self.scan.owners[start:end]:
            key = "look_at_image"
        if key is not None:
            self.mentions.remove(asked)
            self.unavailable.append(UnavailableMention(key, start, end))

    def _read_negation(self, i: int) -> tuple[int, Place] | None:
        """Read what is not wanted; a double negation wants it."""
        scan = self.scan
        negation = scan.find(i, "negation.before")
        if negation is None or "negations" in self._without:
            return None
        second = scan.find(negation.end, "negation.before") if negation.end < self._end else None
        if second is not None and not scan.breaks[negation.end]:
            scan.consume(i, second.end, "negation")
            self._verb, self._join = None, "with"
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
            if scan.owners[k] == "measure":
                k += 1
                continue
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
