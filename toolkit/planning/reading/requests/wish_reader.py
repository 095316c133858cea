"""Wishes: requests in the clause of a verb that wishes, as formal letters have them."""

from toolkit.planning.reading.requests.join_reader import JoinReader
from toolkit.planning.reading.requests.request_state import Place
from toolkit.planning.reading.spans.noun_phrases import read_noun_phrase
from toolkit.planning.reading.spans.scan import Break, Phrase
from toolkit.planning.reading.spans.verbs import find_verb

# Pronouns, subjects and negations that may stand between a conjunction and its verb.
_MAX_WORDS_BEFORE_VERB = 6
# Words that may stand between a verb that wishes and its object: `me vendría de perlas un audio`.
_MAX_WORDS_AFTER_WISH = 4


class WishReader(JoinReader):
    """Reader of wishes; `RequestFinder` walks the words."""

    def _read_wish(self, i: int) -> tuple[int, Place] | None:
        """Read what is wished for: `agradecería que redactaran …`, `mi farebbe comodo una card`."""
        lexicon = self.scan.lexicon
        if not lexicon.courtesy or self._has_found():
            return None
        if self._is_courteous(i):
            return self._read_wished_noun(i)
        if i == self._clause and self.scan.word(i) in self.grammar.objects:
            return self._open_wished_clause(i)  # "Mi si disegni …"
        if self._wants and self.scan.word(i - 1) in lexicon.complements:
            return self._open_wished_clause(i)
        if self.scan.word(i) not in lexicon.complements:
            return None
        wished = i == self._clause or self._wants
        wished = wished or any(self._is_courteous(k) for k in range(self._clause, i))
        return self._open_wished_clause(i + 1) if wished else None

    def _is_courteous(self, i: int) -> bool:
        """Tell whether a word is a verb that wishes, such as one in the conditional."""
        scan = self.scan
        text = scan.tokens[i].text.lower()
        if not text.endswith(scan.lexicon.courtesy) or scan.has(i, "thing.", "creative"):
            return False
        return i == self._clause or not scan.has(i - 1, "article", "about")

    def _read_wished_noun(self, i: int) -> tuple[int, Place] | None:
        """Read a thing that a verb in the conditional wishes for."""
        scan = self.scan
        for k in range(i + 1, min(i + 1 + _MAX_WORDS_AFTER_WISH, self._end)):
            if scan.breaks[k] >= Break.CLAUSE or scan.word(k) in scan.lexicon.complements:
                return None
            if not scan.has(k, "article"):
                continue
            phrase = read_noun_phrase(scan, k)
            if phrase.head is None or phrase.is_definite or phrase.is_possessive:
                continue
            self._start_clause(self._clause, "start")
            self._wants = True
            return k, Place.OPEN
        return None

    def _open_wished_clause(self, i: int) -> tuple[int, Place] | None:
        """Open what is wished for at its verb, or at a noun that a verb follows."""
        scan = self.scan
        for k in range(i, min(i + _MAX_WORDS_BEFORE_VERB, self._end)):
            if k > i and scan.breaks[k] >= Break.CLAUSE:
                return None
            verb = self._find_wished_verb(k)
            if verb is not None:
                self._start_clause(self._clause, "start")
                self._wants = True
                return self._open_verb(verb)
            if scan.has(k, "article"):
                phrase = read_noun_phrase(scan, k)
                if phrase.head is not None and not phrase.is_definite:
                    self._start_clause(self._clause, "start")
                    self._wants = True
                    return k, Place.OPEN
            if not scan.has(k, "function_word", "pronoun", "polite", "article", "filler"):
                return None
        return None

    def _find_wished_verb(self, k: int) -> Phrase | None:
        verb = find_verb(self.scan, k)
        if verb is not None:
            return verb
        verb = self.scan.find(k, "act.", "make", "unavailable.")
        return verb if verb is not None and not verb.is_ambiguous else None
