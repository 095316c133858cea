"""Assembly of a reading: the topic, measures, quoted words and wording of each request."""

from collections.abc import Sequence
from dataclasses import replace

from toolkit.planning.reading.objective_reading import (
    Measure,
    ObjectiveReading,
    RequestedOutput,
    UnavailableAct,
)
from toolkit.planning.reading.requests.fan_out import Copy, fan_out
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
from toolkit.planning.reading.spans.measures import MEASURED_KINDS, PlacedMeasure, find_attribute
from toolkit.planning.reading.spans.scan import KINDS, Break, Scan
from toolkit.planning.reading.spans.topics import find_topic_text, trim_topic

_QUESTION = "What should be made: a text, a picture, something spoken or a card, and about what?"
_MAX_WORDING_CHARS = 4000
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
    places = [literal.start for literal in literals]
    mentions = _drop_unreadable(scan, finder, addresses, artifacts)
    mentions = _add_implied_text(scan, mentions, measures)
    _turn_voices_to_clones(mentions, artifacts, literals)
    mentions = _speak_quoted(scan, mentions, literals)
    mentions = mentions or _work_on_quoted(scan, finder, literals)
    mentions = _drop_baseless(scan, mentions, [*literals, *artifacts, *addresses])
    if not mentions and not finder.unavailable and len(scan) >= _LEAST_WORDS:
        mentions = [finder.unknown_work] if finder.unknown_work is not None else []
    for mention in mentions:
        mention.topics = [span for span in mention.topics if trim_topic(scan, *span)]
    if "joins" not in without:
        mentions = link_mentions(mentions, scan.names, places)
    for mention in mentions:
        mention.inputs = [one for one in mention.inputs if one in mentions]
    copies = fan_out(mentions, lists)
    builder = _RequestBuilder(scan, mentions, copies, literals, artifacts, measures, finder.facts)
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
        question=None if requests or unavailable else _QUESTION,
        understood=round(1 - len(unknown) / len(scan), 4) if len(scan) else 0.0,
        unknown_words=tuple(dict.fromkeys(scan.text(k, k + 1) for k in unknown)),
    )


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
                one.start == mention.end for one in literals
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


class _RequestBuilder:
    """Builder of requests from mentions: gives each its topic, measures, literal and words."""

    def __init__(
        self,
        scan: Scan,
        mentions: Sequence[Mention],
        copies: Sequence[Copy],
        literals: Sequence[Literal],
        artifacts: Sequence[tuple[int, str]],
        measures: Sequence[PlacedMeasure],
        facts: Sequence[int],
    ) -> None:
        self._scan = scan
        self._mentions = mentions
        self._index = {id(copy): n for n, copy in enumerate(copies)}
        self._clauses = sorted({one.clause for one in mentions})
        self._counts: dict[int, int] = {}
        for copy in copies:
            self._counts[id(copy.mention)] = self._counts.get(id(copy.mention), 0) + 1
        self._topics = {id(one): find_topic_text(scan, one.topics) for one in mentions}
        self._measures: dict[int, list[PlacedMeasure]] = {id(one): [] for one in mentions}
        self._literals: dict[int, list[Literal]] = {id(one): [] for one in mentions}
        self._artifacts: dict[int, list[str]] = {id(one): [] for one in mentions}
        self._loose_literals = list(literals)
        self._assign_measures(measures)
        self._assign_attributes()
        self._assign_literals(literals)
        self._assign_artifacts(artifacts)
        self._assign_facts(facts)

    def build(self, copy: Copy) -> RequestedOutput:
        """Build one request."""
        mention, scan = copy.mention, self._scan
        texts = self._literals[id(mention)]
        many = self._counts[id(mention)]
        literal = None
        if texts:
            literal = texts[copy.number] if len(texts) == many > 1 else texts[0]
        artifacts = self._artifacts[id(mention)]
        if len(artifacts) == many > 1:
            artifacts = [artifacts[copy.number]]
        return RequestedOutput(
            kind=mention.kind,
            phrase=scan.text(mention.start, mention.end),
            start=scan.tokens[mention.start].start if mention.start < len(scan) else 0,
            end=scan.tokens[mention.end - 1].end if mention.end else 0,
            act=mention.act,
            form=mention.form,
            topic=self._make_topic(copy, literal),
            wording=self._make_wording(copy),
            measures=self._list_measures(copy),
            language=mention.language,
            literal=literal.text if literal else None,
            literal_is_title=literal.is_title if literal else False,
            inputs=tuple(sorted(self._index[id(one)] for one in copy.inputs)),
            is_delivered=mention.is_delivered,
            needs_facts=mention.needs_facts,
            is_creative=mention.is_creative,
            artifact_ids=tuple(dict.fromkeys(artifacts)),
        )

    # Topics and wording.

    def _make_topic(self, copy: Copy, literal: Literal | None) -> str:
        mention = copy.mention
        topic = self._topics[id(mention)] or self._share_topic(mention)
        if copy.item is not None:
            item = trim_topic(self._scan, *copy.item)
            topic = f"{topic}: {item}" if topic and item not in topic else item or topic
        if not topic and literal is not None:
            topic = " ".join(literal.text.split()[:20])
        return topic

    def _share_topic(self, mention: Mention) -> str:
        """Return the topic of a neighbour: of what it is made from, a later one, an earlier one."""
        here = self._mentions.index(mention)
        order = [*mention.inputs, *self._mentions[here + 1 :], *reversed(self._mentions[:here])]
        return next((self._topics[id(one)] for one in order if self._topics[id(one)]), "")

    def _make_wording(self, copy: Copy) -> str:
        """Return the part of the objective that a request serves, without what was cut."""
        scan, mention = self._scan, copy.mention
        place = self._clauses.index(mention.clause)
        start = 0 if place == 0 else self._clauses[place]
        end = self._clauses[place + 1] if place + 1 < len(self._clauses) else len(scan)
        left_out = {"instruction", "negation"}
        if copy.item is not None:
            left_out = left_out | {"item"}
        parts: list[str] = []
        first: int | None = None
        for k in range(start, end + 1):
            kept = k < end and scan.owners[k] not in left_out
            if kept and first is None:
                first = k
            elif not kept and first is not None:
                stop = scan.tokens[k].start if k < len(scan) else len(scan.objective)
                parts.append(scan.objective[scan.tokens[first].start : stop].strip())
                first = None
        if copy.item is not None:
            parts.append(scan.text(*copy.item))
        return " ".join(part for part in parts if part)[:_MAX_WORDING_CHARS].strip()

    # Measures, literals, artifacts, facts.

    def _list_measures(self, copy: Copy) -> tuple[Measure, ...]:
        scan, mention = self._scan, copy.mention
        found: dict[str, Measure] = {}
        for placed in self._measures[id(mention)]:
            inside = copy.item is not None and copy.item[0] <= placed.start < copy.item[1]
            if scan.owners[placed.start] == "measure" or inside:
                found.setdefault(placed.measure.name, placed.measure)
        attributes = list(mention.attributes)
        if copy.item is not None:
            attributes += range(*copy.item)
        for k in attributes:
            attribute = _read_attribute(scan, k)
            if attribute and mention.kind in MEASURED_KINDS.get(attribute.name, KINDS):
                found.setdefault(attribute.name, attribute)
        return tuple(found.values())

    def _assign_measures(self, measures: Sequence[PlacedMeasure]) -> None:
        for placed in measures:
            mention = self._find_measured(placed)
            if mention is not None:
                self._measures[id(mention)].append(placed)

    def _find_measured(self, placed: PlacedMeasure) -> Mention | None:
        """Find the request that a measure fits: the noun it stands before, or the last one."""
        name = placed.measure.name
        kinds: Sequence[str] = MEASURED_KINDS.get(name, ())
        if not kinds:
            fields = self._scan.names.fields_by_kind
            kinds = [kind for kind, own in fields.items() if name in own]
        able = [one for one in self._mentions if one.kind in kinds]
        if not able:
            return None
        following = [one for one in able if 0 <= one.start - placed.end <= 3]
        if following and self._scan.breaks[following[0].start] == 0:
            return following[0]
        clause = max((c for c in self._clauses if c <= placed.start), default=0)
        near = [one for one in able if one.clause == clause]
        before = [one for one in able if one.start <= placed.start]
        pool = near or before[-1:] or able[:1]
        best = min(pool, key=lambda one: (kinds.index(one.kind), abs(one.start - placed.start)))
        if near:
            before_near = [one for one in near if one.start <= placed.start]
            return before_near[-1] if before_near else near[0]
        return best

    def _assign_attributes(self) -> None:
        """Give a theme that stands by itself to the card before it: `… Thème sombre.`"""
        scan = self._scan
        said = {k for one in self._mentions for k in one.attributes}
        for k in range(len(scan)):
            attribute = scan.find(k, "attribute.theme")
            if attribute is None or said & set(range(k - 1, attribute.end)):
                continue
            if attribute.end - k > 1 and (scan.breaks[k] or scan.has(k - 1, "join.", "about")):
                cards = [one for one in self._mentions if one.kind == "card" and one.start < k]
                for one in cards[-1:]:
                    one.attributes = [*one.attributes, k]

    def _assign_literals(self, literals: Sequence[Literal]) -> None:
        """Give each literal to the request in whose clause it stands, or that refers to it."""
        for literal in literals:
            first = max(0, literal.start - self._scan.names.longest_field)
            before = [self._scan.word(i) for i in range(first, literal.start)]
            field, length = self._scan.names.find_label(before)
            owner = self._find_literal_owner(literal)
            if owner is None:
                continue
            if not field and self._is_second_text(owner, literal):
                field, length = "body", 1
            own = self._scan.names.fields_by_kind.get(owner.kind, frozenset())
            if field in own and field not in {"title", "headline", "text"}:
                measure = Measure(field, literal.text)
                place = PlacedMeasure(literal.start - length, literal.start, measure)
                self._scan.consume(literal.start - length, literal.start, "measure")
                self._measures[id(owner)].append(place)
                continue
            self._literals[id(owner)].append(literal)
        for mention in self._mentions:
            if self._literals[id(mention)] or mention.inputs or not literals:
                continue
            if mention.kind in {"speech", "card"} and not mention.topics:
                quoted = [one for one in literals if one.start < mention.start]
                self._literals[id(mention)] = [quoted[-1] if quoted else literals[0]]

    def _is_second_text(self, owner: Mention, literal: Literal) -> bool:
        """Tell whether quoted words are the running text of a card that has its title."""
        texts = (one for one in self._scan.phrases(literal.start - 1) if literal.start)
        labelled = any(one.end == literal.start and "text" in one.category for one in texts)
        return labelled and owner.kind == "card" and bool(self._literals[id(owner)])

    def _find_literal_owner(self, literal: Literal) -> Mention | None:
        """Find the request whose words are quoted: in their sentence, one that takes words."""
        start = literal.start
        while start > 0 and self._scan.breaks[start] < Break.SENTENCE:
            start -= 1
        end = self._scan.find_sentence_end(literal.start)
        near = [one for one in self._mentions if start <= one.start < end]
        taking = [one for one in near if one.kind in {"speech", "card", "text", "clone"}]
        before = [one for one in taking if one.start <= literal.start]
        earlier = [one for one in self._mentions if one.start <= literal.start]
        pool = before[-1:] or taking[:1] or near[-1:] or earlier[-1:] or self._mentions[:1]
        return pool[0] if pool else None

    def _assign_artifacts(self, artifacts: Sequence[tuple[int, str]]) -> None:
        for place, artifact_id in artifacts:
            clones = [one for one in self._mentions if one.kind == "clone"]
            near = clones or [one for one in self._mentions if one.clause <= place]
            near = near or list(self._mentions[:1])
            if near:
                owner = min(near, key=lambda one: abs(one.start - place))
                self._artifacts[id(owner)].append(artifact_id)

    def _assign_facts(self, facts: Sequence[int]) -> None:
        texts = [one for one in self._mentions if one.kind in {"text", "card", "speech"}]
        for place in facts:
            before = [one for one in texts if one.start <= place and one.kind == "text"]
            owner = before[-1] if before else next(iter(texts), None)
            if owner is not None:
                owner.needs_facts = True


def _read_attribute(scan: Scan, k: int) -> Measure | None:
    """Read an attribute again, whoever consumed its words."""
    end = k + 1
    while end < len(scan) and not scan.breaks[end] and scan.owners[end] == scan.owners[k]:
        end += 1
    owners = scan.owners[k:end]
    scan.owners[k:end] = [None] * len(owners)
    found = find_attribute(scan, k)
    scan.owners[k:end] = owners
    return replace(found.measure) if found is not None else None
