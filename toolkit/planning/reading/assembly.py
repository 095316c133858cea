"""Assembly of a reading: the mentions that ask for something, tied together and built."""

from collections.abc import Sequence

from toolkit.planning.reading.objective_reading import (
    ObjectiveReading,
    RequestedOutput,
    UnavailableAct,
)
from toolkit.planning.reading.request_builder import RequestBuilder
from toolkit.planning.reading.requests.fan_out import fan_out
from toolkit.planning.reading.requests.joins import link_mentions
from toolkit.planning.reading.requests.mentions import (
    TRANSFORMING_ACTS,
    UNAVAILABLE_IDS,
    Mention,
)
from toolkit.planning.reading.requests.request_state import RequestState
from toolkit.planning.reading.requests.sources import find_source_nouns, find_unreadable
from toolkit.planning.reading.spans.lists import ItemList
from toolkit.planning.reading.spans.literals import Literal
from toolkit.planning.reading.spans.measures import PlacedMeasure
from toolkit.planning.reading.spans.scan import KINDS, Break, Scan
from toolkit.planning.reading.spans.topics import join_spans, names_source, trim_span, trim_topic

# A shorter objective that asks for something unknown is asked back.
_LEAST_WORDS = 5
_TEXT_LENGTHS = frozenset({"words", "characters", "sentences", "paragraphs", "bullets", "lines"})
# How many words may stand between a voice and the recording that it is made from.
_NEAR_ARTIFACT = 4


def assemble_reading(
    scan: Scan,
    finder: RequestState,
    literals: Sequence[Literal],
    artifacts: Sequence[tuple[int, str]],
    measures: Sequence[PlacedMeasure],
    lists: Sequence[ItemList],
    addresses: Sequence[int],
    without: frozenset[str] = frozenset(),
) -> ObjectiveReading:
    """Assemble what the passes found into a reading."""
    _turn_pictures_to_cards(scan, finder.mentions, literals)
    places = [literal.start for literal in literals]
    _add_lent_voices(scan, finder.mentions, artifacts)
    _turn_voices_to_clones(finder.mentions, artifacts, literals)
    mentions = _drop_unreadable(scan, finder, addresses, artifacts)
    mentions = _add_implied_text(scan, mentions, measures)
    if not mentions and not finder.unavailable:
        mentions = _find_by_fields(scan, measures)
    mentions = _speak_quoted(scan, mentions, literals)
    mentions = mentions or _work_on_quoted(scan, finder, literals)
    mentions = _drop_baseless(scan, mentions, [*literals, *artifacts, *addresses])
    if not mentions and not finder.unavailable and len(scan) >= _LEAST_WORDS:
        mentions = [finder.unknown_work] if finder.unknown_work is not None else []
    for mention in mentions:
        mention.topics = _choose_topics(scan, mention, mentions, literals)
        mention.has_subject = any(
            scan.word(trim_span(scan, *span)[0] - 1) not in finder.grammar.recipients
            for span in mention.topics
        )
    if "joins" not in without:
        mentions = link_mentions(mentions, scan.names, places)
    for mention in mentions:
        mention.inputs = [one for one in mention.inputs if one in mentions]
    copies = fan_out(mentions, lists)
    builder = RequestBuilder(scan, mentions, copies, literals, artifacts, measures, finder.facts)
    requests = tuple(builder.build(copy) for copy in copies)
    unavailable = tuple(
        UnavailableAct(UNAVAILABLE_IDS[one.key], scan.text(one.start, one.end))
        for one in finder.unavailable
    )
    if not requests and not unavailable and finder.unknown_verb is not None:
        verb = finder.unknown_verb
        last = scan.find_sentence_end(verb, Break.COMMA)
        unavailable = (UnavailableAct(UNAVAILABLE_IDS["handle"], scan.text(verb, last)),)
    unknown = _list_unknown(scan, finder, bool(requests or unavailable))
    topic = next((one.topic for one in requests if one.topic), "")
    return ObjectiveReading(
        language=scan.lexicon.code,
        requests=requests,
        topic=topic,
        banned=_find_banned(finder, requests, scan),
        unavailable=() if "unavailable" in without else _drop_doubles(unavailable),
        question=None if requests or unavailable else scan.lexicon.questions["what"],
        understood=round(1 - len(unknown) / len(scan), 4) if len(scan) else 0.0,
        unknown_words=tuple(dict.fromkeys(scan.text(k, k + 1) for k in unknown)),
    )


def _choose_topics(
    scan: Scan, mention: Mention, mentions: Sequence[Mention], literals: Sequence[Literal]
) -> list[tuple[int, int]]:
    """Choose the words that a request is about; quoted ones name what is looked up."""
    topics = [
        span
        for span in mention.topics
        if trim_topic(scan, *span) and not scan.has(span[0], "negation.before")
    ]
    if mention.kind != "research" and not mention.is_question:
        return topics
    topics = [span for span in topics if not names_source(scan, *span)]
    start, end = scan.find_sentence_start(mention.start), scan.find_sentence_end(mention.start)
    others = {one.kind for one in mentions if start <= one.start < end} - {"text", "research"}
    quoted = [
        (one.start, one.end) for one in literals if start <= one.start < end and not one.is_title
    ]
    return topics if others else join_spans([*topics, *quoted])


def _drop_unreadable(
    scan: Scan,
    finder: RequestState,
    addresses: Sequence[int],
    artifacts: Sequence[tuple[int, str]],
) -> list[Mention]:
    """Report requests whose source nothing here can read, instead of making something up."""
    kept = list(finder.mentions)
    for mention, needed in find_unreadable(scan, kept, addresses, artifacts):
        if UNAVAILABLE_IDS[needed.key] in scan.names.kinds:
            continue
        finder.unavailable.append(needed)
        if mention in kept:
            kept.remove(mention)
    for mention in find_source_nouns(scan, kept, artifacts):
        kept.remove(mention)
    return kept


def _add_implied_text(
    scan: Scan, mentions: Sequence[Mention], measures: Sequence[PlacedMeasure]
) -> list[Mention]:
    """Add the text that only its length asks for: `Look up bats. 200 words for a label.`"""
    if any(one.kind in {"text", "speech", "card"} for one in mentions):
        return list(mentions)
    drawn = any(one.kind == "image" for one in mentions)
    for placed in measures:
        negated = any(
            scan.has(k, "negation.before") for k in range(max(0, placed.start - 3), placed.start)
        )
        if placed.measure.name in _TEXT_LENGTHS and not negated:
            if drawn and placed.measure.name in {"bullets", "lines"}:
                continue
            clause = placed.start
            while clause > 0 and scan.breaks[clause] < Break.CLAUSE:
                clause -= 1
            text = Mention("text", placed.start, placed.end, clause, refers=True)
            return sorted([*mentions, text], key=lambda one: one.start)
    return list(mentions)


def _find_by_fields(scan: Scan, measures: Sequence[PlacedMeasure]) -> list[Mention]:
    """Take an objective that only describes for what has the fields it names: `…, seed 7`."""
    owners = [
        [kind for kind, fields in scan.names.fields_by_kind.items() if one.measure.name in fields]
        for one in measures
    ]
    kinds = {kinds[0] for kinds in owners if len(kinds) == 1}
    if len(kinds) != 1 or kinds & {"research", "clone"}:
        return []
    end = min(one.start for one in measures)
    return [Mention(kinds.pop(), end, end, 0, topics=[(0, end)])] if end else []


def _work_on_quoted(scan: Scan, finder: RequestState, literals: Sequence[Literal]) -> list[Mention]:
    """Take an unknown verb for one of words where it works on quoted ones: `conjugate “aller”`."""
    verb = finder.unknown_verb
    if verb is None or finder.unavailable or not any(one.start > verb for one in literals):
        return []
    spoken = any(scan.has(k, "thing.speech", "act.clone") for k in range(verb, len(scan)))
    return [Mention("speech" if spoken else "text", verb, verb + 1, verb)]


def _drop_baseless(scan: Scan, mentions: list[Mention], given: Sequence[object]) -> list[Mention]:
    """Drop a lone verb that works on something which nobody gave: `Make it shorter.`"""
    if len(mentions) != 1 or given or any(gap >= Break.CLAUSE for gap in scan.breaks[1:]):
        return mentions
    only = mentions[0]
    works = only.act in TRANSFORMING_ACTS and not only.form and not only.topics
    return [] if works and only.refers else mentions


def _turn_pictures_to_cards(
    scan: Scan, mentions: Sequence[Mention], literals: Sequence[Literal]
) -> None:
    """Read a picture that has texts of its own as a card: `a visual with a drawing and a text`."""
    fields = scan.names.fields_by_kind.get("card", frozenset())
    for here, mention in enumerate(mentions):
        if mention.kind != "image" or mention.act is not None or not mention.form:
            continue
        end = scan.find_sentence_end(mention.start)
        longest = scan.names.longest_field
        quoted = [one.start for one in literals if mention.end <= one.start < end]
        labels = {
            scan.names.find_label([scan.word(k) for k in range(max(0, place - longest), place)])[0]
            for place in quoted
        }
        parts = [one for one in mentions[here + 1 :] if one.start < end]
        kinds = {one.kind for one in parts}
        joined = bool(parts) and any(
            scan.has(k, "join.with") or scan.gap(k).startswith(":")
            for k in range(mention.end, parts[0].start + 1)
        )
        if len(labels & fields) > 1 or (joined and kinds == {"text", "image"}):
            mention.kind = "card"
            for part in parts:
                part.join, part.is_part = "with", True


def _add_lent_voices(
    scan: Scan, mentions: list[Mention], artifacts: Sequence[tuple[int, str]]
) -> None:
    """Add the voice that is taken from a recording: `avec la voix tirée de art_…, dis …`."""
    for place, _ in artifacts:
        if not scan.has(place - 1, "join.from") or any(one.kind == "clone" for one in mentions):
            continue
        for k in range(max(0, place - _NEAR_ARTIFACT), place - 1):
            voice = scan.find(k, "thing.speech")
            if voice is None or any(one.start <= k < one.end for one in mentions):
                continue
            scan.consume(voice.start, voice.end, "request")
            lent = Mention("clone", voice.start, voice.end, scan.find_sentence_start(k))
            mentions[:] = sorted([*mentions, lent], key=lambda one: one.start)


def _turn_voices_to_clones(
    mentions: Sequence[Mention],
    artifacts: Sequence[tuple[int, str]],
    literals: Sequence[Literal],
) -> None:
    """Read `a voice from art_…` as a clone of the voice that is heard there."""
    for place, _ in artifacts:
        for mention in mentions:
            near = 0 < place - mention.end < _NEAR_ARTIFACT
            # "From art_… make the voice “Ann”": what is made of it has a name of its own.
            led = 0 < mention.start - place <= _NEAR_ARTIFACT and any(
                mention.end <= one.start <= mention.end + one.is_title for one in literals
            )
            is_voice = mention.kind == "speech" and mention.act is None
            if is_voice and (led or (near and not mention.refers)):
                mention.kind = "clone"


def _speak_quoted(
    scan: Scan, mentions: Sequence[Mention], literals: Sequence[Literal]
) -> list[Mention]:
    """Let a voice that is made say the words that are quoted after it, unless they are its name."""
    clone = next((one for one in mentions if one.kind == "clone"), None)
    later = [one for one in literals if clone is not None and one.start > clone.start]
    if not later or any(one.kind == "speech" for one in mentions):
        return list(mentions)
    said = later[-1]
    is_name = said.is_title and not any(
        scan.has(k, "act.answer", "act.speak", "act.explain")
        for k in range(max(0, said.start - 4), said.start)
    )
    if is_name:
        return list(mentions)
    kept = [one for one in mentions if one.act != "answer" or one.clause > said.start]
    return [*kept, Mention("speech", said.start, said.start, said.start, act="speak")]


def _drop_doubles(unavailable: Sequence[UnavailableAct]) -> tuple[UnavailableAct, ...]:
    """Keep the first mention of each capability that is lacking."""
    first = {one.capability: one for one in reversed(unavailable)}
    return tuple(one for one in unavailable if first[one.capability] is one)


def _find_banned(
    finder: RequestState, requests: Sequence[RequestedOutput], scan: Scan
) -> frozenset[str]:
    requested = {one.kind for one in requests}
    banned = set(finder.banned)
    if finder.only:
        fed = {
            kind
            for kind in KINDS
            for wanted in requested
            if scan.names.can_feed(kind, wanted) and kind != wanted
        }
        banned |= KINDS - requested - fed
    return frozenset(banned - requested)


def _list_unknown(scan: Scan, finder: RequestState, is_asked: bool) -> list[int]:
    """List the words that were not understood.

    Those are words that no lexicon knows, that name nobody, and that are no part of what a request
    is about. Of Chinese and Japanese, in which endings are not told from words, only what stands
    where something is asked for counts, once anything is.
    """
    unknown = [k for k in range(len(scan)) if scan.is_free(k) and not scan.is_known(k)]
    if not is_asked:
        return unknown
    if not scan.lexicon.separator:
        return [k for k in finder.unknown if not scan.is_known(k)]
    spans = (span for mention in finder.mentions for span in mention.topics)
    about = {k for start, end in spans for k in range(start, end)}
    return [
        k
        for k in unknown
        if k not in about
        and not scan.tokens[k].is_number
        and (k == 0 or scan.breaks[k] > Break.COMMA or not scan.tokens[k].text[0].isupper())
    ]
