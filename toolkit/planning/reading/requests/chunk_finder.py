"""The finder of requests in languages that set no spaces and say the topic before its noun."""

from collections.abc import Sequence
from dataclasses import replace

from toolkit.planning.reading.requests.chunks import (
    Chunk,
    ChunkKind,
    get_chunk_kind,
    is_kana,
    split_chunks,
)
from toolkit.planning.reading.requests.clauses import Clause, ClauseReader
from toolkit.planning.reading.requests.mentions import (
    ACT_KINDS,
    TRANSFORMING_ACTS,
    Mention,
    get_kind,
)
from toolkit.planning.reading.spans.literals import is_named
from toolkit.planning.reading.spans.scan import Break, Phrase

_TALKING_ACTS = frozenset({"explain", "answer", "list", "compare", "write", "brainstorm"})
_CONVERTED = frozenset({"speech", "card", "image", "text"})


class ChunkFinder(ClauseReader):
    """Finder of requests that reads a sentence verb by verb, each with its own chunks."""

    def find(self) -> None:
        """Read all sentences."""
        for start, end in self.scan.find_sentences():
            self._clause, self._join = start, "start"
            self._start, self._end, self._verb_place = start, end, start
            chunks = split_chunks(self.scan, start, end)
            before = self._count_found()
            self._resolve_chunks(chunks)
            chunks = self._take_negated(self._take_named_voice(chunks))
            is_open = self._is_open_question(chunks, end)
            for clause in () if is_open else self._split_clauses(chunks):
                self._read_clause(clause)
            asked = self._count_found() > before
            if is_open or (not asked and self._asks_question(chunks, end)):
                mention = Mention("text", start, start, start, act="answer", is_question=True)
                self._keep(mention, chunks)
            self._check_question(start, end)
            asked = self._count_found() > before
            if not asked and not self._says_what_is_given(chunks):
                self._check_edit(start, end)
            if self._count_found() == before:
                self._check_now(start, end)

    def _asks_question(self, chunks: Sequence[Chunk], end: int) -> bool:
        if not any(chunk.word == "question" for chunk in chunks):
            return False
        after = self.scan.objective[self.scan.tokens[end - 1].end :][:2]
        return after.startswith(("?", "？", "か"))

    def _is_open_question(self, chunks: Sequence[Chunk], end: int) -> bool:
        """Tell whether a sentence asks why or how, so that its verbs ask for nothing else."""
        asks = [n for n, chunk in enumerate(chunks) if chunk.word == "question"]
        if not asks or any(chunk.word == "polite" for chunk in chunks):
            return False
        closed = self._has_question_mark() or self.scan.text(start=end - 4, end=end).endswith(
            ("でしょう", "でしょうか", "ですか")
        )
        led = any(chunk.kind is ChunkKind.VERB for chunk in chunks[: asks[0]])
        says = any(self._says_something(chunk) for chunk in chunks[asks[0] + 1 :])
        return closed and says and not led

    # Negations.

    def _take_negated(self, chunks: list[Chunk]) -> list[Chunk]:
        """Ban what is not wanted; return the other chunks."""
        if "negations" in self._without:
            return chunks
        kept = list(chunks)
        for n, chunk in enumerate(chunks):
            around = self._list_negated(chunks, n)
            kinds = {kind for one in around if (kind := get_chunk_kind(self.scan, one))}
            verbs = any(one.verb is not None for one in around)
            if not around or not (kinds or verbs):
                continue
            self.banned |= kinds - {"research"} if chunk.word == "only" else kinds
            for one in (chunk, *around):
                self.scan.consume(one.start, one.end, "negation")
                if one in kept:
                    kept.remove(one)
        return kept

    def _list_negated(self, chunks: Sequence[Chunk], n: int) -> list[Chunk]:
        """List the nouns and verbs that a negation speaks of: next to it, but for particles."""
        step = {"negation": 1, "negation_after": -1}.get(chunks[n].word)
        if step is None:
            return []
        found: list[Chunk] = []
        at = n + step
        while 0 <= at < len(chunks):
            edge = chunks[max(at, at - step)].start
            if self.scan.breaks[edge] >= Break.CLAUSE or (
                self.scan.breaks[edge] and not (found and step > 0)
            ):
                break
            chunk = chunks[at]
            if chunk.kind in {ChunkKind.NOUN, ChunkKind.VERB}:
                found.append(chunk)
            elif (chunk.kind is not ChunkKind.WEAK and chunk.kind is not ChunkKind.COUNT) or (
                found and step < 0 and chunk.word != "and"
            ):
                break
            at += step
        return found

    # Requests.

    def _read_clause(self, clause: Clause) -> None:
        verb = clause.verb
        if verb is not None and verb.act == "clone" and self._has_clone():
            return  # "その声で": the one that is made
        if self._is_done_by_others(clause.chunks):
            return
        self._clause = min(
            (one.start for one in (*clause.chunks[:1], *([verb] if verb else ()))),
            default=self._clause,
        )
        self._note_facts(clause.chunks)
        if verb is not None and verb.verb is not None:
            if verb.verb.category.startswith("unavailable."):
                self._add_unavailable(verb.verb)
                return
            self.scan.consume(verb.start, verb.end, "act")
        refers = any(one.word == "pronoun" for one in clause.chunks)
        act = verb.act if verb is not None else None
        if act is None:
            self._ask_for_things(clause, refers=refers)
        else:
            self._ask_for_act(clause, act, refers=refers)

    def _has_clone(self) -> bool:
        return any(one.kind == "clone" for one in self.mentions)

    def _take_named_voice(self, chunks: list[Chunk]) -> list[Chunk]:
        """Read a recording's voice that gets a name as its clone; return what follows.

        As in `art_…の声を「店長」として登録し、…` and `用它做一个叫“小葵”的声音，…`.
        """
        quoted = [n for n, one in enumerate(chunks) if one.word == "literal"]
        if not quoted or self._has_clone() or "artifact" not in self.scan.owners:
            return chunks
        first = last = quoted[0]
        while last + 1 < len(chunks) and chunks[last + 1].word == "literal":
            last += 1
        if not is_named(self.scan, chunks[first].start, chunks[last].end):
            return chunks
        end = next(
            (
                n
                for n in range(last + 1, len(chunks))
                if self.scan.breaks[chunks[n].start] >= Break.COMMA
            ),
            len(chunks),
        )
        voice = next((one for one in chunks[:end] if self._names_voice(one)), None)
        known = any(one.word in {"artifact", "pronoun"} for one in chunks[:first])
        if voice is None or not (known or self._speaks_of_given(voice)):
            return chunks
        acts = [n for n in range(last + 1, end) if chunks[n].act not in {None, "clone"}]
        end = acts[0] if acts else end
        self._keep(Mention("clone", voice.start, voice.end, chunks[0].start, act="clone"), [])
        return chunks[end:]

    def _names_voice(self, chunk: Chunk) -> bool:
        word = self.scan.text(chunk.start, chunk.end)
        return word.endswith(tuple(self.grammar.voices)) and chunk.kind is not ChunkKind.TAKEN

    def _speaks_of_given(self, voice: Chunk) -> bool:
        """Tell whether a voice is one that was spoken of: `この声`."""
        return voice.noun is not None and voice.noun.category == "thing.clone"

    def _ask_for_things(self, clause: Clause, *, refers: bool) -> None:
        for chunk in clause.objects:
            if clause.targets and self._is_mentioned_kind(chunk):
                refers = True
                continue
            self._ask_for_noun(clause, chunk, refers=refers)
        if not clause.objects and not clause.targets:
            clause.objects += self._find_possessed(clause)
            for chunk in clause.objects:
                self._ask_for_noun(clause, chunk, refers=True)
        for chunk in clause.targets:
            if clause.objects:
                self._join = "as"
            self._ask_for_noun(clause, chunk, refers=refers or bool(self.mentions))
        if not clause.objects and not clause.targets and clause.verb is not None:
            self.unknown += [
                k
                for one in clause.chunks
                if one.kind is ChunkKind.TEXT
                for k in range(one.start, one.end)
            ]

    def _find_possessed(self, clause: Clause) -> list[Chunk]:
        """Find what is to be made of something mentioned, and is new: `その音声もつけて`."""
        for n, chunk in enumerate(clause.chunks):
            if chunk.word != "pronoun":
                continue
            noun = self._find_noun_in(Phrase(chunk.start, chunk.end, "pronoun"))
            kind = get_kind(self.scan, noun) if noun is not None else None
            if (
                kind is not None
                and kind != "text"
                and all(one.kind != kind for one in self.mentions)
            ):
                clause.chunks[n] = Chunk(ChunkKind.NOUN, chunk.start, chunk.end, noun=noun)
                return [clause.chunks[n]]
        return []

    def _ask_for_act(self, clause: Clause, act: str, *, refers: bool) -> None:
        made = ACT_KINDS[act]
        verb = clause.verb
        if verb is None:
            return
        targets = [one for one in clause.targets if get_chunk_kind(self.scan, one) in _CONVERTED]
        if targets and any(get_chunk_kind(self.scan, one) != made for one in targets):
            for chunk in targets:
                self._ask_for_noun(clause, chunk, refers=True)
            return
        asked = False
        for chunk in clause.objects:
            kind = get_chunk_kind(self.scan, chunk)
            if kind == made == "research":
                continue  # where it is to be looked up
            if kind == made or (act == "write" and kind not in {None, "research"}):
                is_old = act in TRANSFORMING_ACTS and self._is_mentioned_kind(chunk)
                if not is_old:
                    self._ask_for_noun(clause, chunk, act=act, refers=refers)
                    asked = True
            elif kind is None and chunk.noun is not None:
                if act not in TRANSFORMING_ACTS and made != "research":
                    self._add_unavailable(chunk.noun)
                    asked = True
            elif kind == "research" and made == "text":
                self.facts.append(chunk.start)
                asked = any(one.kind == "text" for one in self.mentions)
            elif self._is_mentioned_kind(chunk):
                refers = True
            elif "literal" in self.scan.owners:
                continue
            elif made in {"speech", "card"} and kind and self.scan.names.can_feed(kind, made):
                part = self._ask_for_noun(clause, chunk, refers=refers)
                part.is_delivered = False
                refers = True
        if not asked and self._says_again(act, clause):
            return
        if not asked:
            mention = Mention(made, verb.start, verb.end, self._clause, act=act, refers=refers)
            mention.is_question = act == "answer" and any(
                one.word == "question" for one in clause.chunks
            )
            self._keep(mention, clause.chunks)

    def _says_again(self, act: str, clause: Clause) -> bool:
        """Tell whether a verb only says how the text before it is to be: `比较…，列成表格`."""
        last = self.mentions[-1] if self.mentions else None
        if last is None or last.start < self._start or last.kind != "text" or clause.objects:
            return False
        return act in _TALKING_ACTS and (last.act in _TALKING_ACTS or last.is_question)

    def _is_mentioned_kind(self, chunk: Chunk) -> bool:
        kind = get_chunk_kind(self.scan, chunk)
        return any(one.kind == kind for one in self.mentions)

    def _ask_for_noun(
        self, clause: Clause, chunk: Chunk, *, act: str | None = None, refers: bool = False
    ) -> Mention:
        """Add the request that a noun names, with the chunks before it as what it is about."""
        noun = chunk.noun
        kind = get_chunk_kind(self.scan, chunk)
        mention = Mention(
            kind or "",
            chunk.start,
            chunk.end,
            self._clause,
            act=act,
            form=self.scan.text(chunk.start, chunk.end),
            is_creative=self.scan.has(chunk.start, "creative"),
            refers=refers,
        )
        if kind is None:
            if noun is not None:
                self._add_unavailable(noun)
            return mention
        here = clause.chunks.index(chunk) if chunk in clause.chunks else len(clause.chunks)
        previous = [n for n, one in enumerate(clause.chunks[:here]) if one in clause.objects]
        start = previous[-1] + 1 if previous else 0
        near = clause.chunks if len(clause.objects) == 1 else clause.chunks[start : here + 3]
        counts = [one.count for one in near if one.kind is ChunkKind.COUNT]
        is_listed = any(mention.form.endswith(word) for word in self.grammar.listed)
        if counts and not is_listed:
            mention.count = counts[0]
        if self._is_added(clause, here):
            self._join = "with"
        said = [one for one in clause.chunks[here + 1 :] if one.word]
        self._keep(mention, [*(clause.chunks[start:here] or clause.chunks[here + 1 :]), *said])
        return mention

    def _is_added(self, clause: Clause, here: int) -> bool:
        """Tell whether a noun is asked for as part of another: `絵付きで`, `配一张图`."""
        if clause.verb is not None and clause.verb.word == "with":
            return True
        after = clause.chunks[here + 1 : here + 2]
        return bool(after) and after[0].word == "with" and self.scan.lexicon.code == "ja"

    def _keep(self, mention: Mention, chunks: Sequence[Chunk]) -> None:
        """Keep a mention, and what its chunks say of it."""
        topics: list[tuple[int, int]] = []
        for chunk in chunks:
            if mention.kind == "research" and mention.act and self._is_source(chunk):
                continue
            if chunk.word == "language" and mention.language is None:
                mention.language = chunk.value
            elif chunk.word == "attribute":
                mention.attributes.append(chunk.start)
            elif chunk.word == "each":
                mention.each = True
            elif chunk.word == "only":
                self._is_only = True
            elif chunk.kind is ChunkKind.TEXT and self._is_ending(chunk):
                continue
            elif chunk.kind in {ChunkKind.TEXT, ChunkKind.NOUN, ChunkKind.VERB} or (
                topics and chunk.kind is ChunkKind.WEAK and not chunk.word
            ):
                if topics and topics[-1][1] == chunk.start:
                    topics[-1] = (topics[-1][0], chunk.end)
                elif chunk.kind is not ChunkKind.WEAK:
                    topics.append((chunk.start, chunk.end))
        quoted = [one for one in chunks if one.word == "literal"]
        if quoted and mention.kind == "research":
            topics = [(quoted[0].start, quoted[-1].end)]
        mention.topics = topics
        if mention.kind in {"image", "text"} and self._opens_with_part(mention.clause):
            self._join = "with"
        self._refers, self._refers_to, self._each = False, None, False
        self._add(mention)
        self._join = "and"
        spoken = [one.value for one in chunks if one.word == "language"]
        for code in spoken[1:]:
            self._add(replace(mention, language=code, inputs=[], topics=list(topics)))

    def _opens_with_part(self, clause: int) -> bool:
        """Tell whether words are about a part of a card mentioned before: `背景には…描いて`."""
        start = clause
        while start > 0 and not self.scan.breaks[start]:
            start -= 1
        text = self.scan.text(start, self.scan.find_sentence_end(start))
        has_card = any(one.kind == "card" for one in self.mentions)
        return has_card and text.startswith(self.grammar.parts_of_card)

    def _is_source(self, chunk: Chunk) -> bool:
        return chunk.noun is not None and get_chunk_kind(self.scan, chunk) == "research"

    def _is_ending(self, chunk: Chunk) -> bool:
        """Tell whether a chunk is the end of a word that was read, and no topic."""
        return chunk.end - chunk.start == 1 and is_kana(self.scan.word(chunk.start))
