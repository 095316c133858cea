"""Nouns that are asked for: as the object of a verb, or by themselves."""

from dataclasses import replace

from toolkit.planning.reading.requests.mentions import (
    ACT_KINDS,
    TRANSFORMING_ACTS,
    Mention,
    UnavailableMention,
    get_kind,
)
from toolkit.planning.reading.requests.request_state import Place
from toolkit.planning.reading.requests.verb_reader import VerbReader
from toolkit.planning.reading.spans.noun_phrases import NounPhrase, read_noun_phrase
from toolkit.planning.reading.spans.scan import Break, Phrase

# Acts whose object is what they are about, even where it names something that can be made.
_TALKING_ACTS = frozenset(
    {"explain", "answer", "list", "brainstorm", "compare", "research", "classify"}
)
# Pictures that have to be right, and not only to look like what they show.
_DRAWN_BY_NUMBERS = frozenset({"unavailable.chart", "unavailable.qr_code"})
_FILES = frozenset(
    {
        "unavailable.document",
        "unavailable.spreadsheet",
        "unavailable.slides",
        "unavailable.website",
        "unavailable.read_file",
    }
)


class NounReader(VerbReader):
    """Reader of nouns; `RequestFinder` walks the words."""

    def _is_statement(self, phrase: NounPhrase) -> bool:
        """Tell whether a clause that opens with a noun says something instead of asking."""
        k = phrase.end
        if self._verb is not None or k >= self._end or self.scan.breaks[k]:
            return False
        owned = phrase.head if phrase.is_possessive else None
        if owned is not None and self.scan.word(k).endswith(self.grammar.inflections):
            return get_kind(self.scan, owned) is None  # "our website crashed"
        mentioned = phrase.is_definite and bool(self.mentions)
        opens = phrase.tail is not None and phrase.start == self._clause
        opens = opens and self._is_there(phrase) and phrase.start not in phrase.unknown
        if opens and not self._is_mentioned(phrase):
            return True  # "the drawing class" is no drawing
        if self.scan.word(k) in self.grammar.finite and not mentioned:
            return True
        # "a clean sample of it is art_…" says which artifact is which.
        return any(
            self.scan.word(n) in self.grammar.finite and self.scan.owners[n + 1] == "artifact"
            for n in range(k, self._end - 1)
        )

    def _add_noun(
        self, phrase: NounPhrase, head: Phrase, act: str | None = None, kind: str | None = None
    ) -> Mention:
        """Add what a noun asks for; `quote card` asks for a card made of a quote."""
        scan = self.scan
        kind = kind or get_kind(scan, head)
        named = scan.names.find_label([scan.word(head.end - 1)])[0] is not None
        if (kind == "text" or (kind is None and named)) and self._labels_quote(phrase):
            self.scan.consume(head.start, head.end, "label")
            return Mention("", head.start, head.end, self._clause)
        last = scan.find_sentence_end(phrase.end - 1)
        alone = all(scan.has(k, "polite") for k in range(phrase.end, last))
        if (
            kind == "research"
            and act is None
            and self.mentions
            and ((alone and not phrase.has_article) or phrase.is_possessive)
        ):
            self.facts.append(head.start)  # "Sources, please." asks for no other paper
            scan.consume(head.start, head.end, "fact")
            return Mention("", head.start, head.end, self._clause)
        music = self._find_music(phrase, head) if act != "write" else None
        if music is not None and "music.generate" not in scan.names.kinds:
            self._add_unavailable(music)
            return Mention("", head.start, head.end, self._clause)
        if kind is None:
            # "invoice 4471" is one that is there
            if phrase.has_article or not scan.word(phrase.end).isdigit():
                self._add_unavailable(head)
            return Mention("", head.start, head.end, self._clause)
        each = scan.find(phrase.start, "join.for_each") is not None
        words = {scan.word(k) for k in range(head.start, head.end)}
        is_listed = bool(words & self.grammar.listed)
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
        if self._asks_for_words(phrase.start):
            return None
        return next(
            (
                one
                for one in self.scan.phrases(head.start)
                if one.category == "unavailable.music" and one.end == head.end
            ),
            None,
        )

    def _asks_for_words(self, start: int) -> bool:
        """Tell whether a song is to be without its tune: `the words of a lullaby`, `no music`."""
        scan = self.scan
        words = start >= 2 and scan.has(start - 2, "unit.words")
        return (words and scan.has(start - 1, "about")) or any(
            owner == "negation" and scan.has(k, "unavailable.music")
            for k, owner in enumerate(scan.owners)
        )

    def _read_object_noun(self, phrase: NounPhrase, head: Phrase) -> tuple[int, Place]:
        """Read a noun as the object of the verb before it."""
        scan, verb = self.scan, self._verb
        kind = get_kind(scan, head)
        act = verb.category.removeprefix("act.") if verb and "act." in verb.category else None
        self._verb = None
        is_there = phrase.is_definite or phrase.is_possessive
        is_quoted = phrase.is_definite and "literal" in scan.owners
        if self._is_verb_unknown and is_quoted and kind == "text":
            return phrase.end, Place.AFTER  # "take that line" speaks of what is quoted
        named = {self.scan.word(k) for k in range(phrase.start)}
        is_named = scan.word(head.end - 1) in named  # "in a paragraph, and make the paragraph …"
        if self._is_verb_unknown and is_there and not (self.mentions or is_named):
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
            self._add_noun(phrase, head)  # "name your sources"
            return self._leave_noun(phrase)
        if made == "text" and kind == "research":
            mention = self._add_act(verb)
            mention.needs_facts = True
            return phrase.end, Place.AFTER
        is_quoted = is_quoted and kind == "text" and not phrase.tail
        is_quoted = is_quoted or "literal" in scan.owners[phrase.end : self._end]
        if made in {"speech", "card"} and is_quoted:
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
        if phrase.end < self._end and self.scan.owners[phrase.end] == "literal":
            return None  # a picture with a name is known to all
        return {"image": "unavailable.look_at_image", "speech": "unavailable.transcribe"}.get(
            kind or ""
        )

    def _reads_file(self, phrase: NounPhrase, head: Phrase, act: str) -> bool:
        """Tell whether a verb works on a file of somebody's: `sum the PDF up`."""
        is_there = phrase.is_definite or phrase.is_possessive
        ends = phrase.end >= self._end or bool(self.scan.breaks[phrase.end])
        # "the film Vertigo" is known to all; "the film" is one that lies somewhere.
        is_other = act in TRANSFORMING_ACTS and ends and not self.mentions
        is_file = is_there and (head.category in _FILES or is_other)
        if head.category == "unavailable.website" and act not in TRANSFORMING_ACTS:
            return False  # "describe our app" speaks of what everybody knows
        return is_file and act not in {"write", "draw", "lay_out", "research"}

    def _note_unknown(self, phrase: NounPhrase) -> None:
        """Note a thing that is asked for and that no lexicon knows; it may be a text."""
        self.unknown += phrase.unknown
        if self._is_verb_unknown:
            return  # an act that nobody knows makes no text
        if phrase.unknown and self.unknown_work is None:
            first, last = phrase.unknown[0], phrase.end
            self.unknown_work = Mention(
                "text", first, last, self._clause, form=self.scan.text(first, last)
            )

    def _opens_work(self, phrase: NounPhrase) -> bool:
        """Tell whether a sentence only names a work: `a meditation about rain, spoken`."""
        scan = self.scan
        if not (phrase.has_article and self._names_work(phrase)):
            return False
        if phrase.is_definite or phrase.is_possessive:
            return False  # "Our office keeps getting asked about parking" tells of somebody
        stated = any(scan.word(k) in self.grammar.finite for k in range(phrase.end, self._end))
        return scan.word(phrase.end) in self.grammar.topical and not stated

    def _note_named(self, phrase: NounPhrase) -> None:
        """Note what an objective without a verb names: `rules for a game about gardening`."""
        about = self.scan.find(phrase.end, "about") if phrase.unknown else None
        plain = about is not None and self.scan.word(phrase.end) in self.grammar.topical
        if not plain or self.unknown_work is not None:
            return
        noun = self.scan.word(phrase.end - 1)
        if noun in self.grammar.live and (phrase.count > 1 or not phrase.has_article):
            self.unavailable.append(UnavailableMention("live_data", phrase.start, phrase.end))
            return
        first, last = phrase.unknown[0], phrase.end
        form = self.scan.text(first, last)
        self.unknown_work = Mention("text", first, last, self._clause, form=form)

    def _names_work(self, phrase: NounPhrase) -> bool:
        """Tell whether a noun is a work, though no lexicon has it: it is `about` something."""
        if self._verb is not None and self._verb.category.startswith("act."):
            return False
        if not phrase.unknown or self._is_verb_unknown:
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

    def _skip_source(self, i: int) -> int | None:
        """Return where the object begins after what it is made of: `mach aus den Fotos ein …`."""
        scan, source = self.scan, self.scan.find(i, "join.from")
        if source is None or self._verb is None or self._verb.category != "make":
            return None
        phrase = read_noun_phrase(scan, source.end) if source.end < self._end else None
        if phrase is None or not phrase.has_article or phrase.end >= self._end:
            return None
        if scan.breaks[phrase.end] or not scan.has(phrase.end, "article", "number"):
            return None
        if read_noun_phrase(scan, phrase.end).is_definite:
            return None
        self._refers = self._refers or self._is_mentioned(phrase)
        return phrase.end

    def _is_content(self, phrase: NounPhrase, head: Phrase) -> bool:
        """Tell whether a noun says what goes into a text, after a colon: `notes: PDF export`."""
        current = self._current
        if current is None or current.kind != "text" or get_kind(self.scan, head) is not None:
            return False
        if phrase.has_article and not phrase.is_definite:
            return False
        return any(
            self.scan.breaks[k] == Break.CLAUSE for k in range(current.end, phrase.start + 1)
        )
