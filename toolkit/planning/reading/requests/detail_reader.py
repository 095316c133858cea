"""Details of what is asked for: negations, facts, languages, and what is to be done with it."""

from toolkit.planning.reading.requests.mentions import Mention, get_kind
from toolkit.planning.reading.requests.request_state import Place, RequestState
from toolkit.planning.reading.spans.noun_phrases import UNAVAILABLE_NOUNS, find_head
from toolkit.planning.reading.spans.scan import Break, Phrase
from toolkit.planning.reading.spans.verbs import find_verb


class DetailReader(RequestState):
    """Reader of details; `RequestFinder` walks the words."""

    def _read_negation(self, i: int) -> tuple[int, Place] | None:
        """Read what is not wanted; a double negation wants it."""
        scan = self.scan
        negation = scan.find(i, "negation.before")
        if negation is None or "negations" in self._without:
            return None
        second = scan.find(negation.end, "negation.before") if negation.end < self._end else None
        again = scan.word(negation.end) in self.grammar.concord
        if second is not None and not scan.breaks[negation.end] and not again:
            scan.consume(i, second.end, "negation")
            self._verb, self._join = None, "with"
            return second.end, Place.OBJECT
        end = scan.find_sentence_end(negation.end - 1, Break.COMMA)
        start = second.end if second is not None and again else negation.end
        kinds, last = self._find_negated(start, min(end, self._end))
        if last is None:
            nothing = scan.word(i) in self.grammar.nothing and self._current is not None
            return (end, Place.AFTER) if nothing else None
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
                if not scan.find(k, "join.and") and scan.word(k) not in self.grammar.concord:
                    break
                k += 1
                continue
            if not scan.has(k, "article", "filler", "make", "polite", "function_word", "pronoun"):
                return kinds, None
            if scan.find(k, "about"):
                return kinds, None
            k += 1
        return kinds, last if last is not None else None

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
        led = scan.breaks[i] or scan.owners[i - 1] or not scan.has(i - 1, "about", "article")
        led = led and not scan.has(i - 1, "join.and")
        if language is not None and led and self._current and self._ends_here(language):
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

    def _asks_for_reasons(self, start: int) -> bool:
        """Tell whether a question is why or how something is at all: `why do prices rise?`"""
        word, then = self.scan.word(start), self.scan.word(start + 1)
        is_manner = word in self.grammar.manner and then not in self.grammar.measuring
        return is_manner or word in self.grammar.reasons

    def _find_live_data(self, i: int) -> Phrase | None:
        """Return what asks for the state of this moment: of a poem it is only the topic."""
        live = self.scan.find(i, "unavailable.live_data")
        if live is None:
            return None
        current = self._current
        if current is not None and current.is_question and self._asks_for_reasons(current.start):
            return None
        words = {self.scan.word(k) for k in range(live.start, live.end)}
        momentary = self.grammar.momentary
        now = live.end - live.start > 1 and (not momentary or bool(words & momentary))
        asks = current is None or current.is_question or now
        if current is not None and current.is_creative:
            return live if asks and any(self.scan.breaks[current.end : i + 1]) else None
        return live if asks else None
