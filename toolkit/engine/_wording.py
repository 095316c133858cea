"""Objective reader: finds the named deliverables, how they belong together, and their topic."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from toolkit.engine import _lexicon as lex
from toolkit.engine._tokens import Token, singular, tokens_of
from toolkit.engine._topics import blank, leftover, own_and_shared, trim

LONGEST_PHRASE = 6
REACH = 5
# More than a plan can hold; the rest of the objective is not read.
MOST_MENTIONS = 100
_STOP = re.compile(r"[.!?;:\n](?=\s|$)")
# A relation of two capability ids, such as "the artifact of the first fills a field of the second".
Link = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Mention:
    """A deliverable that the objective names.

    Attributes:
        id: the capability that makes it, or what one would be called.
        phrase: its name as the objective has it.
        start, end: its tokens.
        before: the offset, in characters, where the words that introduce it begin.
        connector: how it is joined to what came before.
        feeds: the index, in the list of mentions, of the one that it is an input of.
        delivered: whether it is requested for itself, and not only as a part of another.
        topic: what it is about, in its own words or those of its neighbours.
        words: how many words it should have.
    """

    id: str
    phrase: str
    start: int
    end: int
    before: int = 0
    connector: str = "none"
    feeds: int | None = None
    delivered: bool = True
    topic: str = ""
    words: int | None = None

    @property
    def verb(self) -> bool:
        """True if its name is a verb: what is done to make it."""
        return singular(self.phrase.lower()) in lex.VERBS

    @property
    def creative(self) -> bool:
        """True if facts cannot replace it, as for a poem."""
        return singular(self.phrase.lower()) in lex.CREATIVE


@dataclass(frozen=True, slots=True)
class Wording:
    """The parts of an objective that planning needs."""

    mentions: tuple[Mention, ...]
    topic: str
    explicit_topic: bool
    literal: str | None = None
    literal_is_title: bool = False
    language: str | None = None
    artifact_ids: tuple[str, ...] = ()


def read(
    objective: str, vocabulary: Mapping[tuple[str, ...], str], fills: Link, needs: Link
) -> Wording:
    """Read an objective.

    Args:
        objective: the request, in a person's words.
        vocabulary: capability ids (or hypothetical ones) by `phrase_key`.
        fills: whether the artifact of the first id can fill a field of the second.
        needs: whether the first id has a required field that an artifact of the second fills.
    """
    literal, is_title, quoted = _literal(objective)
    text = blank(objective, [lex.ARTIFACT_ID, lex.MEASURE, lex.LANGUAGE], quoted)
    tokens = tokens_of(text)
    found = _find(tokens, text, vocabulary, _quoted_spans(text))
    mentions = _join(_accepted(found, tokens, text, fills, needs), fills, needs)
    mentions = _with_topics(mentions, tokens, text)
    mentions = _with_words(mentions, tokens, objective)
    topic = next((m.topic for m in mentions if m.topic), "")
    explicit = bool(topic)
    topic = topic or leftover(
        text, [(tokens[m.start].start, tokens[m.end - 1].end) for m in mentions]
    )
    if not topic and literal:
        topic, explicit = trim(literal), True
    language = lex.LANGUAGE.search(objective)
    return Wording(
        mentions=tuple(replace(m, topic=m.topic or topic) for m in mentions),
        topic=topic,
        explicit_topic=explicit,
        literal=literal,
        literal_is_title=is_title,
        language=language.group(1) if language else None,
        artifact_ids=tuple(dict.fromkeys(lex.ARTIFACT_ID.findall(objective))),
    )


def _literal(objective: str) -> tuple[str | None, bool, list[tuple[int, int]]]:
    """Find words to be used as they are: quoted, after a cue such as `saying` or `titled`."""
    spans, literal, is_title = [], None, False
    for match in lex.QUOTED.finditer(objective):
        before = objective[max(0, match.start() - 40) : match.start()]
        alone = not objective[: match.start()].strip() and not objective[match.end() :].strip()
        if not (alone or lex.LITERAL_CUES.search(before)):
            continue
        spans.append(match.span())
        if literal is None:
            literal = next(group for group in match.groups() if group is not None).strip()
            is_title = bool(lex.TITLE_CUES.search(before))
    return literal or None, is_title, spans


def _quoted_spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in lex.QUOTED.finditer(text)]


def _find(
    tokens: Sequence[Token],
    text: str,
    vocabulary: Mapping[tuple[str, ...], str],
    quoted: Sequence[tuple[int, int]],
) -> list[Mention]:
    """Find every phrase of the vocabulary, preferring the longest at each place."""
    keys = [singular(token.word) for token in tokens]
    found, i = [], 0
    while i < len(tokens):
        longest = next(
            (
                n
                for n in range(min(LONGEST_PHRASE, len(tokens) - i), 0, -1)
                if tuple(keys[i : i + n]) in vocabulary
                and not _STOP.search(text[tokens[i].start : tokens[i + n - 1].end])
            ),
            0,
        )
        inside = any(start <= tokens[i].start < end for start, end in quoted)
        if longest and not inside:
            surface = text[tokens[i].start : tokens[i + longest - 1].end]
            found.append(Mention(vocabulary[tuple(keys[i : i + longest])], surface, i, i + longest))
        i += max(1, longest)
    return found


def _accepted(
    found: Sequence[Mention], tokens: Sequence[Token], text: str, fills: Link, needs: Link
) -> list[Mention]:
    """Keep the phrases that name a requested output, and drop those that are part of the topic."""
    starts = {mention.start for mention in found}
    question = bool(tokens) and tokens[0].word in lex.QUESTIONS
    kept: list[Mention] = []
    sidelined: list[Mention] = []
    for mention in found:
        previous = kept[-1] if kept else None
        joined, firm = _joined(mention, previous, tokens, text)
        whole = _is_whole(mention, tokens, text, starts)
        if question and joined.connector in {"start", "none", "also"}:
            continue
        if joined.connector == "topic":
            asked = False
        elif joined.connector == "about":
            asked = previous is not None and _linked(joined, previous, fills, needs)
        else:
            asked = firm and whole
        if asked:
            kept.append(joined)
        elif firm and joined.connector == "start":
            sidelined.append(joined)
    if not kept:
        # "Make an image sunset over the sea": bad grammar, but it says what to make.
        kept = [m for m in sidelined if _is_told(m, tokens)][:1]
    return kept[:MOST_MENTIONS]


def _is_told(mention: Mention, tokens: Sequence[Token]) -> bool:
    lead = [token.word for token in tokens[: mention.start]]
    return bool(lead) and any(word in lex.VERBS for word in lead)


def _linked(mention: Mention, previous: Mention, fills: Link, needs: Link) -> bool:
    return (
        needs(previous.id, mention.id)
        or fills(mention.id, previous.id)
        or fills(previous.id, mention.id)
    )


def _is_whole(mention: Mention, tokens: Sequence[Token], text: str, starts: set[int]) -> bool:
    """Tell whether a phrase is a thing, and not the first part of another thing's name."""
    if mention.verb or mention.end >= len(tokens) or mention.end in starts:
        return True
    if tokens[mention.end - 1].word.endswith("ed") or tokens[mention.end - 1].word == "spoken":
        return True  # "a narrated tour": an adjective, whatever noun follows
    following = tokens[mention.end]
    gap = text[tokens[mention.end - 1].end : following.start]
    return bool(gap.strip(" \t-")) or "  " in gap or following.word in lex.AFTER


def _joined(
    mention: Mention, previous: Mention | None, tokens: Sequence[Token], text: str
) -> tuple[Mention, bool]:
    """Return a mention with its connector, and whether the wording clearly requests it."""
    floor = previous.end if previous else 0
    between = tokens[floor : mention.start]
    topical = any(token.word in lex.ABOUT for token in between)
    if not between and previous is not None:
        gap = text[tokens[floor - 1].end : tokens[mention.start].start]
        kind = "adjacent" if not gap.strip(" \t-") else "also"
        return replace(mention, connector=kind, before=tokens[floor - 1].end), True
    kind, index, determined = _walk_back(mention, floor, tokens, text)
    if kind == "none" and previous is None:
        kind, index = "start", floor
    before = tokens[index].start if index < len(tokens) else 0
    joined = replace(mention, connector=kind, before=before)
    if kind == "as":
        return joined, determined or not topical or tokens[index].word == "as"
    if kind in {"also", "stop", "it"}:
        return joined, determined or mention.verb or kind == "it" or not topical
    if kind in {"start", "none"}:
        return joined, not topical
    return joined, True


def _walk_back(
    mention: Mention, floor: int, tokens: Sequence[Token], text: str
) -> tuple[str, int, bool]:
    """Return the connector before a mention, its index, and whether an article or verb precedes."""
    determined, pronoun = False, False
    for i in range(mention.start - 1, max(floor, mention.start - REACH) - 1, -1):
        word = tokens[i].word
        gap = text[tokens[i].end : tokens[i + 1].start]
        if _STOP.search(gap):
            return "stop", i + 1, determined
        if "," in gap:
            return "also", i + 1, determined
        kind = _kind(word, mention)
        if kind is not None:
            return "it" if pronoun else kind, _introduction(i, floor, tokens), determined
        pronoun = pronoun or word in {"it", "them"}
        determined = determined or word in lex.DETERMINERS or word in lex.VERBS or word.isdigit()
    return "none", mention.start, determined


def _introduction(connector: int, floor: int, tokens: Sequence[Token]) -> int:
    """Return the index where the words that introduce a connector begin: `and put it` on a card."""
    i = connector
    if i > floor and tokens[i - 1].word in {"it", "them"}:
        i -= 1
        while i > floor and tokens[i - 1].word in lex.VERBS | lex.ALSO:
            i -= 1
    return i


def _kind(word: str, mention: Mention) -> str | None:
    if mention.verb and word in {"that", "which", "to", "who"}:
        return "with"
    if word in lex.ALSO:
        return "also"
    if word in lex.WITH:
        return "with"
    if word in {"about", "regarding", "concerning"}:
        return "topic"
    if word in {"of", "for", "on"}:
        return "about"
    return "as" if word in lex.AS else None


def _join(mentions: Sequence[Mention], fills: Link, needs: Link) -> list[Mention]:
    """Link each mention to the one it is an input of; drop verbs that only introduce another."""
    joined: list[Mention] = []
    open_with = False
    for mention in mentions:
        open_with = (open_with and mention.connector != "stop") or mention.connector == "with"
        previous = joined[-1] if joined else None
        here = len(joined)
        if previous is not None and _governs(previous, mention):
            if fills(mention.id, previous.id) and mention.id != previous.id:
                joined.append(replace(mention, feeds=here - 1, delivered=False))
            else:
                joined[-1] = replace(mention, connector=previous.connector, before=previous.before)
            continue
        if previous is None:
            joined.append(mention)
        elif mention.connector == "adjacent":
            _join_adjacent(joined, mention, fills)
        elif mention.connector == "it" and fills(previous.id, mention.id):
            joined[-1] = replace(previous, feeds=here)
            joined.append(mention)
        elif mention.connector in {"as", "about"} and not needs(previous.id, mention.id):
            forwards = fills(previous.id, mention.id)
            if forwards:
                joined[-1] = replace(previous, feeds=here, delivered=False)
            goes_in = None if forwards or not fills(mention.id, previous.id) else here - 1
            joined.append(replace(mention, feeds=goes_in, delivered=goes_in is None))
        else:
            _join_to_any(joined, mention, open_with, fills, needs)
    return joined


def _governs(verb: Mention, mention: Mention) -> bool:
    """Tell whether a verb and its object are one request, as in `Write a summary`."""
    return verb.verb and mention.connector in {"none", "adjacent"} and mention.start - verb.end <= 4


def _join_adjacent(joined: list[Mention], mention: Mention, fills: Link) -> None:
    """Link adjacent names, as in `a spoken summary`: the one that takes the other is requested."""
    previous, here = joined[-1], len(joined)
    if previous.id == mention.id:
        phrase = f"{previous.phrase} {mention.phrase}"
        joined[-1] = replace(mention, phrase=phrase, start=previous.start, before=previous.before,
                             connector=previous.connector)  # fmt: skip
    elif fills(previous.id, mention.id):
        joined[-1] = replace(previous, feeds=here, delivered=False)
        joined.append(mention)
    elif fills(mention.id, previous.id):
        joined.append(replace(mention, feeds=here - 1, delivered=False))
    else:
        joined.append(mention)


def _join_to_any(
    joined: list[Mention], mention: Mention, open_with: bool, fills: Link, needs: Link
) -> None:
    here = len(joined)
    for i in range(here - 1, -1, -1):
        earlier = joined[i]
        part = open_with or mention.connector == "about"
        if needs(earlier.id, mention.id) or (part and fills(mention.id, earlier.id)):
            joined.append(replace(mention, feeds=i, delivered=not part))
            return
        if needs(mention.id, earlier.id) and earlier.feeds is None:
            joined[i] = replace(earlier, feeds=here)
            break
    joined.append(mention)


def _with_topics(mentions: Sequence[Mention], tokens: Sequence[Token], text: str) -> list[Mention]:
    """Assign each mention a topic: its own words, or a later mention's, or an earlier one's."""
    own: list[str] = []
    shared: list[str] = []
    for i, mention in enumerate(mentions):
        end = mentions[i + 1].before if i + 1 < len(mentions) else len(text)
        alone, common = own_and_shared(text[tokens[mention.end - 1].end : end], mention.verb)
        own.append(alone)
        shared.append(common)
    topics = []
    for i in range(len(mentions)):
        later = [topic for topic in shared[i:] if topic]
        earlier = [topic for topic in reversed(shared[:i]) if topic]
        topics.append(own[i] or next(iter([*later, *earlier]), ""))
    if not any(topics):
        return list(mentions)
    fallback = next(topic for topic in topics if topic)
    return [
        replace(mention, topic=topic or fallback)
        for mention, topic in zip(mentions, topics, strict=True)
    ]


def _with_words(
    mentions: Sequence[Mention], tokens: Sequence[Token], objective: str
) -> list[Mention]:
    """Assign each word count to the mention after it in its phrase, or else to the one before."""
    counts: dict[int, int] = {}
    for match in lex.MEASURE.finditer(objective):
        starts = [tokens[mention.start].start for mention in mentions]
        after = next((i for i, start in enumerate(starts) if start >= match.end()), None)
        before = next((i for i in reversed(range(len(starts))) if starts[i] < match.start()), None)
        near = after is not None and len(objective[match.end() : starts[after]].split()) <= 2
        place = after if near or before is None else before
        if place is not None:
            counts.setdefault(place, int(match.group(1)))
    return [replace(mention, words=counts.get(i)) for i, mention in enumerate(mentions)]
