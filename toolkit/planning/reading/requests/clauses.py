"""Clauses of a sentence in a language without spaces: each verb with what it takes."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolkit.planning.reading.requests.chunks import (
    BECOMING,
    Chunk,
    ChunkKind,
    get_chunk_kind,
    is_kana,
)
from toolkit.planning.reading.requests.question_reader import QuestionReader
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
_BECOMES = re.compile("(?:よう)?に[もは]?(?:し|す)")
_MAX_LABEL = 12
_WITH = frozenset("用以拿")
_FRONTING = frozenset("把将將被")  # what stands before the verb after them is its object
_COPULAS = frozenset("はが是就")
_LAST_MARKS = frozenset({"", "を", "も", "お", "だ", "で", "と", "请", "請"})


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


class ClauseReader(QuestionReader):
    """Reader of clauses; `ChunkFinder` makes requests of them."""

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
        text = self.scan.objective[self.scan.tokens[chunk.start].start :][:6]
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
        after = chunks[n + 1] if n + 1 < len(chunks) else None
        if before.word == "measure" and after is not None and after.noun is not None:
            return None  # "一段科普播客"
        added = chunks[n - 2] if n > 1 and before.kind is ChunkKind.WEAK else before
        if "with" in {before.word, added.word} and chunk.noun is not None:
            return False
        edges = {self.scan.word(k) for one in chunks[:n] for k in (one.start, one.end - 1)}
        if edges & _FRONTING:
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
        words = [self.scan.word(k) for k in range(max(0, chunk.end - _MAX_LABEL), chunk.end)]
        is_field = self.scan.names.find_label(words)[0] is not None
        is_title = self.scan.has(chunk.start, "title") or is_field or self.mentions
        return bool(is_title) and after < len(self.scan) and self.scan.owners[after] == "literal"

    def _make_verb_first(self, verb: Chunk, led: list[Chunk], own: list[Chunk]) -> Clause:
        heads = [chunk for chunk in own if chunk.noun is not None and not self._is_label(chunk)]
        objects = self._choose_heads(own, heads)
        led = self._take_last_part(led, verb)
        fronted = [
            one
            for one in led
            if one.noun is not None and not self._is_label(one) and not self._is_manner(led, one)
        ]
        becomes = self.scan.word(verb.end - 1) in BECOMING or self._has_becoming(verb.end)
        if becomes and objects:
            return Clause(verb, [*led, *own], fronted[-1:], objects)
        if not objects:
            objects = fronted[-1:]
        says = any(one.kind in {ChunkKind.TEXT, ChunkKind.NOUN} for one in own)
        before = [one for one in led if one.word] if says else led
        return Clause(verb, [*before, *own], objects, [])

    def _is_manner(self, led: Sequence[Chunk], noun: Chunk) -> bool:
        """Tell whether a voice is what something is said with: `用慢一点的声音读出来`."""
        is_voice = self.scan.text(noun.start, noun.end) in self.grammar.voices
        return is_voice and any(self.scan.word(one.end - 1) in _WITH for one in led)

    def _take_last_part(self, chunks: list[Chunk], verb: Chunk) -> list[Chunk]:
        """Take what stands before a verb without a comma between."""
        breaks = self.scan.breaks
        last = [k for k in range(verb.start + 1) if breaks[k] >= Break.COMMA]
        return [one for one in chunks if not last or one.start >= last[-1]]

    def _has_becoming(self, i: int) -> bool:
        return i < len(self.scan) and self.scan.word(i) in BECOMING and not self.scan.breaks[i]

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
            if self._says_what_is_given(part) or self._is_done_by_others(part):
                continue
            last = next(
                (n for n in range(len(part) - 1, -1, -1) if self._says_something(part[n])), None
            )
            if last is None or part[last].noun is None or self._is_label(part[last]):
                self._note_facts(part)
                continue
            if self.mentions and self.scan.has(part[last].start, "attribute.format"):
                self.mentions[-1].attributes.append(part[last].start)
                continue
            counted = any(one.kind is ChunkKind.COUNT for one in part)
            if self.mentions and get_chunk_kind(self.scan, part[last]) == "research":
                self.facts.append(part[last].start)
                continue
            ends = self._find_mark(part, last) in _LAST_MARKS
            if (ends or counted) and (not self.mentions or counted or self._is_new(part[last])):
                heads = [one for one in part if one.noun is not None and not self._is_label(one)]
                yield Clause(None, part, self._choose_heads(part, heads), [])

    def _says_what_is_given(self, part: Sequence[Chunk]) -> bool:
        """Tell whether a part says what an artifact is: `art_…は祖父の録音です`, `art_…是…`."""
        given = [n for n, one in enumerate(part[:-1]) if one.word == "artifact"]
        return any(self.scan.word(part[n + 1].start) in _COPULAS for n in given)

    def _is_done_by_others(self, chunks: Sequence[Chunk]) -> bool:
        """Tell whether somebody else does what a clause says: `録音はこっちでやる`."""
        words = [self.scan.text(one.start, one.end) for one in chunks]
        text = self.scan.text(chunks[0].start, chunks[-1].end) if chunks else ""
        return words[-1:] == ["が"] or any(own in text for own in self.grammar.ourselves)

    def _says_something(self, chunk: Chunk) -> bool:
        return chunk.kind in {ChunkKind.NOUN, ChunkKind.TEXT, ChunkKind.VERB}

    def _is_new(self, chunk: Chunk) -> bool:
        kind = get_chunk_kind(self.scan, chunk)
        return kind is not None and all(one.kind != kind for one in self.mentions)

    def _note_facts(self, chunks: Sequence[Chunk]) -> None:
        self.facts += [one.start for one in chunks if one.word == "fact"]
