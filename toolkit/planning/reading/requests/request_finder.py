"""The pass that finds acts and things where they are asked for, clause by clause."""

from toolkit.planning.reading.requests.mentions import Mention, UnavailableMention, get_kind
from toolkit.planning.reading.requests.request_state import Place, is_same_kind
from toolkit.planning.reading.requests.wish_reader import WishReader
from toolkit.planning.reading.spans.lists import find_each
from toolkit.planning.reading.spans.noun_phrases import find_head, read_noun_phrase
from toolkit.planning.reading.spans.scan import Break
from toolkit.planning.reading.spans.verbs import find_verb, is_unknown_verb, names_label

# What says how something is made, wherever it stands.
_DETAILS = ("join.", "attribute.", "language", "act.clone")


class RequestFinder(WishReader):
    """Finder of requests: walks the words once and keeps track of its place in the clause."""

    def find(self) -> None:
        """Walk through all sentences."""
        for start, end in self.scan.find_sentences():
            self._read_sentence(start, end)

    def _read_sentence(self, start: int, end: int) -> None:
        start = self._retract(start, end)
        self._clause, self._end = start, end
        self._verb, self._current, self._hands_over = None, None, False
        self._verb_place, self._is_verb_unknown, self._ends_in_verb = None, False, False
        self._start_clause(start, "start")
        i, place = start, Place.OPEN
        if start >= end:
            return
        steps = {
            Place.OPEN: self._read_open,
            Place.OBJECT: self._read_object,
            Place.AFTER: self._read_after,
            Place.TOPIC: self._read_topic,
            Place.SUBJECT: self._read_subject,
            Place.STATEMENT: self._read_statement,
        }
        found = self._count_found()
        while i < end:
            owner = self.scan.owners[i]
            if owner is not None:
                i, place = self._pass_over(i, owner, place)
                continue
            here, standing = i, place
            i, place = steps[place](i)
            if (i, place) == (here, standing):
                i += 1
        self._finish_verb()
        if self._count_found() == found and self._has_question_mark():
            self._ask_whole_sentence(start, end)
        self._drop_own_acts(start, end)
        self._check_question(start, end)
        self._check_shown(start, end)
        for check in (self._check_edit, self._check_objects, self._check_now, self._check_held):
            if self._count_found() == found:
                check(start, end)

    def _read_open(self, i: int) -> tuple[int, Place]:
        scan = self.scan
        negated = self._read_negation(i)
        if negated is not None:
            return negated
        each = find_each(scan, i)
        if each is not None:
            self._each = True
            phrase = read_noun_phrase(scan, each.end) if each.end < self._end else None
            if phrase is not None and phrase.head is not None and self.mentions:
                kind = get_kind(scan, phrase.head)
                if any(is_same_kind(kind, one) for one in self.mentions):
                    self._refers, self._refers_to = True, kind
                    return phrase.end, Place.OPEN
            part = scan.find(each.end, "join.with") if each.end < self._end else None
            if part is not None:
                return part.end, Place.OPEN  # "each with its own audio"
            return self._skip_each(each.end), Place.OPEN
        verb = find_verb(scan, i)
        if verb is not None:
            return self._open_verb(verb)
        skipped = scan.find(i, "polite", "join.then", "join.and")
        if skipped is not None:
            self._wants = self._wants or skipped.category == "polite"
            return skipped.end, Place.OPEN
        wish = self._read_wish(i) or self._read_final_verb(i)
        if wish is not None:
            return wish
        only = scan.find(i, "negation.only")
        if only is not None:
            self._is_only = True
            if only.end - i > 1 and find_head(scan, only.end - 1) is not None:
                return i + 1, Place.OPEN
            heard = find_head(scan, i)
            if heard is not None and heard.end < only.end:  # "audio only"
                self._add_noun(read_noun_phrase(scan, i), heard)
                return only.end, Place.AFTER
            limited = read_noun_phrase(scan, only.end) if only.end < self._end else None
            if limited is not None and limited.head is not None:
                kind = get_kind(scan, limited.head)
                if any(is_same_kind(kind, one) for one in self.mentions):
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
            if self._qualifies(phrase):
                return self._add_quality(phrase)
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
        if phrase.head is None and i == self._clause and not self.mentions:
            if self._opens_work(phrase):
                return self._add_unknown_work(phrase)
            self._note_named(phrase)
        if phrase.head is None and self._wants and phrase.has_article:
            if self._names_work(phrase):
                return self._add_unknown_work(phrase)
            if phrase.unknown:
                self._note_unknown(phrase)
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

    def _read_object(self, i: int) -> tuple[int, Place]:
        scan = self.scan
        if scan.breaks[i] >= Break.CLAUSE:
            self._finish_verb()
            return self._reopen(i) or (i, Place.TOPIC)
        given = self._skip_source(i)
        if given is not None:
            return given, Place.OBJECT
        skipped = self.grammar.objects | self.grammar.particles
        if scan.word(i) in skipped and not scan.find(i, "polite", "join.as"):
            return i + 1, Place.OBJECT
        polite = scan.find(i, "polite", "negation.only", "bound.exactly")
        if polite is not None:
            self._is_only = self._is_only or polite.category == "negation.only"
            return polite.end, Place.OBJECT
        pronoun = self._find_reference(i)
        if pronoun is not None:
            self._refers, self._refers_to = True, self._get_reference_kind(pronoun)
            if self._makes_of_it(pronoun.end):
                return pronoun.end, Place.OBJECT
            turned = self._turn_given(pronoun.end) or self._change_text(pronoun.end)
            if turned is not None:
                return turned
            self._hands_over = self._verb is None or self._verb.category == "make"
            self._finish_verb()
            return pronoun.end, Place.AFTER
        another = self._read_another(i)
        if another is not None:
            self._verb = None
            return another
        told = self._verb is not None and self._verb.category == "act.speak" and self._is_by(i)
        if told and "artifact" not in scan.owners:
            self._finish_verb()
            return i + 1, Place.STATEMENT  # "spoken by a child" says how
        each = find_each(scan, i) if self.mentions else None
        opened = self._open_own(each) if each is not None else None
        if opened is not None:
            return opened
        if scan.find(i, "about"):
            self._finish_verb()
            return self._read_after(i)
        if self._verb is not None and self._verb.category == "make" and scan.find(i, "question"):
            self._verb = None
            return self._open_question(i)
        given_to = self._skip_receiver(i)
        if given_to is not None:
            return given_to, Place.OBJECT
        phrase = read_noun_phrase(scan, i)
        turned = self._turn_given(phrase.end) if phrase.is_definite else None
        if turned is not None:
            return turned
        is_label = phrase.is_definite and "literal" in self.scan.owners[phrase.end : phrase.end + 1]
        if is_label and self._verb is not None and self._converts_given():
            return phrase.end, Place.OBJECT
        lacking = self._find_command(phrase)
        if lacking is not None:
            self._verb = self._current = None
            self.unavailable.append(UnavailableMention(lacking, i, phrase.end))
            return phrase.end, Place.TOPIC
        if phrase.head is not None:
            return self._read_object_noun(phrase, phrase.head)
        self._current = None
        if self._names_work(phrase):
            return self._add_unknown_work(phrase)
        if phrase.language and not phrase.unknown:
            return self._add_translation(phrase)
        had_act = self._verb is not None and self._verb.category.startswith("act.")
        if not had_act:
            self._note_unknown(phrase)
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

    def _read_after(self, i: int) -> tuple[int, Place]:
        scan = self.scan
        opened = self._reopen(i)
        if opened is not None:
            return opened
        spread = self._read_each(i)
        if spread is not None:
            return spread
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
        fact = self._find_fact(i) if same is not None and self._current is not None else None
        if fact is not None:
            return fact, Place.AFTER
        said = scan.find(i, "title", "polite", "filler")
        if said is not None:
            return said.end, Place.AFTER
        return self._read_detail(i) or self._read_topic(i)

    def _read_topic(self, i: int) -> tuple[int, Place]:
        scan = self.scan
        opened = self._reopen(i)
        if opened is not None:
            return opened
        done = self._find_participle(i) if scan.breaks[i] else None
        if done is not None:
            self._add_unavailable(done)
            return done.end, Place.TOPIC
        spoken = scan.find(i, "act.speak")
        if spoken is not None and self._ends_aloud(spoken):
            self._refers = True
            self._add_act(spoken)
            return spoken.end, Place.AFTER
        placed = self._find_placed(i)
        if placed is not None:
            self._start_clause(i, "with")
            self._add_noun(placed, placed.head or scan.phrases(i)[0])
            return self._leave_noun(placed)
        live = self._find_live_data(i)
        if live is not None:
            self._add_unavailable(live)
            return live.end, Place.TOPIC
        spread = self._read_each(i) if scan.breaks[i] else None
        if spread is not None:
            return spread
        shown = self._read_shown(i)
        if shown is not None:
            return shown
        if self._current is not None and self._current.is_question and scan.has(i, "fact"):
            self._current.needs_facts = True
        if scan.breaks[i] or scan.has(i, *_DETAILS) or scan.word(i) in self.grammar.means:
            detail = self._read_detail(i)
            if detail is not None:
                return detail
        self._note_topic(i, i + 1)
        return i + 1, Place.TOPIC

    def _read_subject(self, i: int) -> tuple[int, Place]:
        """Read on after something mentioned before: `The summary should go on a card`."""
        scan = self.scan
        opened = self._read_negation(i)
        if opened is not None:
            return opened
        verb = find_verb(scan, i) or scan.find(i, "act.speak", "act.translate", "unavailable.")
        verb = None if names_label(scan, i) else verb
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
        fact = scan.find(i, "fact")
        if fact is not None and fact.end - i > 1:
            self.facts.append(i)
        polite = scan.find(i, "polite")
        wants = polite is None and self._is_wanted(i)
        if polite is not None or wants:
            self._start_clause(i, "start")
            self._wants = True
            return polite.end if polite is not None else i + 1, Place.OPEN
        wish = self._read_wish(i)
        if wish is not None:
            return wish
        if scan.breaks[i] >= Break.COMMA and i > self._clause:
            opened = self._reopen(i, strict=scan.breaks[i] < Break.CLAUSE)
            if opened is not None:
                return opened
            if scan.breaks[i] == Break.CLAUSE:
                self._start_clause(i, "and")
                return i, Place.OPEN
        return i + 1, place
