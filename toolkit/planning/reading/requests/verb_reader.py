"""Verbs that ask for something, known ones and others."""

from toolkit.planning.reading.requests.command_reader import CommandReader
from toolkit.planning.reading.requests.mentions import (
    ACT_KINDS,
    Mention,
    UnavailableMention,
    get_kind,
)
from toolkit.planning.reading.requests.request_state import Place
from toolkit.planning.reading.spans.noun_phrases import find_head, read_noun_phrase
from toolkit.planning.reading.spans.scan import Break, Phrase
from toolkit.planning.reading.spans.verbs import find_final_verb, find_verb, has_clitic, has_object

# How many words who is given something may take.
_MAX_RECEIVER = 6


class VerbReader(CommandReader):
    """Reader of verbs; `RequestFinder` walks the words."""

    def _open_verb(self, verb: Phrase) -> tuple[int, Place]:
        if self._only_sounds_like(verb):
            return verb.end, Place.TOPIC
        if self._sets_scene(verb):
            return verb.end, Place.STATEMENT
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

    def _read_final_verb(self, i: int, clause: int | None = None) -> tuple[int, Place] | None:
        """Read a verb that ends its clause before its object: `bitte einen Igel zeichnen`."""
        verb = find_final_verb(self.scan, i)
        if verb is None:
            return None
        phrase = read_noun_phrase(self.scan, i)
        if phrase.head is not None and not phrase.is_definite:
            return None  # the noun says what is to be made
        if clause is not None:
            self._start_clause(clause, "and")
        self._ends_in_verb = True
        end, place = self._open_verb(verb)
        return (i, place) if place is Place.OBJECT and end > i else (end, place)

    def _sets_scene(self, verb: Phrase) -> bool:
        """Tell whether a verb only has somebody think of what is asked for after its sentence."""
        if self.scan.word(verb.start) not in self.grammar.imagining or self._end >= len(self.scan):
            return False
        return read_noun_phrase(self.scan, verb.end).head is None

    def _pass_over(self, i: int, owner: str, place: Place) -> tuple[int, Place]:
        """Step over a word that another pass consumed."""
        if owner == "literal" and place in {Place.OBJECT, Place.OPEN}:
            if self._verb is not None and self._verb.category.startswith("act."):
                self._add_act(self._verb)
                self._verb = None
            k = i + 1
            while k < self._end and self.scan.owners[k] == "literal":
                k += 1
            return self._turn_given(k) or (k, Place.AFTER)
        if owner == "artifact" and place is Place.OPEN:
            return i + 1, Place.SUBJECT
        if owner == "artifact" and place is Place.OBJECT:
            self._finish_verb()
            return i + 1, Place.AFTER
        if owner == "measure" and place is Place.OPEN and self._current is None:
            return i + 1, Place.OPEN
        return i + 1, place

    def _skip_opening_phrase(self, i: int) -> int | None:
        """Skip `For our website, …` and `From that, …`: a request follows the comma."""
        scan = self.scan
        orders = scan.word(i) in self.grammar.ordering
        if orders and scan.word(i + 1) in self.grammar.addressees:
            return i + 2  # "Before you draw it, write …"
        if not scan.find(i, "about", "join.from", "join.as", "join.with"):
            return None
        if scan.find(i, "join.from", "join.with"):
            self._refers = self._refers or scan.find(i, "join.from") is not None
            last = scan.find_sentence_end(i, Break.COMMA)
            self.facts += [k for k in range(i, last) if scan.has(k, "fact")][:1]
        end = scan.find_sentence_end(i, Break.COMMA)
        # "With the recording art_… clone the voice": no comma, but a verb after the artifact.
        for k in range(i + 1, min(end, self._end)):
            verb = find_verb(scan, k) if scan.owners[k - 1] == "artifact" else None
            if verb is not None and not verb.is_ambiguous:
                return k
        # "For my project I need …": no comma, but somebody asks.
        for k in range(i + 1, min(end, self._end)):
            if scan.word(k) in self.grammar.subject | self.grammar.addressees:
                asks = scan.find(k, "polite") or (k + 1 < self._end and self._is_wanted(k + 1))
                if asks:
                    return k
        if end < self._end:
            self._clause = i
            return end
        # "From the answer make a card": no comma, but a verb follows.
        for k in range(i + 1, min(i + 6, self._end)):
            verb = find_verb(scan, k)
            if verb is not None and not verb.is_ambiguous:
                return k
        return None

    def _skip_receiver(self, i: int) -> int | None:
        """Return where what is given begins after who gets it: `give our old shop a new name`."""
        scan, grammar = self.scan, self.grammar
        if self._verb is None or scan.word(self._verb.start) not in grammar.giving:
            return None
        if scan.word(i) not in grammar.definite | grammar.possessive:
            return None
        for k in range(i + 2, min(i + _MAX_RECEIVER, self._end)):
            if scan.breaks[k] or scan.has(k, "about", "join."):
                return None
            if scan.has(k, "article") and scan.word(k) not in grammar.definite:
                phrase = read_noun_phrase(scan, k)
                is_given = phrase.head is not None and get_kind(scan, phrase.head) is not None
                return k if is_given else None
        return None

    def _makes_of_it(self, i: int) -> bool:
        """Tell whether something is made of what a pronoun stands for: `make it a card`."""
        if self._verb is None or self._verb.category != "make" or i >= self._end:
            return False
        if self._compares(i):
            return False  # "make it more polite"
        return not self.scan.breaks[i] and self.scan.has(i, "article")

    def _only_sounds_like(self, verb: Phrase) -> bool:
        """Tell whether a text is to be `in the voice of a pirate`, without any recording."""
        scan = self.scan
        if verb.category != "act.clone" or not scan.has(verb.start, "function_word"):
            return False
        near = range(verb.start, min(verb.end + 1, self._end))
        own = any(scan.word(k) in self.grammar.possessive for k in near)
        return not own and "artifact" not in scan.owners

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

    def _open_unknown_verb(self, i: int) -> tuple[int, Place]:
        """Look for what nothing here does among the objects of a verb that nobody knows."""
        scan = self.scan
        end = scan.find_sentence_end(i, Break.COMMA)
        for k in range(i + 1, min(end, self._end)):
            head = find_head(scan, k)
            if head is not None and head.category.startswith("unavailable."):
                self._add_unavailable(head)
                return end, Place.TOPIC
        lone = scan.word(i + 1) in self.grammar.objects and i + 2 >= end  # "Surprise me!"
        if not self.mentions and self.unknown_verb is None and not lone:
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
        particles = self.grammar.particles - self.grammar.leading
        while k < self._end and not scan.breaks[k] and scan.word(k) in particles:
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

    def _is_unknown_verb(self, i: int) -> bool:
        """Tell whether an unknown word stands where a verb does: `Load it into …`."""
        scan = self.scan
        k = i + 1
        if k >= self._end or scan.breaks[k] or scan.has(i, "function_word", "article", "pronoun"):
            return False
        if scan.owners[k] == "artifact":
            return True
        return scan.word(k) in self.grammar.pronouns

    def _is_asked(self, verb: Phrase, join: str, firm: bool, strict: bool) -> bool:
        """Tell whether a verb in the middle of a sentence asks for something."""
        k = verb.end
        if has_clitic(self.scan, verb):
            return True
        if strict and verb.category.startswith("unavailable."):
            return self.scan.word(k) in self.grammar.pronouns and not self.scan.breaks[k]
        if strict:
            return join == "want" or (not verb.is_ambiguous and self._has_requested_object(k))
        if join in {"then", "want"} or firm:
            return True
        if self._find_inner_reference(verb):
            return True
        if k >= self._end or self.scan.breaks[k]:
            if verb.category in {"act.speak", "act.draw"} and self.scan.breaks[verb.start]:
                return True
            return verb.end - verb.start > 1 or self.scan.owners[verb.start - 1] is not None
        scan = self.scan
        if verb.category == "act.speak" and scan.breaks[verb.start] and self._is_by(k):
            return True  # "a rhyme, spoken by a child"
        joined = scan.find(k, "join.and")
        made = verb.category in {"act.speak", "act.draw"} and bool(scan.breaks[verb.start])
        if made and joined and joined.end < self._end and scan.find(joined.end, "act."):
            return True  # "…, illustrated and read aloud"
        if scan.owners[min(k + 1, self._end - 1)] == "measure":
            return True
        if scan.owners[k] is not None or scan.has(k, "article", "pronoun", "number", "language"):
            return True
        if scan.word(k) in self.grammar.objects:
            return True
        if self.grammar.article_prefix and self._has_requested_object(k):
            return True
        if verb.category.startswith("unavailable."):
            return not verb.is_ambiguous or verb.end - verb.start > 1
        return has_object(scan, k) and not verb.is_ambiguous and not self._has_current_topic()

    def _is_by(self, k: int) -> bool:
        return self.scan.word(k) in self.grammar.means

    def _has_requested_object(self, k: int) -> bool:
        if k >= self._end or self.scan.breaks[k]:
            return False
        phrase = read_noun_phrase(self.scan, k)
        return phrase.head is not None and phrase.has_article and not phrase.is_definite

    def _has_current_topic(self) -> bool:
        return self._current is not None and bool(self._current.topics)

    def _is_detail(self, verb: Phrase, join: str) -> bool:
        """Tell whether a verb says what goes into a text that is asked for already."""
        current = self._current
        if join in {"then", "want"} or current is None or current.kind != "text":
            return False
        colon = any(self.scan.breaks[k] == Break.CLAUSE for k in range(current.end, verb.start + 1))
        if verb.category.startswith("unavailable."):
            return colon and not self._takes_made(verb.end)
        return (
            colon and ACT_KINDS.get(verb.category[4:]) == "text" and not verb.end - verb.start > 1
        )

    def _takes_made(self, k: int) -> bool:
        """Tell whether the object of a verb is what was asked for before: `… , then send it`."""
        return k < self._end and self._find_reference(k) is not None

    def _is_wanted(self, i: int) -> bool:
        """Tell whether a verb says that somebody wants what follows: `she would love a card`."""
        scan = self.scan
        if scan.word(i) in self.grammar.wants:
            coordinated = scan.has(i - 1, "join.and")
            coordinated = coordinated and scan.word(self._clause) in self.grammar.subject
            if coordinated or self._is_first_person(i):
                return True
        wishes = scan.word(i) in self.grammar.needing or (
            scan.word(i) in self.grammar.wishes and scan.word(i - 1) in self.grammar.wishing
        )
        phrase = read_noun_phrase(scan, i + 1) if wishes and i + 1 < self._end else None
        return phrase is not None and phrase.head is not None and phrase.has_article

    def _is_first_person(self, i: int) -> bool:
        """Tell whether a verb within a few words of `I` or `we` is theirs."""
        near = (self.scan.word(k).partition("'")[0] for k in range(max(self._clause, i - 3), i))
        return any(word in self.grammar.subject for word in near)
