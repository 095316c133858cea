"""The builder of requests: the topic, measures, quoted words and wording of each mention."""

from collections.abc import Sequence
from dataclasses import replace

from toolkit.planning.reading.objective_reading import Measure, RequestedOutput
from toolkit.planning.reading.requests.fan_out import Copy
from toolkit.planning.reading.requests.mentions import Mention
from toolkit.planning.reading.spans.literals import Literal
from toolkit.planning.reading.spans.measures import MEASURED_KINDS, PlacedMeasure, find_attribute
from toolkit.planning.reading.spans.scan import KINDS, Break, Scan
from toolkit.planning.reading.spans.topics import find_topic_text, trim_topic
from toolkit.planning.reading.words.grammar import get_grammar

_MAX_WORDING_CHARS = 4000


class RequestBuilder:
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
        literal = self._find_quoted_item(copy) or literal
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
            language=_read_language(copy) or mention.language,
            literal=literal.text if literal else None,
            literal_is_title=literal.is_title if literal else False,
            inputs=tuple(sorted(self._index[id(one)] for one in copy.inputs)),
            is_delivered=mention.is_delivered,
            needs_facts=mention.needs_facts,
            is_creative=mention.is_creative,
            artifact_ids=tuple(dict.fromkeys(artifacts)),
        )

    def _find_quoted_item(self, copy: Copy) -> Literal | None:
        """Return the words of a quoted item that are spoken or shown; a text is about them."""
        if copy.item is None or copy.inputs or copy.mention.kind not in {"speech", "card"}:
            return None
        return next((one for one in self._loose_literals if one.start == copy.item[0]), None)

    # Topics and wording.

    def _make_topic(self, copy: Copy, literal: Literal | None) -> str:
        mention = copy.mention
        topic = self._topics[id(mention)]
        given = self._share_topic(mention) if not topic or mention.refers else ""
        topic = ", ".join(dict.fromkeys(part for part in (given, topic) if part))
        if copy.item is not None and copy.value is None:
            item = trim_topic(self._scan, *copy.item)
            topic = f"{topic}: {item}" if topic and item not in topic else item or topic
        if not topic and literal is not None:
            topic = " ".join(literal.text.split()[:20])
        return topic

    def _share_topic(self, mention: Mention) -> str:
        """Return the topic of a neighbour: of what it is made from, then of those beside it."""
        here = self._mentions.index(mention)
        later, earlier = self._mentions[here + 1 :], self._mentions[:here][::-1]
        beside = [*earlier, *later] if mention.refers else [*later, *earlier]
        order = [*mention.inputs, *beside]
        return next((self._topics[id(one)] for one in order if self._topics[id(one)]), "")

    def _make_wording(self, copy: Copy) -> str:
        """Return the part of the objective that a request serves, without what was cut."""
        scan, mention = self._scan, copy.mention
        place = self._clauses.index(mention.clause)
        start = 0 if place == 0 else self._clauses[place]
        end = self._clauses[place + 1] if place + 1 < len(self._clauses) else len(scan)
        left_out = {"instruction", "negation", "enumerator"}
        if copy.item is not None:
            left_out = left_out | {"item"}
        parts: list[str] = []
        if mention.form and scan.word(mention.start) in get_grammar(scan.lexicon.code).another:
            start = mention.start  # "one of a dog" needs what it is one of
            parts.append(f"{mention.form}:")
        first: int | None = None
        for k in range(start, end + 1):
            kept = k < end and scan.owners[k] not in left_out
            if kept and first is None:
                first = k
            elif not kept and first is not None:
                stop = scan.tokens[k].start if k < len(scan) else len(scan.objective)
                part = scan.objective[scan.tokens[first].start : stop].strip()
                parts.append(part.rstrip("(-–•").rstrip())
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
        if copy.value is not None and copy.value.name != "language":
            found[copy.value.name] = copy.value
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
            mention = self._find_measured(placed) or self._find_resting(placed)
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
        if all(one.kind == "research" for one in near):
            near = [] if any(one.kind != "research" for one in able) else near
        before = [one for one in able if one.start <= placed.start]
        pool = near or before[-1:] or able[:1]
        best = min(pool, key=lambda one: (kinds.index(one.kind), abs(one.start - placed.start)))
        written = [one for one in best.inputs if one.kind == "text" and not self._measures[id(one)]]
        if name == "bullets" and best.kind == "card" and written:
            return written[-1]  # the text that is laid out has the points
        if near:
            before_near = [one for one in near if one.start <= placed.start]
            return before_near[-1] if before_near else near[0]
        return best

    def _find_resting(self, placed: PlacedMeasure) -> Mention | None:
        """Find the text that rests on facts where only these are measured: `three sources`."""
        own = self._scan.names.fields_by_kind.get("research", frozenset())
        if placed.measure.name not in own or isinstance(placed.measure.value, str):
            return None
        texts = [one for one in self._mentions if one.kind == "text"]
        before = [one for one in texts if one.start <= placed.start]
        mention = next(iter(before[-1:] or texts), None)
        if mention is not None:
            mention.needs_facts = True
        return mention

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
        listed: set[int] = set()
        for literal in literals:
            if self._scan.owners[literal.start] == "item" or literal.start in listed:
                continue
            first = max(0, literal.start - self._scan.names.longest_field)
            before = [self._scan.word(i) for i in range(first, literal.start)]
            before = before[:-1] if before[-1:] in (["は"], ["を"], ["に"]) else before
            field, length = self._scan.names.find_label(before)
            owner = self._find_literal_owner(literal)
            if owner is None:
                continue
            if not field and self._is_second_text(owner, literal):
                field, length = "body", 1
            own = self._scan.names.fields_by_kind.get(owner.kind, frozenset())
            if field in own and field not in {"title", "headline", "text"}:
                run = self._find_run(literal, literals) if field == "bullets" else [literal]
                listed |= {one.start for one in run}
                measure = Measure(field, "\n".join(one.text for one in run))
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

    def _find_run(self, first: Literal, literals: Sequence[Literal]) -> list[Literal]:
        """Find the quoted words that are listed together: `bullets “music”, “raffle”`."""
        run, scan = [first], self._scan
        for literal in literals:
            near = literal.start >= run[-1].end and scan.breaks[literal.start] <= Break.COMMA
            if near and all(scan.has(k, "join.and") for k in range(run[-1].end, literal.start)):
                run.append(literal)
        return run

    def _is_second_text(self, owner: Mention, literal: Literal) -> bool:
        """Tell whether quoted words are the running text of a card that has its title."""
        texts = (one for one in self._scan.phrases(literal.start - 1) if literal.start)
        labelled = any(one.end == literal.start and "text" in one.category for one in texts)
        return labelled and owner.kind == "card" and bool(self._literals[id(owner)])

    def _find_literal_owner(self, literal: Literal) -> Mention | None:
        """Find the request whose words are quoted: in their sentence, one that takes words."""
        start = self._scan.find_sentence_start(literal.start)
        end = self._scan.find_sentence_end(literal.start)
        near = [one for one in self._mentions if start <= one.start < end]
        taking = [one for one in near if one.kind in {"speech", "card", "text", "clone"}]
        if self._scan.lexicon.word_order == "about-before":
            # The verb that takes quoted words stands after them.
            taking = [one for one in taking if one.clause <= literal.start <= one.start] or taking
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


def _read_language(copy: Copy) -> str | None:
    value = copy.value
    return str(value.value) if value is not None and value.name == "language" else None


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
