"""Objective reader: finds the named deliverables, how they belong together, and their topic."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from toolkit.planning import lexicon
from toolkit.planning.tokens import WordToken, singularize, tokenize
from toolkit.planning.topics import blank_out, find_leftover_topic, split_topics, trim_topic

MAX_PHRASE_WORDS = 6
CONNECTOR_WINDOW = 5
# More than a plan can hold; the rest of the objective is not read.
MAX_OUTPUTS = 100
_SENTENCE_END = re.compile(r"[.!?;:\n](?=\s|$)")
# A relation of two capability ids, such as "the artifact of the first fills a field of the second".
CapabilityRelation = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class MentionedOutput:
    """A deliverable that the objective names.

    Attributes:
        id: the capability that makes it, or what one would be called.
        phrase: its name as the objective has it.
        start, end: its tokens.
        intro_start: the offset, in characters, where the words that introduce it begin.
        connector: how it is joined to what came before.
        input_of: the index, in the list of mentions, of the one that it is an input of.
        delivered: whether it is requested for itself, and not only as a part of another.
        topic: what it is about, in its own words or those of its neighbours.
        words: how many words it should have.
    """

    id: str
    phrase: str
    start: int
    end: int
    intro_start: int = 0
    connector: str = "none"
    input_of: int | None = None
    delivered: bool = True
    topic: str = ""
    words: int | None = None

    @property
    def is_verb(self) -> bool:
        """True if its name is a verb: what is done to make it."""
        return singularize(self.phrase.lower()) in lexicon.VERBS

    @property
    def is_creative(self) -> bool:
        """True if facts cannot replace it, as for a poem."""
        return singularize(self.phrase.lower()) in lexicon.CREATIVE_FORMS


@dataclass(frozen=True, slots=True)
class ParsedObjective:
    """The parts of an objective that planning needs."""

    mentions: tuple[MentionedOutput, ...]
    topic: str
    explicit_topic: bool
    literal: str | None = None
    literal_is_title: bool = False
    language: str | None = None
    artifact_ids: tuple[str, ...] = ()


def parse_objective(
    objective: str,
    vocabulary: Mapping[tuple[str, ...], str],
    fills: CapabilityRelation,
    needs: CapabilityRelation,
) -> ParsedObjective:
    """Read an objective.

    Args:
        objective: the request, in a person's words.
        vocabulary: capability ids (or hypothetical ones) by `phrase_key`.
        fills: whether the artifact of the first id can fill a field of the second.
        needs: whether the first id has a required field that an artifact of the second fills.
    """
    literal, is_title, quoted = _find_literal(objective)
    text = blank_out(objective, [lexicon.ARTIFACT_ID, lexicon.WORD_COUNT, lexicon.LANGUAGE], quoted)
    tokens = tokenize(text)
    found = _find_phrases(tokens, text, vocabulary, _find_quoted_spans(text))
    mentions = _link_outputs(_select_requested(found, tokens, text, fills, needs), fills, needs)
    mentions = _assign_topics(mentions, tokens, text)
    mentions = _assign_word_counts(mentions, tokens, objective)
    topic = next((m.topic for m in mentions if m.topic), "")
    explicit = bool(topic)
    topic = topic or find_leftover_topic(
        text, [(tokens[m.start].start, tokens[m.end - 1].end) for m in mentions]
    )
    if not topic and literal:
        topic, explicit = trim_topic(literal), True
    language = lexicon.LANGUAGE.search(objective)
    return ParsedObjective(
        mentions=tuple(replace(m, topic=m.topic or topic) for m in mentions),
        topic=topic,
        explicit_topic=explicit,
        literal=literal,
        literal_is_title=is_title,
        language=language.group(1) if language else None,
        artifact_ids=tuple(dict.fromkeys(lexicon.ARTIFACT_ID.findall(objective))),
    )


def _find_literal(objective: str) -> tuple[str | None, bool, list[tuple[int, int]]]:
    """Find words to be used as they are: quoted, after a cue such as `saying` or `titled`."""
    spans, literal, is_title = [], None, False
    for match in lexicon.QUOTED_TEXT.finditer(objective):
        before = objective[max(0, match.start() - 40) : match.start()]
        alone = not objective[: match.start()].strip() and not objective[match.end() :].strip()
        if not (alone or lexicon.LITERAL_CUES.search(before)):
            continue
        spans.append(match.span())
        if literal is None:
            literal = next(group for group in match.groups() if group is not None).strip()
            is_title = bool(lexicon.TITLE_CUES.search(before))
    return literal or None, is_title, spans


def _find_quoted_spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in lexicon.QUOTED_TEXT.finditer(text)]


def _find_phrases(
    tokens: Sequence[WordToken],
    text: str,
    vocabulary: Mapping[tuple[str, ...], str],
    quoted: Sequence[tuple[int, int]],
) -> list[MentionedOutput]:
    """Find every phrase of the vocabulary, preferring the longest at each place."""
    keys = [singularize(token.word) for token in tokens]
    found, i = [], 0
    while i < len(tokens):
        longest = next(
            (
                n
                for n in range(min(MAX_PHRASE_WORDS, len(tokens) - i), 0, -1)
                if tuple(keys[i : i + n]) in vocabulary
                and not _SENTENCE_END.search(text[tokens[i].start : tokens[i + n - 1].end])
            ),
            0,
        )
        inside = any(start <= tokens[i].start < end for start, end in quoted)
        if longest and not inside:
            surface = text[tokens[i].start : tokens[i + longest - 1].end]
            found.append(
                MentionedOutput(vocabulary[tuple(keys[i : i + longest])], surface, i, i + longest)
            )
        i += max(1, longest)
    return found


def _select_requested(
    found: Sequence[MentionedOutput],
    tokens: Sequence[WordToken],
    text: str,
    fills: CapabilityRelation,
    needs: CapabilityRelation,
) -> list[MentionedOutput]:
    """Keep the phrases that name a requested output, and drop those that are part of the topic."""
    starts = {mention.start for mention in found}
    question = bool(tokens) and tokens[0].word in lexicon.QUESTION_WORDS
    kept: list[MentionedOutput] = []
    sidelined: list[MentionedOutput] = []
    for mention in found:
        previous = kept[-1] if kept else None
        joined, firm = _attach_connector(mention, previous, tokens, text)
        whole = _is_complete_phrase(mention, tokens, text, starts)
        if question and joined.connector in {"start", "none", "also"}:
            continue
        if joined.connector == "topic":
            asked = False
        elif joined.connector == "about":
            asked = previous is not None and _are_related(joined, previous, fills, needs)
        else:
            asked = firm and whole
        if asked:
            kept.append(joined)
        elif firm and joined.connector == "start":
            sidelined.append(joined)
    if not kept:
        # "Make an image sunset over the sea": bad grammar, but it says what to make.
        kept = [m for m in sidelined if _follows_verb(m, tokens)][:1]
    return kept[:MAX_OUTPUTS]


def _follows_verb(mention: MentionedOutput, tokens: Sequence[WordToken]) -> bool:
    lead = [token.word for token in tokens[: mention.start]]
    return bool(lead) and any(word in lexicon.VERBS for word in lead)


def _are_related(
    mention: MentionedOutput,
    previous: MentionedOutput,
    fills: CapabilityRelation,
    needs: CapabilityRelation,
) -> bool:
    return (
        needs(previous.id, mention.id)
        or fills(mention.id, previous.id)
        or fills(previous.id, mention.id)
    )


def _is_complete_phrase(
    mention: MentionedOutput, tokens: Sequence[WordToken], text: str, starts: set[int]
) -> bool:
    """Tell whether a phrase is a thing, and not the first part of another thing's name."""
    if mention.is_verb or mention.end >= len(tokens) or mention.end in starts:
        return True
    if tokens[mention.end - 1].word.endswith("ed") or tokens[mention.end - 1].word == "spoken":
        return True  # "a narrated tour": an adjective, whatever noun follows
    following = tokens[mention.end]
    gap = text[tokens[mention.end - 1].end : following.start]
    return bool(gap.strip(" \t-")) or "  " in gap or following.word in lexicon.FOLLOWING_WORDS


def _attach_connector(
    mention: MentionedOutput,
    previous: MentionedOutput | None,
    tokens: Sequence[WordToken],
    text: str,
) -> tuple[MentionedOutput, bool]:
    """Return a mention with its connector, and whether the wording clearly requests it."""
    floor = previous.end if previous else 0
    between = tokens[floor : mention.start]
    topical = any(token.word in lexicon.ABOUT_WORDS for token in between)
    if not between and previous is not None:
        gap = text[tokens[floor - 1].end : tokens[mention.start].start]
        kind = "adjacent" if not gap.strip(" \t-") else "also"
        return replace(mention, connector=kind, intro_start=tokens[floor - 1].end), True
    kind, index, determined = _find_connector(mention, floor, tokens, text)
    if kind == "none" and previous is None:
        kind, index = "start", floor
    before = tokens[index].start if index < len(tokens) else 0
    joined = replace(mention, connector=kind, intro_start=before)
    if kind == "as":
        return joined, determined or not topical or tokens[index].word == "as"
    if kind in {"also", "stop", "it"}:
        return joined, determined or mention.is_verb or kind == "it" or not topical
    if kind in {"start", "none"}:
        return joined, not topical
    return joined, True


def _find_connector(
    mention: MentionedOutput, floor: int, tokens: Sequence[WordToken], text: str
) -> tuple[str, int, bool]:
    """Return the connector before a mention, its index, and whether an article or verb precedes."""
    determined, pronoun = False, False
    for i in range(mention.start - 1, max(floor, mention.start - CONNECTOR_WINDOW) - 1, -1):
        word = tokens[i].word
        gap = text[tokens[i].end : tokens[i + 1].start]
        if _SENTENCE_END.search(gap):
            return "stop", i + 1, determined
        if "," in gap:
            return "also", i + 1, determined
        kind = _classify_connector(word, mention)
        if kind is not None:
            return "it" if pronoun else kind, _find_intro_start(i, floor, tokens), determined
        pronoun = pronoun or word in {"it", "them"}
        determined = (
            determined or word in lexicon.DETERMINERS or word in lexicon.VERBS or word.isdigit()
        )
    return "none", mention.start, determined


def _find_intro_start(connector: int, floor: int, tokens: Sequence[WordToken]) -> int:
    """Return the index where the words that introduce a connector begin: `and put it` on a card."""
    i = connector
    if i > floor and tokens[i - 1].word in {"it", "them"}:
        i -= 1
        while i > floor and tokens[i - 1].word in lexicon.VERBS | lexicon.ALSO_WORDS:
            i -= 1
    return i


def _classify_connector(word: str, mention: MentionedOutput) -> str | None:
    if mention.is_verb and word in {"that", "which", "to", "who"}:
        return "with"
    if word in lexicon.ALSO_WORDS:
        return "also"
    if word in lexicon.WITH_WORDS:
        return "with"
    if word in {"about", "regarding", "concerning"}:
        return "topic"
    if word in {"of", "for", "on"}:
        return "about"
    return "as" if word in lexicon.AS_WORDS else None


def _link_outputs(
    mentions: Sequence[MentionedOutput], fills: CapabilityRelation, needs: CapabilityRelation
) -> list[MentionedOutput]:
    """Link each mention to the one it is an input of; drop verbs that only introduce another."""
    joined: list[MentionedOutput] = []
    open_with = False
    for mention in mentions:
        open_with = (open_with and mention.connector != "stop") or mention.connector == "with"
        previous = joined[-1] if joined else None
        here = len(joined)
        if previous is not None and _governs(previous, mention):
            if fills(mention.id, previous.id) and mention.id != previous.id:
                joined.append(replace(mention, input_of=here - 1, delivered=False))
            else:
                joined[-1] = replace(
                    mention, connector=previous.connector, intro_start=previous.intro_start
                )
            continue
        if previous is None:
            joined.append(mention)
        elif mention.connector == "adjacent":
            _link_adjacent(joined, mention, fills)
        elif mention.connector == "it" and fills(previous.id, mention.id):
            joined[-1] = replace(previous, input_of=here)
            joined.append(mention)
        elif mention.connector in {"as", "about"} and not needs(previous.id, mention.id):
            forwards = fills(previous.id, mention.id)
            if forwards:
                joined[-1] = replace(previous, input_of=here, delivered=False)
            goes_in = None if forwards or not fills(mention.id, previous.id) else here - 1
            joined.append(replace(mention, input_of=goes_in, delivered=goes_in is None))
        else:
            _link_to_earlier(joined, mention, open_with, fills, needs)
    return joined


def _governs(verb: MentionedOutput, mention: MentionedOutput) -> bool:
    """Tell whether a verb and its object are one request, as in `Write a summary`."""
    return (
        verb.is_verb and mention.connector in {"none", "adjacent"} and mention.start - verb.end <= 4
    )


def _link_adjacent(
    joined: list[MentionedOutput], mention: MentionedOutput, fills: CapabilityRelation
) -> None:
    """Link adjacent names, as in `a spoken summary`: the one that takes the other is requested."""
    previous, here = joined[-1], len(joined)
    if previous.id == mention.id:
        phrase = f"{previous.phrase} {mention.phrase}"
        joined[-1] = replace(
            mention,
            phrase=phrase,
            start=previous.start,
            intro_start=previous.intro_start,
            connector=previous.connector,
        )
    elif fills(previous.id, mention.id):
        joined[-1] = replace(previous, input_of=here, delivered=False)
        joined.append(mention)
    elif fills(mention.id, previous.id):
        joined.append(replace(mention, input_of=here - 1, delivered=False))
    else:
        joined.append(mention)


def _link_to_earlier(
    joined: list[MentionedOutput],
    mention: MentionedOutput,
    open_with: bool,
    fills: CapabilityRelation,
    needs: CapabilityRelation,
) -> None:
    here = len(joined)
    for i in range(here - 1, -1, -1):
        earlier = joined[i]
        part = open_with or mention.connector == "about"
        if needs(earlier.id, mention.id) or (part and fills(mention.id, earlier.id)):
            joined.append(replace(mention, input_of=i, delivered=not part))
            return
        if needs(mention.id, earlier.id) and earlier.input_of is None:
            joined[i] = replace(earlier, input_of=here)
            break
    joined.append(mention)


def _assign_topics(
    mentions: Sequence[MentionedOutput], tokens: Sequence[WordToken], text: str
) -> list[MentionedOutput]:
    """Assign each mention a topic: its own words, or a later mention's, or an earlier one's."""
    own: list[str] = []
    shared: list[str] = []
    for i, mention in enumerate(mentions):
        end = mentions[i + 1].intro_start if i + 1 < len(mentions) else len(text)
        alone, common = split_topics(text[tokens[mention.end - 1].end : end], mention.is_verb)
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


def _assign_word_counts(
    mentions: Sequence[MentionedOutput], tokens: Sequence[WordToken], objective: str
) -> list[MentionedOutput]:
    """Assign each word count to the mention after it in its phrase, or else to the one before."""
    counts: dict[int, int] = {}
    for match in lexicon.WORD_COUNT.finditer(objective):
        starts = [tokens[mention.start].start for mention in mentions]
        after = next((i for i, start in enumerate(starts) if start >= match.end()), None)
        before = next((i for i in reversed(range(len(starts))) if starts[i] < match.start()), None)
        near = after is not None and len(objective[match.end() : starts[after]].split()) <= 2
        place = after if near or before is None else before
        if place is not None:
            counts.setdefault(place, int(match.group(1)))
    return [replace(mention, words=counts.get(i)) for i, mention in enumerate(mentions)]
