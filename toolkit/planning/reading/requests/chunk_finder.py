"""The finder of requests in languages that set no spaces and say the topic before its noun."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from toolkit.planning.reading.requests.chunks import (
    Chunk,
    ChunkKind,
    get_chunk_kind,
    is_kana,
    split_chunks,
)
from toolkit.planning.reading.requests.mentions import ACT_KINDS, TRANSFORMING_ACTS, Mention
from toolkit.planning.reading.requests.request_finder import RequestFinder
from toolkit.planning.reading.spans.scan import Break, Phrase

# After a Japanese verbal noun, or the stem of a verb: what makes it a verb.
_VERBAL = re.compile(
    "(?:を|の)?(?:ご)?(?:お願|頼|希望|願|依頼|して|し[たつなまろよ、,]|する|せよ|くだ|下さ|よろしく|できま)"
)
_INFLECTED = re.compile("て|で(?!す)|た(?!め)|る|ま[しす]|よう|ろ|つつ")
# A Japanese verb in a form that stands before a noun, and not at the end of a request.
_NOUNISH = "(?:の[はもがをにで]|とき|時|ため|場合|人|[一-鿿ァ-ヺA-Za-z0-9「『])"
_RELATIVE = re.compile(f"(?:し|さ|て|で|い|られ|れ|せ|でき)*[るたす]{_NOUNISH}")
_DICTIONARY_FORM = re.compile(f"[るうくすつぬぶむぐただ]{_NOUNISH}")
_BECOMES = re.compile("に(?:し|す)")
_BECOMING = frozenset("成为為作进進到")
_LAST_MARKS = frozenset({"し", "す", "", "を", "も", "お", "だ", "で", "と", "请", "請"})
_TALKING_ACTS = frozenset({"explain", "answer", "list", "compare", "write", "brainstorm"})
_CONVERTED = frozenset({"speech", "card", "image", "text"})


@dataclass(slots=True)
class Clause:
    """A verb with what it takes.

    Attributes:
        verb: the chunk that names the act; none of a clause that only names things.
        chunks: all but the verb, in order.
        objects: the nouns that it makes or works on.
        targets: the nouns that its object becomes.
    """

    verb: Chunk | None
    chunks: list[Chunk]
    objects: list[Chunk]
    targets: list[Chunk]


class ChunkFinder(RequestFinder):
    """Finder of requests that reads a sentence verb by verb, each with its own chunks."""

    def find(self) -> None:
        """Read all sentences."""
        for start, end in self.scan.find_sentences():
            self._clause, self._join = start, "start"
            self._start, self._end, self._verb_place = start, end, start
            chunks = split_chunks(self.scan, start, end)
            before = len(self.mentions) + len(self.unavailable)
            self._resolve_chunks(chunks)
            chunks = self._take_negated(chunks)
            for clause in self._split_clauses(chunks):
                self._read_clause(clause)
            asked = len(self.mentions) + len(self.unavailable) > before
            if not asked and self._asks_question(chunks, end):
                mention = Mention("text", start, start, start, act="answer", is_question=True)
                self._keep(mention, chunks)
            self._check_question(start, end)
            if len(self.mentions) + len(self.unavailable) == before:
                self._check_edit(start, end)

    def _asks_question(self, chunks: Sequence[Chunk], end: int) -> bool:
        if not any(chunk.word == "question" for chunk in chunks):
            return False
        after = self.scan.objective[self.scan.tokens[end - 1].end :][:2]
        return after.startswith(("?", "？", "か"))

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

    # Clauses.

    def _split_clauses(self, chunks: Sequence[Chunk]) -> Iterator[Clause]:
        verbs = [n for n, chunk in enumerate(chunks) if chunk.kind is ChunkKind.VERB]
        if self.scan.lexicon.code == "ja":
            first = 0
            for n in verbs:
                yield self._make_verb_last(chunks[n], list(chunks[first:n]))
                first = n + 1
            yield from self._list_named(chunks[first:])
            return
        first = verbs[0] if verbs else len(chunks)
        led = list(chunks[:first])
        if not verbs:
            yield from self._list_named(led)
        for n, after in itertools.pairwise((*verbs, len(chunks))):
            own, rest = self._split_part(chunks[n + 1 : after])
            yield self._make_verb_first(chunks[n], led, own)
            led = rest
        if verbs:
            yield from self._list_named(led)

    def _split_part(self, chunks: Sequence[Chunk]) -> tuple[list[Chunk], list[Chunk]]:
        """Split off what a verb takes: up to a comma after which something else is named."""
        for n, chunk in enumerate(chunks):
            if n and self.scan.breaks[chunk.start] >= Break.COMMA:
                return list(chunks[:n]), list(chunks[n:])
        return list(chunks), []

    def _resolve_chunks(self, chunks: list[Chunk]) -> None:
        """Decide which of the words that may be verbs are verbs here."""
        is_verb = self._is_verb_last if self.scan.lexicon.code == "ja" else self._is_verb_first
        for n, chunk in enumerate(chunks):
            if chunk.verb is None:
                if chunk.noun is not None and self._is_relative(chunk):
                    chunk.kind, chunk.noun = ChunkKind.TEXT, None
                if n and chunks[n - 1].noun is not None and self._becomes(chunk):
                    chunk.kind = ChunkKind.VERB
                    chunk.verb = Phrase(chunk.start, chunk.end, "make")
                continue
            decided = is_verb(chunks, n)
            if decided:
                chunk.kind, chunk.noun = ChunkKind.VERB, None
            else:
                is_noun = decided is not None and chunk.noun is not None
                chunk.kind = ChunkKind.NOUN if is_noun else ChunkKind.TEXT
                chunk.verb, chunk.noun = None, chunk.noun if is_noun else None

    def _is_relative(self, chunk: Chunk) -> bool:
        """Tell whether a Japanese verb stands before a noun that it says something of."""
        end = self.scan.tokens[chunk.end - 1].end
        own = self.scan.word(chunk.end - 1)
        return is_kana(own) and _RELATIVE.match(self.scan.objective[end : end + 8]) is not None

    def _becomes(self, chunk: Chunk) -> bool:
        """Tell whether Japanese words say that the noun before them is what is made."""
        text = self.scan.objective[self.scan.tokens[chunk.start].start :][:3]
        return self.scan.lexicon.code == "ja" and _BECOMES.match(text) is not None

    def _is_verb_last(self, chunks: Sequence[Chunk], n: int) -> bool | None:
        """Tell whether a Japanese word is the verb of a request; none if it is part of a topic."""
        chunk = chunks[n]
        end = self.scan.tokens[chunk.end - 1].end
        after = self.scan.objective[end : end + 8]
        own = self.scan.text(chunk.start, chunk.end)
        if _DICTIONARY_FORM.match(own[-1] + after) or _RELATIVE.match(after):
            return None
        if not chunk.is_ambiguous and not (chunk.verb and chunk.verb.is_ambiguous):
            return True
        if _VERBAL.match(after) or (is_kana(own[-1]) and _INFLECTED.match(after)):
            return True
        if own.endswith(("て", "って", "んで")):
            return True
        last = n + 1 == len(chunks) or self.scan.breaks[chunks[n + 1].start] >= Break.COMMA
        return last and n > 0 and self.scan.word(chunk.start - 1) in {"を", "に", "で", "へ"}

    def _is_verb_first(self, chunks: Sequence[Chunk], n: int) -> bool | None:
        """Tell whether a Chinese word is the verb of a request; none if it is part of a topic."""
        chunk = chunks[n]
        before = chunks[n - 1] if n else None
        if before is None or self.scan.breaks[chunk.start]:
            return not self._is_only_noun(chunks, n)
        if before.kind is ChunkKind.COUNT or self.scan.word(before.end - 1) == "的":
            return None if chunk.noun is None else False
        added = chunks[n - 2] if n > 1 and before.kind is ChunkKind.WEAK else before
        if "with" in {before.word, added.word} and chunk.noun is not None:
            return False
        if any(self.scan.word(one.start) in {"把", "将", "將"} for one in chunks[:n]):
            return True
        if before.kind is ChunkKind.VERB and chunk.noun is not None:
            return before.act not in {None, "write"}
        if chunk.is_ambiguous or (chunk.verb and chunk.verb.is_ambiguous):
            if before.kind is ChunkKind.TAKEN or self._has_becoming(chunk.end):
                return True
            return before.kind is ChunkKind.WEAK and not self.scan.has(before.start, "article")
        return None if self._is_said_of_others(chunks, n) else True

    def _is_only_noun(self, chunks: Sequence[Chunk], n: int) -> bool:
        """Tell whether a word that may be a verb opens a part that only names a thing."""
        chunk = chunks[n]
        if chunk.noun is None:
            return False
        last = n + 1 == len(chunks) or bool(self.scan.breaks[chunks[n + 1].start])
        return last and not self.mentions

    def _is_said_of_others(self, chunks: Sequence[Chunk], n: int) -> bool:
        """Tell whether somebody else does what a verb says: `我来发`."""
        before = chunks[n - 1]
        return self.scan.word(before.end - 1) in {"我", "们", "他", "她", "来"} and not any(
            one.word == "polite" for one in chunks[:n]
        )

    def _make_verb_last(self, verb: Chunk, chunks: list[Chunk]) -> Clause:
        objects, targets = [], []
        for n, chunk in enumerate(chunks):
            if chunk.noun is None or self._is_label(chunk):
                continue
            mark = self._find_mark(chunks, n)
            if mark in {"に", "へ", "として", "で"}:
                is_target = mark != "で" or get_chunk_kind(self.scan, chunk) in {"speech", "card"}
                if is_target and self._is_last_noun(chunks, n):
                    targets.append(chunk)
            elif mark not in {"の", "が", "から"}:
                objects.append(chunk)
        return Clause(verb, chunks, objects, targets)

    def _is_last_noun(self, chunks: Sequence[Chunk], n: int) -> bool:
        return not any(one.noun is not None for one in chunks[n + 1 :])

    def _find_mark(self, chunks: Sequence[Chunk], n: int) -> str:
        """The particle after a noun, past a count and adverbs; empty where none follows."""
        for k in range(n + 1, len(chunks)):
            if self.scan.breaks[chunks[k].start] >= Break.COMMA:
                return "、"
            if chunks[k].kind is ChunkKind.COUNT:
                continue
            if chunks[k].word == "polite":
                return ""
            text = self.scan.text(chunks[k].start, chunks[k].end)
            if chunks[k].kind is ChunkKind.WEAK and text in {"だけ", "のみ", "も"}:
                continue
            return text if text == "として" else text[:1]
        return ""

    def _is_label(self, chunk: Chunk) -> bool:
        """Tell whether a noun only says what stands after it: quoted words, an artifact's id."""
        after = chunk.end
        if after < len(self.scan) and self.scan.owners[after] == "artifact":
            return True
        if after < len(self.scan) and self.scan.has(after, "function_word"):
            after += 1
        is_title = self.scan.has(chunk.start, "title") or self.mentions
        return bool(is_title) and after < len(self.scan) and self.scan.owners[after] == "literal"

    def _make_verb_first(self, verb: Chunk, led: list[Chunk], own: list[Chunk]) -> Clause:
        heads = [chunk for chunk in own if chunk.noun is not None and not self._is_label(chunk)]
        objects = self._choose_heads(own, heads)
        led = self._take_last_part(led, verb)
        fronted = [one for one in led if one.noun is not None and not self._is_label(one)]
        becomes = self.scan.word(verb.end - 1) in _BECOMING or self._has_becoming(verb.end)
        if becomes and objects:
            return Clause(verb, [*led, *own], fronted[-1:], objects)
        if not objects:
            objects = fronted[-1:]
        says = any(one.kind in {ChunkKind.TEXT, ChunkKind.NOUN} for one in own)
        before = [one for one in led if one.word] if says else led
        return Clause(verb, [*before, *own], objects, [])

    def _take_last_part(self, chunks: list[Chunk], verb: Chunk) -> list[Chunk]:
        """Take what stands before a verb without a comma between."""
        breaks = self.scan.breaks
        last = [k for k in range(verb.start + 1) if breaks[k] >= Break.COMMA]
        return [one for one in chunks if not last or one.start >= last[-1]]

    def _has_becoming(self, i: int) -> bool:
        return i < len(self.scan) and self.scan.word(i) in _BECOMING and not self.scan.breaks[i]

    def _choose_heads(self, chunks: Sequence[Chunk], heads: list[Chunk]) -> list[Chunk]:
        """Choose the last noun, and those before a conjunction: modifiers stand before a head."""
        chosen = []
        for n, head in enumerate(heads):
            following = heads[n + 1] if n + 1 < len(heads) else None
            if following is None:
                chosen.append(head)
                continue
            between = [one for one in chunks if head.end <= one.start < following.start]
            if any(one.word == "and" for one in between) and not any(
                self.scan.word(one.end - 1) == "的" for one in between
            ):
                chosen.append(head)
        return chosen

    def _list_named(self, chunks: Sequence[Chunk]) -> Iterator[Clause]:
        """Yield a clause for each part that names a thing at its end and has no verb."""
        parts: list[list[Chunk]] = [[]]
        for chunk in chunks:
            if parts[-1] and self.scan.breaks[chunk.start] >= Break.COMMA:
                parts.append([])
            parts[-1].append(chunk)
        for part in parts:
            last = next(
                (n for n in range(len(part) - 1, -1, -1) if self._says_something(part[n])), None
            )
            if last is None or part[last].noun is None or self._is_label(part[last]):
                self._note_facts(part)
                continue
            counted = any(one.kind is ChunkKind.COUNT for one in part)
            if self.mentions and get_chunk_kind(self.scan, part[last]) == "research":
                self.facts.append(part[last].start)
                continue
            ends = self._find_mark(part, last) in {
                "",
                "を",
                "も",
                "お",
                "だ",
                "で",
                "と",
                "请",
                "請",
            }
            if (ends or counted) and (not self.mentions or counted or self._is_new(part[last])):
                heads = [one for one in part if one.noun is not None and not self._is_label(one)]
                yield Clause(None, part, self._choose_heads(part, heads), [])

    def _says_something(self, chunk: Chunk) -> bool:
        return chunk.kind in {ChunkKind.NOUN, ChunkKind.TEXT, ChunkKind.VERB}

    def _is_new(self, chunk: Chunk) -> bool:
        kind = get_chunk_kind(self.scan, chunk)
        return kind is not None and all(one.kind != kind for one in self.mentions)

    # Requests.

    def _read_clause(self, clause: Clause) -> None:
        verb = clause.verb
        self._clause = min(
            (one.start for one in (*clause.chunks[:1], *([verb] if verb else ()))),
            default=self._clause,
        )
        self._note_facts(clause.chunks)
        if verb is not None and verb.verb is not None:
            if verb.verb.category.startswith("unavailable."):
                if not self._is_done_by_others(clause):
                    self._add_unavailable(verb.verb)
                return
            self.scan.consume(verb.start, verb.end, "act")
        refers = any(one.word == "pronoun" for one in clause.chunks)
        act = verb.act if verb is not None else None
        if act is None:
            self._ask_for_things(clause, refers=refers)
        else:
            self._ask_for_act(clause, act, refers=refers)

    def _is_done_by_others(self, clause: Clause) -> bool:
        words = [self.scan.text(one.start, one.end) for one in clause.chunks]
        return words[-1:] == ["が"] or bool({"自分で", "自己"} & {*words})

    def _ask_for_things(self, clause: Clause, *, refers: bool) -> None:
        for chunk in clause.objects:
            if clause.targets and self._is_mentioned_kind(chunk):
                refers = True
                continue
            self._ask_for_noun(clause, chunk, refers=refers)
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
        self._refers, self._refers_to, self._each = False, None, False
        self._add(mention)
        self._join = "and"
        spoken = [one.value for one in chunks if one.word == "language"]
        for code in spoken[1:]:
            self._add(replace(mention, language=code, inputs=[], topics=list(topics)))

    def _is_source(self, chunk: Chunk) -> bool:
        return chunk.noun is not None and get_chunk_kind(self.scan, chunk) == "research"

    def _is_ending(self, chunk: Chunk) -> bool:
        """Tell whether a chunk is the end of a word that was read, and no topic."""
        return chunk.end - chunk.start == 1 and is_kana(self.scan.word(chunk.start))

    def _note_facts(self, chunks: Sequence[Chunk]) -> None:
        self.facts += [one.start for one in chunks if one.word == "fact"]
