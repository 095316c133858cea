"""Requests in sentences that no rule of clauses read: fragments, and asides before a request."""

from toolkit.planning.reading.requests.frame_reader import find_framed_acts
from toolkit.planning.reading.requests.mentions import get_kind
from toolkit.planning.reading.requests.request_finder import RequestFinder
from toolkit.planning.reading.spans.noun_phrases import NounPhrase, read_noun_phrase
from toolkit.planning.reading.spans.scan import Break, Phrase
from toolkit.planning.reading.spans.verbs import find_verb

_OPENERS = ("polite", "join.and", "join.then", "join.as", "join.with", "filler", "article")


class FragmentFinder(RequestFinder):
    """Finder of requests that reads on in the middle of sentences before it gives up.

    What names a work is a request even where no clause asks for it: `no rush... but a wallpaper of
    cranes would make my week`. Only where nothing else was found is it looked for.
    """

    def find(self) -> None:
        """Walk through all sentences, and once more where they asked for nothing."""
        super().find()
        if "frames" not in self._without:
            find_framed_acts(self)
        skipped = "fragments" in self._without or "artifact" in self.scan.owners
        if skipped or self._has_found():
            return
        for inner in (False, True):
            for start, end in self.scan.find_sentences():
                self._read_fragment(start, end, inner=inner)
                if self._has_found():
                    self._read_rest(end)
                    return

    def _read_fragment(self, start: int, end: int, *, inner: bool) -> None:
        """Read a sentence from the first word that can begin a request.

        Args:
            start: the sentence's first word.
            end: where it ends.
            inner: whether a noun inside of another's phrase counts: `the words of a lullaby`.
        """
        k = start
        while k < end and not self._has_found():
            if self._can_begin(k, start, end, inner=inner):
                self._read_sentence(k, end)
                self._note_before(start, k)
            k += 1

    def _read_rest(self, start: int) -> None:
        for first, last in self.scan.find_sentences():
            if first >= start:
                self._read_sentence(first, last)

    def _can_begin(self, k: int, start: int, end: int, *, inner: bool) -> bool:
        """Tell whether an act, or a noun that names something to be made, begins at a word."""
        scan = self.scan
        if not scan.is_free(k):
            return False
        opens = k == start or bool(scan.breaks[k]) or scan.has(k - 1, *_OPENERS)
        verb = find_verb(scan, k) or (scan.has(k, "act.") and scan.find(k, "question"))
        if verb and self._is_asked_aside(verb, opens):
            return True
        phrase = read_noun_phrase(scan, k)
        if phrase.head is None or phrase.is_definite or phrase.is_possessive or phrase.end > end:
            return False
        if get_kind(scan, phrase.head) in {None, "research"}:
            return False
        if k > start and scan.has(k - 1, "article", "negation.") and not scan.breaks[k]:
            return False
        return inner or self._is_named(phrase, opens, end)

    def _is_asked_aside(self, verb: Phrase, opens: bool) -> bool:
        """Tell whether a verb asks for something: `it is late, so write …`, `read this out`."""
        if verb.category == "question":
            return opens
        if not verb.category.startswith("act."):
            return False
        quoted = verb.end < len(self.scan) and self.scan.owners[verb.end] == "literal"
        is_phrase = verb.particle is not None or verb.end - verb.start > 1
        return quoted or is_phrase or (opens and not verb.is_ambiguous)

    def _is_named(self, phrase: NounPhrase, opens: bool, end: int) -> bool:
        """Tell whether a noun stands where it names a work, and is not just spoken of."""
        scan = self.scan
        if phrase.has_article or phrase.count > 1:
            return not (phrase.start and scan.has(phrase.start - 1, "about", "join.from"))
        ends = phrase.end >= end or scan.breaks[phrase.end] >= Break.COMMA
        return opens and ends

    def _note_before(self, start: int, k: int) -> None:
        """Take the words before a noun for its topic where none follow: `two foxes, in oil`."""
        if not self.mentions or k == start or self.mentions[0].topics:
            return
        first = self.mentions[0]
        first.topics.append((start, k))
