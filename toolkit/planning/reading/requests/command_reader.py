"""Commands: what is asked of things that nothing here holds, and of the world as it is now."""

from toolkit.planning.reading.requests.mentions import (
    ACT_KINDS,
    TRANSFORMING_ACTS,
    Mention,
    UnavailableMention,
    get_kind,
)
from toolkit.planning.reading.requests.question_reader import QuestionReader
from toolkit.planning.reading.requests.request_state import Place
from toolkit.planning.reading.spans.measures import YEARS
from toolkit.planning.reading.spans.noun_phrases import NounPhrase, find_head, read_noun_phrase
from toolkit.planning.reading.spans.scan import Break, Phrase

_SENSED = {"image": "look_at_image", "speech": "transcribe"}
_EDITED = {"image": "edit_image", "speech": "edit_audio", "clone": "edit_audio"}


class CommandReader(QuestionReader):
    """Reader of what a verb does to its object; what can be made is a closed set of kinds."""

    def _find_command(self, phrase: NounPhrase) -> str | None:
        """Return what it takes to do to an object what the verb before it says."""
        scan, grammar = self.scan, self.grammar
        if self._is_verb_unknown and phrase.head is None and self._is_there(phrase):
            given = self.mentions or self._leads_on(phrase) or "measure" in scan.owners
            return None if given else "handle"
        if self._verb is None or phrase.end <= phrase.start:
            return None
        word, noun = scan.word(self._verb.start), scan.word(phrase.end - 1)
        act = self._verb.category.partition(".")[2]
        is_there = self._is_there(phrase)
        if word in grammar.getting and noun in grammar.live and not self._tells_year(phrase):
            return "live_data"
        if is_there and noun in grammar.held and act not in {"draw", "write", "brainstorm"}:
            return None if self.mentions or self._follows_colon(phrase) else "read_file"
        told = is_there and phrase.end < self._end and scan.word(phrase.end) in grammar.subject
        if act in TRANSFORMING_ACTS and told and not self.mentions and not self._leads_on(phrase):
            return "read_file"  # "the report I sent you"
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
        is_there = self._is_there(phrase)
        if verb is None or phrase.head is None or not is_there or self._is_mentioned(phrase):
            return None
        if verb.category != "make" or phrase.end >= self._end or scan.breaks[phrase.end]:
            return None
        if (
            not self._compares(phrase.end)
            or not self.grammar.comparative
            or scan.has(phrase.end, "join.", "about")
        ):
            return None
        return _EDITED.get(get_kind(scan, phrase.head) or "")

    def _is_there(self, phrase: NounPhrase) -> bool:
        """Tell whether a phrase speaks of a thing that is there, or is somebody's."""
        first = self.scan.word(phrase.start)
        owned = first in self.grammar.possessive
        return phrase.is_definite or phrase.is_possessive or owned

    def _tells_year(self, phrase: NounPhrase) -> bool:
        end = self.scan.find_sentence_end(phrase.start)
        words = (self.scan.word(k) for k in range(phrase.start, end))
        return any(word.isdigit() and int(word) in YEARS for word in words)

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
        if self._follows_colon(phrase) or {"artifact", "literal"} & {*scan.owners}:
            return True
        for k in range(phrase.end, scan.find_sentence_end(phrase.start, Break.COMMA)):
            if scan.has(k, "join.and", "join.then"):
                return False
            if scan.has(k, "thing.", "creative", "language", "act."):
                return True
        return False

    def _ends_aloud(self, spoken: Phrase) -> bool:
        """Tell whether a topic ends with how it is told: `a story about bees read aloud`."""
        k = spoken.end
        ends = k >= self._end or self.scan.breaks[k] >= Break.COMMA
        current = self._current
        is_text = current is not None and current.kind == "text"
        each = self.scan.has(spoken.start - 1, "join.for_each")
        is_text = is_text and (each or bool(current and current.topics))
        return is_text and ends and k - spoken.start > 1 and not spoken.is_ambiguous

    def _is_same(self, phrase: NounPhrase) -> bool:
        """Tell whether a phrase without a noun stands for what was made: `the same`."""
        return phrase.head is None and self.scan.word(phrase.end - 1) in self.grammar.same

    def _converts_given(self) -> bool:
        """Tell whether a verb turns what is given into something else."""
        verb = self._verb
        return verb is not None and self.scan.word(verb.start) in self.grammar.converting

    def _change_text(self, i: int) -> tuple[int, Place] | None:
        """Read how a text made before is to be made again: `make it shorter`."""
        scan, last = self.scan, self.mentions[-1] if self.mentions else None
        if last is None or last.kind != "text" or self._verb is None or i >= self._end:
            return None
        if self._verb.category != "make" or scan.breaks[i] or not self._compares(i):
            return None
        self._verb = None
        self._add(Mention("text", i, i + 1, self._clause, act="rewrite"))
        return i + 1, Place.TOPIC

    def _compares(self, i: int) -> bool:
        """Tell whether an adjective in the comparative begins at a word."""
        word = self.scan.word(i)
        ends = self.grammar.comparative
        return word in self.grammar.comparing or bool(
            ends and len(word) > 3 and word.endswith(ends)
        )

    def _turn_given(self, i: int) -> tuple[int, Place] | None:
        """Read what something given is turned into: `turn “…” into speech`, `into plain words`."""
        scan, verb = self.scan, self._verb
        if verb is None or verb.category != "make" or not i < self._end - 1:
            return None
        word = scan.word(verb.start)
        if self.mentions or scan.breaks[i] or word not in self.grammar.converting:
            return None
        if scan.word(i) not in self.grammar.into:
            return None
        target = read_noun_phrase(scan, i + 1)
        self._verb = None
        self._refers = True
        spoken = f"{word} {scan.word(i)} {scan.text(i + 1, target.end)}"
        senses = {category for category, _ in scan.lexicon.meanings.get(spoken, ())}
        made = next((one for one in senses if one.startswith("act.")), None)
        if target.head is not None and made is None:
            kind = get_kind(scan, target.head)
            if kind is None:
                self._add_unavailable(target.head)
                return target.end, Place.TOPIC
            form = scan.text(target.head.start, target.head.end)
            mention = Mention(kind, target.head.start, target.head.end, self._clause, form=form)
            mention.count, mention.attributes = target.count, target.attributes
        else:
            act = made.removeprefix("act.") if made else "rewrite"
            last = max(target.end, i + 2)
            mention = Mention(ACT_KINDS[act], i + 1, last, self._clause, act=act)
        mention.language = target.language
        self._add(mention)
        return max(target.end, i + 2), Place.AFTER

    def _retract(self, start: int, end: int) -> int:
        """Drop what was asked for where the words take it back; return where to read on."""
        text = self.scan.text(start, end).casefold()
        taken_back = next((one for one in self.grammar.retracting if one in text), None)
        if taken_back is None or start == 0:
            return start
        self.mentions.clear()
        self.unavailable.clear()
        place = self.scan.tokens[start].start + text.index(taken_back) + len(taken_back)
        return next((k for k in range(start, end) if self.scan.tokens[k].start >= place), end)

    def _check_shown(self, start: int, end: int) -> None:
        """Look for a picture or a recording that a text is to tell the content of."""
        scan = self.scan
        told = [one for one in self.mentions if start <= one.start < end]
        if len(told) != 1 or told[0].kind != "text" or told[0].form or "artifact" in scan.owners:
            return
        shown = self.grammar.definite & self.grammar.pronouns | self.grammar.possessive
        for k in range(told[0].start + 1, end - 1):
            inside = scan.has(k - 1, "join.as", "join.from") and not scan.has(k - 1, "about")
            head = find_head(scan, k + 1) if inside and scan.word(k) in shown else None
            head = head or (find_head(scan, k + 2) if inside and scan.word(k) in shown else None)
            kind = get_kind(scan, head) if head is not None else None
            if kind in _SENSED and all(one.kind != kind for one in self.mentions):
                self.mentions.remove(told[0])
                self.unavailable.append(UnavailableMention(_SENSED[kind], told[0].start, end))
                return

    def _drop_own_acts(self, start: int, end: int) -> None:
        """Drop what somebody says to do himself: `die Folien drucke ich selbst aus`."""
        if self._has_question_mark():
            return
        self.unavailable = [
            one
            for one in self.unavailable
            if not (start <= one.start < end and self._is_own_act(one.start))
        ]

    def _is_own_act(self, place: int) -> bool:
        """Tell whether the first person is the subject of an act, and wants nothing."""
        scan, lexicon = self.scan, self.scan.lexicon
        start = place
        while start > 0 and not scan.breaks[start]:
            start -= 1
        end = scan.find_sentence_end(place, Break.COMMA)
        clause_ends = (k for k in range(place, end) if scan.word(k) in self.grammar.relative)
        clause = range(start, next(clause_ends, end))
        if any(scan.has(k, "polite") or scan.word(k) in self.grammar.wants for k in clause):
            return False
        spelled = [scan.tokens[k].text.lower() for k in clause]
        promised = scan.tokens[place].text.lower().endswith(lexicon.own_endings or "\0")
        return promised or any(word in lexicon.own_subjects for word in spelled)

    def _check_held(self, start: int, end: int) -> None:
        """Look for things of somebody's in a sentence that asks for nothing known."""
        scan, grammar = self.scan, self.grammar
        stated = any(scan.word(k) in grammar.subject | grammar.finite for k in range(start, end))
        if stated or self.mentions:
            return
        for k in range(start, end - 1):
            sent = scan.word(k) in grammar.means and scan.has(k + 1, "unavailable.send")
            if sent:
                self.unavailable.append(UnavailableMention("send", k, k + 2))
                return
            owned = scan.word(k) in grammar.possessive
            for noun in range(k + 1, min(k + 4, end)):
                if owned and scan.word(noun) in grammar.held:
                    self.unavailable.append(UnavailableMention("read_file", k, noun + 1))
                    return
