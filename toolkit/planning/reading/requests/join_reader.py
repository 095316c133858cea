"""Requests in the middle of a sentence: after a comma, `and`, `then`, `with` or `as`."""

from dataclasses import replace

from toolkit.planning.reading.requests.mentions import get_kind
from toolkit.planning.reading.requests.part_reader import PartReader
from toolkit.planning.reading.requests.request_state import Place, is_same_kind
from toolkit.planning.reading.spans.lists import find_each
from toolkit.planning.reading.spans.noun_phrases import find_head, read_noun_phrase
from toolkit.planning.reading.spans.scan import Break, Phrase
from toolkit.planning.reading.spans.verbs import find_verb

# How many words may lead to the quoted words of a card: `with the title`.
_MAX_LABEL = 4


class JoinReader(PartReader):
    """Reader of what is asked for besides; `RequestFinder` walks the words."""

    def _reopen(self, i: int, *, strict: bool = False) -> tuple[int, Place] | None:
        """Begin another request in the middle of a sentence, where the words clearly ask for it."""
        scan = self.scan
        negated = self._read_negation(i)
        if negated is not None:
            return negated
        gap = scan.breaks[i]
        asked = self._current is not None and self._current.is_question
        if asked and not gap and scan.find(i, "polite"):
            return None  # "How would you explain it?" asks once
        k, join = i, "and" if gap else ""
        head = find_head(scan, i) if self._current is not None and scan.has(i, "join.as") else None
        if head is not None and head.end - i > 1:
            return self._try_request(i, i, "as", firm=False, strict=strict)
        while k < self._end and scan.is_free(k) and (k == i or not scan.breaks[k]):
            step = scan.find(k, "join.then", "join.and", "join.with", "join.as", "polite")
            if step is None and scan.word(k) in self.grammar.emphatic and find_verb(scan, k + 1):
                k, join = k + 1, join or "want"
                break
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
        pronoun = self._find_reference(k) if gap >= Break.CLAUSE and self.mentions else None
        if pronoun is not None and not strict:
            self._start_clause(i, "and")
            self._refers, self._refers_to = True, self._get_reference_kind(pronoun)
            return pronoun.end, Place.SUBJECT
        another = self._read_another(k) if join == "and" and (k > i or self._counts_one()) else None
        if another is not None:
            return another
        join = "with" if join == "and" and self._continues_with(i) else join
        return self._try_request(i, k, join, firm=gap >= Break.CLAUSE, strict=strict)

    def _continues_with(self, i: int) -> bool:
        """Tell whether `and` adds to what a card has: `with the title “…” and a picture`."""
        current, k = self._current, i
        while k > 0 and self.scan.owners[k - 1] == "literal":
            k -= 1
        if current is None or current.kind != "card":
            return False
        if self._verb_place is None and current.start == self._start_of_sentence(i):
            return bool(self.scan.breaks[i])  # "Card, titled “…”, a picture of a parrot"
        if k == i:
            return False
        return any(
            self.scan.has(n, "join.with") for n in range(max(current.end, k - _MAX_LABEL), k)
        )

    def _start_of_sentence(self, i: int) -> int:
        while i > 0 and self.scan.breaks[i] < Break.SENTENCE:
            i -= 1
        return i

    def _read_another(self, k: int) -> tuple[int, Place] | None:
        """Read a pronoun for one more of the same: `a picture of a cat and one of a dog`."""
        scan = self.scan
        same = self._current or (self.mentions[-1] if self.mentions else None)
        if same is None or not same.form or not same.topics:
            return None
        if scan.has(k, "article") and scan.word(k + 1) in self.grammar.further:
            k += 2  # "a second one"
        about = scan.find(k + 1, "about") if scan.word(k) in self.grammar.another else None
        if about is None or about.end >= self._end or scan.breaks[k + 1]:
            return None
        is_alike = scan.word(k + 1) == scan.word(same.topics[0][0] - 1)
        if not is_alike or scan.word(about.end) in self.grammar.possessive:
            return None
        self._start_clause(k, "and")
        self._add(replace(same, start=k, end=k + 1, clause=k, topics=[], inputs=[]))
        return about.end, Place.TOPIC

    def _counts_one(self) -> bool:
        """Tell whether the last noun was counted: `one picture of a pear, one of a plum`."""
        current = self._current
        return current is not None and self.scan.word(current.start - 1) in self.grammar.another

    def _says_how(self, verb: Phrase) -> bool:
        """Tell whether a verb after a comma says how something is heard: `audio, read slowly`."""
        is_heard = self._current is not None and self._current.kind == "speech"
        return is_heard and verb.category == "act.speak" and bool(self.scan.breaks[verb.start])

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
            if k == i and self._says_how(verb):
                return verb.end, Place.STATEMENT
            self._start_clause(i, "and")
            return self._open_verb(verb)
        # After a comma alone, a verb at the end is that of a relative clause.
        if join in {"and", "then", "want"} and (k > i or self._ends_in_verb):
            opened = self._read_final_verb(k, i)
            if opened is not None:
                return opened
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
        if self._current is not None and self._current.is_question and join in {"with", "as"}:
            return None
        phrase = read_noun_phrase(scan, k)
        if self._is_same(phrase) and self.mentions and not strict:
            self._start_clause(i, "and")
            self._refers, self._refers_to = True, "text"
            return phrase.end, Place.SUBJECT
        if join == "with" and phrase.head is None:
            return self._try_participle(i, phrase)
        if phrase.head is None or len(phrase.unknown) > 3:
            return None
        if self._is_content(phrase, phrase.head):
            return None
        if strict and not scan.has(phrase.end, "polite"):
            return None  # in a statement, only "audio please" asks for a thing
        if self._is_statement(phrase):
            return None
        if join == "with" and get_kind(scan, phrase.head) == "research" and self._current:
            self.facts.append(phrase.head.start)
            scan.consume(phrase.head.start, phrase.head.end, "fact")
            return self._leave_noun(phrase)
        if only is not None and any(
            is_same_kind(get_kind(scan, phrase.head), one) for one in self.mentions
        ):
            self.only.add(get_kind(scan, phrase.head) or "")
            return phrase.end, Place.AFTER
        if self._qualifies(phrase):
            return self._add_quality(phrase)
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
        said = scan.breaks[i] and k == i and phrase.unknown  # "Ann, loved radio plays"
        if said and not named:
            return None
        bare = join in {"with", "as"} or firm or self._opens_with_measure(phrase, k)
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
        if join == "as" and kind is None and (not turned or phrase.is_definite):
            return None
        if (
            not phrase.has_article
            and scan.word(phrase.end).isdigit()
            and not scan.breaks[phrase.end]
        ):
            return None  # "invoice 4471" is one that is there
        refers = join == "as"
        self._start_clause(i, join)
        self._is_only = self._is_only or only is not None
        self._refers = refers
        self._add_noun(phrase, phrase.head)
        return self._leave_noun(phrase)

    def _read_each(self, i: int) -> tuple[int, Place] | None:
        """Read what says that one is made for each: `a picture for each`, `each on a card`."""
        scan, current = self.scan, self._current
        each = find_each(scan, i)
        if each is None or current is None:
            return None
        opened = self._open_own(each)
        if opened is not None:
            return opened
        current.each = True
        named = read_noun_phrase(scan, each.end) if each.end < self._end else None
        if each.end >= self._end or scan.breaks[each.end]:
            current.refers = any(one.count > 1 for one in self.mentions[:-1])
        kind = get_kind(scan, named.head) if named and named.head else None
        if named is not None and any(is_same_kind(kind, one) for one in self.mentions[:-1]):
            current.refers, current.refers_to = True, kind
            return named.end, Place.AFTER
        return each.end, Place.TOPIC

    def _open_own(self, each: Phrase) -> tuple[int, Place] | None:
        """Open a request for each of those before it: `three jokes, each on its own card`."""
        joins = [self.scan.find(k, "join.as", "join.with") for k in (each.end, each.end - 1)]
        join = next((one for one in joins if one is not None), None)
        if join is None or join.end >= self._end or self.scan.breaks[join.end]:
            return None
        kind = join.category.removeprefix("join.")
        opened = self._try_request(join.start, join.end, kind, firm=False, strict=False)
        if opened is not None:
            self._verb = None
            self.mentions[-1].each = True
        return opened
