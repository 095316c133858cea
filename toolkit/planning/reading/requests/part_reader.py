"""Parts: what a noun adds to what was asked for before it, and on what it stands."""

from toolkit.planning.reading.requests.mentions import TRANSFORMING_ACTS, get_kind
from toolkit.planning.reading.requests.noun_reader import NounReader
from toolkit.planning.reading.requests.request_state import Place, is_same_kind
from toolkit.planning.reading.spans.noun_phrases import NounPhrase, read_noun_phrase
from toolkit.planning.reading.spans.scan import Break, Phrase

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
# How many words the place of a part on a card may take: `in the middle`.
_MAX_PLACE = 3


class PartReader(NounReader):
    """Reader of parts; `RequestFinder` walks the words."""

    def _find_placed(self, i: int) -> NounPhrase | None:
        """Return a part of a card, by its place there: `over a picture of the sea`."""
        scan = self.scan
        joined = bool(scan.breaks[i]) or scan.has(i - 1, "join.and")
        if scan.word(i) not in self.grammar.placing:
            return None
        made = [one.kind for one in self.mentions]
        if "card" not in made or "image" in made:
            return None
        # "y de fondo un dibujo", "et au milieu un dessin": the place may have a name.
        last = i + _MAX_PLACE if joined else i + 1
        for k in range(i + 1, min(last + 1, self._end)):
            if scan.breaks[k] or not scan.is_free(k):
                return None
            phrase = read_noun_phrase(scan, k)
            indefinite = phrase.head is not None and phrase.has_article
            if indefinite and not phrase.is_definite and phrase.head is not None:
                return phrase if get_kind(scan, phrase.head) == "image" else None
        return None

    def _is_part(self, phrase: NounPhrase, head: Phrase, join: str) -> bool:
        """Tell whether a noun is a part of the text before it: `a quiz with five questions`."""
        current = self._current
        if current is None or current.kind != "text" or join == "then":
            return False
        if get_kind(self.scan, head) != "text" or phrase.language:
            return False
        return join == "with" or self.scan.word(head.end - 1) in self.grammar.parts

    def _read_shown(self, i: int) -> tuple[int, Place] | None:
        """Read a thing made before as a part of a card: `a card that puts the slogan on top`."""
        current = self._current
        if (
            current is None
            or current.kind != "card"
            or self.scan.word(i) not in self.grammar.definite
        ):
            return None
        phrase = read_noun_phrase(self.scan, i)
        kind = get_kind(self.scan, phrase.head) if phrase.head is not None else None
        if kind == "card" or not self._is_mentioned(phrase):
            return None
        current.refers, current.refers_to = True, kind
        if current.topics and self.scan.word(current.topics[-1][0]) in self.grammar.relative:
            current.topics.pop()
        return phrase.end, Place.AFTER

    def _qualifies(self, phrase: NounPhrase) -> bool:
        """Tell whether a bare noun only says how what was asked for is to be: `Bullets, please.`"""
        scan, head = self.scan, phrase.head
        if head is None or phrase.tail is not None or phrase.language or phrase.is_definite:
            return False
        kind = get_kind(scan, head)
        number = sum(one.count for one in self.mentions if one.kind == kind)
        if phrase.end < self._end and not (
            scan.breaks[phrase.end] or scan.has(phrase.end, "negation.only", "polite")
        ):
            return False
        if not number or kind == "research":
            return False
        if phrase.count > 1:
            return phrase.count == number and scan.breaks[phrase.start] == Break.SENTENCE
        is_form = scan.has(head.start, "attribute.") or scan.has(head.start, "unit.")
        is_many = scan.word(head.end - 1).endswith(self.grammar.plural)
        last = next(one for one in reversed(self.mentions) if one.kind == kind)
        is_named = last.act is not None and not last.form  # "Explain tides. Text, 90 words."
        return not phrase.has_article and (is_form or is_many or is_named)

    def _add_quality(self, phrase: NounPhrase) -> tuple[int, Place]:
        """Give what a bare noun says to the last thing of its kind."""
        head = phrase.head
        if head is not None:
            kind = get_kind(self.scan, head)
            self._current = next(one for one in reversed(self.mentions) if one.kind == kind)
            if self.scan.has(head.start, "attribute."):
                self._current.attributes.append(head.start)
            self.scan.consume(head.start, head.end, "request")
        return phrase.end, Place.AFTER

    def _continues_reference(self, phrase: NounPhrase, head: Phrase) -> bool:
        """Tell whether a bare noun joins what is referred to: `lay story and drawing out`."""
        current = self._current
        if current is None or not current.refers or phrase.has_article:
            return False
        kind = get_kind(self.scan, head)
        earlier = [one for one in self.mentions if one is not current]
        return any(is_same_kind(kind, one) for one in earlier) and kind != current.kind

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
            if self._find_music(phrase, head) is not None:
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

    def _try_participle(self, i: int, phrase: NounPhrase) -> tuple[int, Place] | None:
        """Read `with his observatory drawn on it`: a part, named by what it shows."""
        verb = self.scan.find(phrase.end, "act.draw", "act.speak") if phrase.unknown else None
        if verb is None or self.scan.breaks[phrase.end]:
            return None
        self._start_clause(i, "with")
        self._add_act(verb)
        self._note_topic(phrase.start, phrase.end)
        return verb.end, Place.AFTER

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

    def _may_carry(self, kind: str | None, i: int) -> bool:
        """Tell whether a word such as `on` puts something on it, and does not say what it is of."""
        if kind is None:
            return self._current is None or self._current.refers
        return kind in {"card", "clone"} and not self.scan.has(i, "join.for_each")

    def _opens_with_measure(self, phrase: NounPhrase, k: int) -> bool:
        return phrase.start == k and self.scan.owners[k] == "measure"
