"""Questions, and sentences that ask for what none of the other words say."""

from toolkit.planning.reading.requests.detail_reader import DetailReader
from toolkit.planning.reading.requests.mentions import Mention, UnavailableMention
from toolkit.planning.reading.requests.request_state import Place
from toolkit.planning.reading.spans.noun_phrases import find_head, read_noun_phrase


class QuestionReader(DetailReader):
    """Reader of questions; `RequestFinder` walks the words."""

    def _opens_question(self, i: int) -> bool:
        """Tell whether a question begins at a word: with a question mark, or with `why`."""
        if self._has_question_mark():
            return True
        if self.scan.word(i) in self.grammar.conditions or self.scan.has(i, "join.from"):
            return False
        if self.scan.word(i) in self.grammar.finite:
            return False
        return any(
            one.category == "question" and (one.end == i + 1 or self.scan.has(i, "act."))
            for one in self.scan.phrases(i)
        )

    def _open_question(self, i: int) -> tuple[int, Place]:
        mention = Mention("text", i, i, self._clause, act="answer", is_question=True)
        self._add(mention)
        self._note_topic(i, i + 1)
        return i + 1, Place.TOPIC

    def _check_question(self, start: int, end: int) -> None:
        """Take a question about this moment, or about an artifact, for what it needs."""
        asked = self.mentions[-1] if self.mentions else None
        if asked is None or not asked.is_question or asked.start < start:
            return
        text = self.scan.text(start, end).casefold()
        key = None
        persons = self.grammar.subject - self.grammar.impersonal
        personal = any(
            self.scan.word(k) in persons and not self.scan.has(k, "question")
            for k in range(start, end)
        )
        is_now = any(now in text for now in self.grammar.now) and not personal
        if is_now or self._asks_for_live(start, end):
            key = "live_data"
        elif "artifact" in self.scan.owners[start:end]:
            key = "look_at_image"
        if key is not None:
            self.mentions.remove(asked)
            self.unavailable.append(UnavailableMention(key, start, end))

    def _check_now(self, start: int, end: int) -> None:
        """Take a sentence that asks for nothing else, and for this moment, for live data."""
        text = self.scan.text(start, end).casefold()
        asks = any(self.scan.has(k, "question") for k in range(start, end))
        asks = asks or (not self.scan.lexicon.separator and self._has_question_mark())
        if asks and any(now in text for now in self.grammar.now):
            self.unavailable.append(UnavailableMention("live_data", start, end))

    def _asks_for_live(self, start: int, end: int) -> bool:
        """Tell whether a question is about what will be so soon, or about a thing of somebody's."""
        if self._asks_for_reasons(start):
            return False
        words = [self.scan.word(k) for k in range(start, end)]
        text = self.scan.text(start, end).casefold()
        live = any(word in self.grammar.live for word in words)
        if live and any(soon in text for soon in self.grammar.soon):
            return True
        is_now = words[0].endswith("'s") or any(w in {"is", "are"} for w in words[1:2])
        for k in range(start + 1, min(start + 4, end)):
            if is_now and self.scan.word(k) == "the":
                phrase = read_noun_phrase(self.scan, k)
                if self.scan.word(phrase.end - 1) in self.grammar.live and phrase.end < end:
                    return not any(word.isdigit() for word in words)
        owns = self.grammar.possessive | self.grammar.subject
        return any(w in self.grammar.held for w in words) and any(w in owns for w in words)

    def _ask_whole_sentence(self, start: int, end: int) -> None:
        """Take a sentence with a question mark for a question, if it has words of its own."""
        if self._only_calls_for_help(start, end):
            return
        known = [k for k in range(start, end) if self.scan.has(k, "function_word", "question")]
        weak = ("polite", "function_word", "pronoun")
        says = any(not self.scan.has(k, *weak) for k in range(start, end))
        if says and any(not self.scan.has(k, "polite") for k in known):
            self._start_clause(start, "start")
            self._open_question(start)
            self._note_topic(start, end)

    def _only_calls_for_help(self, start: int, end: int) -> bool:
        """Tell whether a question has nothing but set phrases: `can you help me with this?`"""
        k = start
        while k < end:
            phrase = self.scan.find(k, "polite")
            if phrase is None:
                break
            k = phrase.end
        return k > start and (k >= end or self.scan.has(k, "join.with"))

    def _check_objects(self, start: int, end: int) -> None:
        """Look for what nothing here does in a sentence that asks for something unknown."""
        scan = self.scan
        stating = self.grammar.subject | self.grammar.finite
        if self._verb_place is None or any(
            scan.word(k).partition("'")[0] in stating for k in range(start, end)
        ):
            return
        for k in range(self._verb_place, end):
            head = find_head(scan, k)
            if head is not None and head.category.startswith("unavailable."):
                self._add_unavailable(head)
                return

    def _check_edit(self, start: int, end: int) -> None:
        """Take a sentence that does something else with an artifact for an edit of it."""
        scan = self.scan
        owners = scan.owners[start:end]
        if "artifact" not in owners or "negation" in owners or self._verb_place is None:
            return
        stated = any(scan.word(k) in self.grammar.finite for k in range(start, end))
        if not stated:
            self.unavailable.append(UnavailableMention("edit_image", start, end))
