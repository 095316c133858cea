"""Commands: what is asked of things that nothing here holds, and of the world as it is now."""

from toolkit.planning.reading.requests.mentions import UnavailableMention, get_kind
from toolkit.planning.reading.requests.question_reader import QuestionReader
from toolkit.planning.reading.spans.noun_phrases import NounPhrase
from toolkit.planning.reading.spans.scan import Break

# A number like these is a year, and what is asked of it is history.
_YEARS = range(1000, 2100)
_EDITED = {"image": "edit_image", "speech": "edit_audio", "clone": "edit_audio"}


class CommandReader(QuestionReader):
    """Reader of what a verb does to its object; what can be made is a closed set of kinds."""

    def _find_command(self, phrase: NounPhrase) -> str | None:
        """Return what it takes to do to an object what the verb before it says."""
        scan, grammar = self.scan, self.grammar
        if self._verb is None or phrase.end <= phrase.start:
            return None
        word, noun = scan.word(self._verb.start), scan.word(phrase.end - 1)
        act = self._verb.category.partition(".")[2]
        is_there = phrase.is_definite or phrase.is_possessive
        if word in grammar.getting and noun in grammar.live and not self._tells_year(phrase):
            return "live_data"
        if is_there and noun in grammar.held and act not in {"draw", "write", "brainstorm"}:
            return None if self.mentions or self._follows_colon(phrase) else "read_file"
        if phrase.head is not None:
            return self._find_edit(phrase)
        if word in grammar.playing and not self.mentions:
            return "music"
        if self.mentions or not phrase.unknown or self._leads_on(phrase):
            return None
        fetches = word in grammar.fetching
        moves = word in grammar.moving and is_there
        return "handle" if fetches or moves else None

    def _find_edit(self, phrase: NounPhrase) -> str | None:
        """Return what edits a thing that is there, as in `make the image brighter`."""
        scan, verb = self.scan, self._verb
        is_there = phrase.is_definite or phrase.is_possessive
        if verb is None or phrase.head is None or not is_there or self._is_mentioned(phrase):
            return None
        if verb.category != "make" or phrase.end >= self._end or scan.breaks[phrase.end]:
            return None
        word = scan.word(phrase.end)
        compares = word in self.grammar.comparing or (
            len(word) > 3 and word.endswith(self.grammar.comparative)
        )
        if not compares or not self.grammar.comparative or scan.has(phrase.end, "join.", "about"):
            return None
        return _EDITED.get(get_kind(scan, phrase.head) or "")

    def _tells_year(self, phrase: NounPhrase) -> bool:
        end = self.scan.find_sentence_end(phrase.start)
        words = (self.scan.word(k) for k in range(phrase.start, end))
        return any(word.isdigit() and int(word) in _YEARS for word in words)

    def _follows_colon(self, phrase: NounPhrase) -> bool:
        """Tell whether what a verb works on is given after a colon, or quoted."""
        scan = self.scan
        end = phrase.end
        return "literal" in scan.owners[end:] or any(
            scan.breaks[k] == Break.CLAUSE for k in range(end, self._end)
        )

    def _leads_on(self, phrase: NounPhrase) -> bool:
        """Tell whether the words after an object say what is to become of it."""
        scan = self.scan
        if self._follows_colon(phrase) or "artifact" in scan.owners:
            return True
        last = scan.find_sentence_end(phrase.start, Break.COMMA)
        return any(
            scan.has(k, "thing.", "creative", "language", "act.") for k in range(phrase.end, last)
        )

    def _check_held(self, start: int, end: int) -> None:
        """Look for things of somebody's in a sentence that asks for nothing known."""
        scan, grammar = self.scan, self.grammar
        stated = any(scan.word(k) in grammar.subject | grammar.finite for k in range(start, end))
        if stated or self.mentions:
            return
        for k in range(start, end - 1):
            owned = scan.word(k) in grammar.possessive
            for noun in range(k + 1, min(k + 4, end)):
                if owned and scan.word(noun) in grammar.held:
                    self.unavailable.append(UnavailableMention("read_file", k, noun + 1))
                    return
