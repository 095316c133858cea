"""The clauses of an objective, and the wishes that they state.

A clause is placed if it begins with a known act or thing, rules something out, or adds a detail.
One clause that is not placed makes the planner ask about the whole objective.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from toolkit.planning.keywords.words import Term, Vocabulary, read_number
from toolkit.planning.plan_validator import MAX_NODES

MAX_LEAD = 4  # unknown words between an article and the thing that they describe
LOOK_AHEAD = 24  # terms behind a joint in which a further act or thing begins
_STOPS = frozenset(".!?。！？\n;；•؟")
_COMMAS = frozenset(",、，،:：–—-")
_BY_ACT = {
    "write": "text", "rework": "text", "draw": "image", "speak": "speech", "research": "research",
    "lay_out": "card", "clone": "clone",
}  # fmt: skip
_NOT_TEXT = frozenset({"image", "speech", "card", "clone"})
_IMAGE_FIELDS = frozenset({"seed", "steps", "negative_prompt"})
_SMALL = ("mark", "polite", "and", "then")  # meanings of words that ask for nothing


@dataclass
class Wish:
    """A result that an objective asks for.

    Attributes:
        kind: `text`, `image`, `speech`, `card`, `research` or `clone`.
        start, end: the place of its words in the objective.
        act: the act that makes it, such as `rework`; empty if only the thing is named.
        literals: the quoted words of its clause, each with the field that it fills.
        artifacts: the ids of the artifacts of its clause.
        count: the number of results.
        topic: the words of its topic.
        joined: the meaning of the word that joins it to the wish before it.
        refers: whether it points at an earlier wish, such as by "it".
        asks: whether a question follows in its clause.
        lists: whether its clause lists several topics.
    """

    kind: str
    start: int
    end: int
    act: str = ""
    literals: list[tuple[str, str]] = field(default_factory=list)
    artifacts: list[str] = field(default_factory=list)
    count: int = 1
    topic: str = ""
    joined: str = ""
    refers: bool = False
    asks: bool = False
    lists: bool = False
    is_each: bool = False
    is_measure: bool = False
    has_article: bool = False


@dataclass
class Reading:
    """The contents of an objective.

    Attributes:
        wishes: the results that it asks for.
        questions: the places of its questions, such as "Who invented the crossword?".
        missing: the names of capabilities that nothing here has.
        banned: the kinds that it rules out.
        unplaced: the places of clauses that were not understood.
        details: the places of clauses that add to the wishes.
        unwanted: the words that a picture must not show.
    """

    wishes: list[Wish] = field(default_factory=list)
    questions: list[tuple[int, int]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    banned: set[str] = field(default_factory=set)
    unplaced: list[tuple[int, int]] = field(default_factory=list)
    details: list[tuple[int, int]] = field(default_factory=list)
    unwanted: list[str] = field(default_factory=list)
    needs_facts: bool = False
    mentions_text: bool = False
    is_answerable: bool = False
    literals: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Clause:
    """The terms of a clause, and the meaning of the word that joins it to the previous clause."""

    terms: list[Term] = field(default_factory=list)
    joint: str = ""

    @property
    def span(self) -> tuple[int, int]:
        """The place of the clause in the objective."""
        return self.terms[0].start, self.terms[-1].end

    @property
    def words(self) -> list[Term]:
        """The terms without marks and polite words."""
        return [t for t in self.terms if not t.has("mark", "polite")]

    @property
    def first(self) -> Term:
        """The first term behind the words that join the clause to others."""
        content = (t for t in self.terms if not t.has(*_SMALL) or t.has("ask"))
        return next(content, self.terms[0])

    def has(self, *meanings: str) -> bool:
        """Return True if one of its terms has one of these meanings."""
        return any(t.has(*meanings) for t in self.terms)

    def list_kinds(self) -> set[str]:
        """List the kinds that its things and acts stand for."""
        return {t["thing"] or _BY_ACT.get(t["act"], "") for t in self.terms}

    def list_literals(self) -> list[tuple[str, str]]:
        """List its quoted words, each with the field that is named before it."""
        literals, label = [], ""
        for term in self.terms:
            if term.has("literal"):
                literals.append((term.text, label))
                label = ""
            elif not term.has("mark", "function"):
                label = term["fields"] or label
        return literals


@dataclass(frozen=True)
class Opening:
    """The term that decides the meaning of a clause.

    Attributes:
        place: its index in the clause.
        meaning: `act`, `thing`, `missing`, `not` or `self`; empty if no term decides.
        lead: the number of unknown words before it.
    """

    place: int = 0
    meaning: str = ""
    lead: int = 0
    has_article: bool = False
    is_definite: bool = False
    is_made: bool = False


def read_clauses(text: str, terms: Sequence[Term], language: Vocabulary) -> Reading:
    """Read the clauses of an objective."""
    reader = _ClauseReader(text, language, is_researched=any(t["act"] == "research" for t in terms))
    reading = reader.reading
    for sentence in _split_sentences(_quote_rest(text, terms)):
        is_question = any(t.has("mark") and t.text in "?？؟" for t in sentence)
        is_question &= Clause(sentence).first.has("ask")
        for clause in [Clause(sentence)] if is_question else reader.split_clauses(sentence):
            if len(reading.wishes) > MAX_NODES:  # so many are planned by nobody
                reading.unplaced.append((clause.span[0], len(text)))
                return reading
            if not reader.place(clause, is_question=is_question):
                reading.unplaced.append(clause.span)
    if not reading.wishes and any(t["fields"] in _IMAGE_FIELDS for t in terms):
        reading.wishes.append(Wish("image", 0, len(text), topic=text))
    reader.check_mentions(terms)
    return reading


def _quote_rest(objective: str, terms: Sequence[Term]) -> list[Term]:
    """Quote the text behind "Summarise this:", or behind a question on "this"."""
    at = next((i for i, t in enumerate(terms) if t.has("mark") and t.text in "::?？؟"), -1)
    before, after = terms[:at], terms[at + 1 :]
    is_open = at > 0 and after and not after[0].has("number", "numbers")
    if not is_open or any(t.has("literal") for t in terms):
        return list(terms)
    is_given = before[-1].has("act", "about", "refer", "function", "thing")
    if terms[at].text in ":：":
        works = any(t["act"] in {"speak", "rework"} or t["ask"] == "open" for t in before)
    else:
        works = any(t.has("refer") for t in before) and before[0].has("ask")
        is_given = not any(t.has("make", "act", "missing") for t in after)
    if not (works and is_given):
        return list(terms)
    start, end = after[0].start, after[-1].end
    return [*before, Term(objective[start:end], start, end, {"literal": ""}), terms[at]]


def _split_sentences(terms: Sequence[Term]) -> Iterator[list[Term]]:
    sentences: list[list[Term]] = [[]]
    for term in terms:
        sentences[-1].append(term)
        if term.has("mark") and term.text in _STOPS:
            sentences.append([])
    return (s for s in sentences if any(not t.has("mark") for t in s))


class _ClauseReader:
    """The reader of one objective."""

    def __init__(self, text: str, language: Vocabulary, *, is_researched: bool) -> None:
        self.reading = Reading()
        self._is_researched = is_researched
        self._text = text
        self._head_last = language.grammar.get("head", "last") == "last"
        self._verb_last = language.grammar.get("final") == "verb"
        self._is_spaced = language.is_spaced

    # The clauses of a sentence.

    def split_clauses(self, sentence: Sequence[Term]) -> list[Clause]:
        """Split a sentence where a further act or thing begins."""
        clauses = [Clause()]
        for i, term in enumerate(sentence):
            joint, current = _find_joint(term), clauses[-1]
            if joint and any(not t.has("mark", "polite") for t in current.terms):
                opened = self._opens(sentence, i, joint, current)
                after = sentence[i + 1 : i + 1 + LOOK_AHEAD]
                if not opened and joint in {"and", "then"} and _is_order(after):
                    self.reading.unplaced.append((term.start, term.end))
                if opened:
                    clauses.append(Clause(joint=joint))
            clauses[-1].terms.append(term)
        return clauses

    def _opens(self, sentence: Sequence[Term], i: int, joint: str, current: Clause) -> str:
        """Return the meaning, or the kind of thing, that begins behind a joint; empty if none."""
        after = sentence[i + 1 : i + 1 + LOOK_AHEAD]
        if any(t["fields"] == "negative_prompt" for t in current.terms[:MAX_LEAD]):
            return ""
        if self._verb_last:  # the clause before the joint must be complete
            before = [t for t in current.terms[-LOOK_AHEAD:] if not t.has("mark", "polite")]
            is_complete = before and before[-1].has("act", "make", "thing", "not", "missing")
            has_more = any(t.has("thing", "act", "missing", "not") for t in after)
            return "act" if is_complete and has_more else ""
        joint = "with" if after and after[0].has("with") else joint
        opening = self._find_opening(after, is_clause=False)
        if opening.meaning != "thing":
            return "" if (joint, opening.meaning) == ("with", "act") else opening.meaning
        term = after[opening.place]
        if joint == "with":
            is_spoken = _is_spoken(after, opening.place)
            return "" if term["thing"] in {"text", "research"} and not is_spoken else term["thing"]
        is_known = opening.has_article or opening.is_made or not opening.lead
        return term["thing"] if is_known and not term.has("unit") else ""

    def _find_opening(self, terms: Sequence[Term], *, is_clause: bool) -> Opening:
        """Find the term that decides the meaning of a clause, or of the terms behind a joint."""
        lead, is_made, has_article, is_definite = 0, False, False, False
        for i, term in enumerate(terms):
            is_free = self._verb_last or not (lead or has_article or (is_made and not is_clause))
            if term.has("mark") and not is_clause and not (is_free and term.text in _COMMAS):
                break
            if term.has("mark", "polite", "only") and not term.has("act", "thing"):
                continue
            meanings = ["self", "act"] if is_free else []
            if not lead or has_article or self._verb_last or not is_clause:
                meanings += [] if term.has("thing") else ["missing"]
                meanings += ["not"]
            meaning = next((name for name in (*meanings, "thing") if term.has(name)), "")
            if meaning:
                return Opening(i, meaning, lead, has_article, is_definite, is_made)
            if self._verb_last:
                continue
            if term.has("make") and not has_article and not lead:
                is_made = True
            elif term.has("article", "number", "numbers"):
                if lead and is_clause:
                    break
                has_article, is_definite = True, term.has("definite")
            elif term.is_unknown or (
                term.has("detail") and is_clause and not term.has("into", "languages")
            ):
                lead += 1
                if lead > MAX_LEAD:
                    break
            elif term.has("literal", "artifact", "address", "about") or (
                is_clause and (term.has("unit", "refer") or (lead and term.has("function")))
            ):
                break
        return Opening()

    def check_mentions(self, terms: Sequence[Term]) -> None:
        """Note the kinds that are mentioned, but that no wish makes."""
        kinds = {wish.kind for wish in self.reading.wishes} | self.reading.banned
        kinds |= {"speech"} if "clone" in kinds else set()
        is_topic, starts = False, True
        for term in terms:
            is_act = starts or term["act"] in {"draw", "speak"}
            kind = term["thing"] or (_BY_ACT.get(term["act"], "") if is_act else "")
            if kind in _NOT_TEXT - kinds and (starts or not is_topic):
                self.reading.unplaced.append((term.start, term.end))
            starts = term.has(*_SMALL)
            if term.has("about", "onto"):
                is_topic = self._head_last and not term.has("onto")

    # One clause.

    def place(self, clause: Clause, *, is_question: bool) -> bool:
        """Place a clause; return False if it was not understood."""
        words, terms = clause.words, clause.terms
        if all(t.has(*_SMALL, "function", "make") for t in terms):
            return True
        if clause.first["fields"] == "negative_prompt":
            after = terms[terms.index(clause.first) + 1 :]
            self.reading.unwanted.append(self._cut(after).strip(" :"))
            return True
        if clause.has("voice") and clause.has("artifact"):
            return self._add_voice(clause)
        if words[-1].has("not") and len(words) > 1 and not self._verb_last:
            return self._rule_out(words[:-1])
        if clause.first.has("ask") and (is_question or _is_exam(clause)):
            return self._add_question(clause)
        opening = self._find_opening(terms, is_clause=True)
        term = terms[opening.place]
        if opening.meaning == "self":
            self.reading.details.append(clause.span)
            return True
        if opening.meaning == "not":
            return self._rule_out(terms[opening.place + 1 :])
        if opening.meaning == "missing":
            self.reading.missing.append(term["missing"])
            return True
        if self._verb_last and opening.meaning and words[-1].is_unknown:
            return False
        if opening.meaning == "act":
            return self._add_act(clause, opening.place)
        if opening.meaning == "thing":
            return self._label_card(clause, term) or self._add_thing(clause, opening)
        return not clause.has("address", "artifact") and self._add_detail(clause)

    def _label_card(self, clause: Clause, term: Term) -> bool:
        """Give a card the quoted text of a field: "title: “Sold out”"."""
        cards = [wish for wish in self.reading.wishes if wish.kind == "card"]
        if not cards or not term.has("fields") or not clause.has("literal"):
            return False
        cards[-1].literals += clause.list_literals()
        return True

    def _add_question(self, clause: Clause) -> bool:
        if clause.has("missing") and not self._is_researched:
            return False
        self.reading.questions.append(clause.span)
        is_given = clause.has("literal") or bool(self.reading.literals)
        self.reading.is_answerable |= is_given or clause.first["ask"] == "open"
        self._note_facts(clause.terms)
        return True

    def _rule_out(self, after: Sequence[Term]) -> bool:
        """Ban the kinds that a clause rules out, or note the words that a picture must not show."""
        banned = set()
        for term in after:
            if term.has("about", "literal"):
                break
            act = term["act"] if term["act"] in {"draw", "speak", "research"} else ""
            banned |= {term["thing"] or _BY_ACT.get(act, "")} - {""}
        self.reading.banned |= banned
        if not banned and any(term.is_unknown for term in after):
            self.reading.unwanted.append(self._cut(after))
        return True

    def _add_detail(self, clause: Clause) -> bool:
        """Add a clause that describes the wishes further; return False if it may be an order."""
        is_known = clause.has("detail", "unit", "only", "not", "literal", "number")
        is_harmless = self._is_spaced and not _is_order(clause.words) and not clause.has("make")
        is_harmless &= not any(
            t.has("act", "thing") and not t.has("function", "detail", "about") for t in clause.terms
        )
        if clause.has("each", "missing") or not (is_known or is_harmless):
            return False
        self.reading.mentions_text |= any(t["thing"] == "text" for t in clause.terms)
        self.reading.details.append(clause.span)
        self._note_facts(clause.terms)
        wishes = self.reading.wishes
        (wishes[-1].literals if wishes else self.reading.literals).extend(clause.list_literals())
        return True

    def _note_facts(self, terms: Sequence[Term]) -> None:
        if any("research" in (t["thing"], t["act"]) for t in terms):
            self.reading.needs_facts = True

    # Wishes.

    def _add_act(self, clause: Clause, i: int) -> bool:
        act = clause.terms[i]["act"]
        kind = _BY_ACT.get(act, act)  # a plugin names its own act
        head = self._find_object(clause.terms, i + 1)
        object_kind = clause.terms[head]["thing"] if head is not None else ""
        if act == "rework" and self._needs_material(clause):
            return False
        if act == "write" and object_kind in {"speech", "research"}:
            kind = object_kind
        return self._add(clause, i, kind, act, head)

    def _needs_material(self, clause: Clause) -> bool:
        """Return True if the text that an act works on is absent: "Translate my contract"."""
        is_given = clause.has("literal", "artifact") or bool(self.reading.literals)
        is_given |= any(wish.kind in {"text", "research"} for wish in self.reading.wishes)
        return not is_given

    def _add_voice(self, clause: Clause) -> bool:
        """Add the cloning of a voice, and the speech that the clause asks of it."""
        samples = [t.text for t in clause.terms if t.has("artifact")]
        if len(samples) > 1 or "clone" not in clause.list_kinds():
            return False
        literals = clause.list_literals()
        speaks = any(t["act"] == "speak" and not t.has("voice") for t in clause.terms)
        name = literals[0][0] if literals and not speaks else ""
        self.reading.wishes.append(Wish("clone", *clause.span, artifacts=samples, topic=name))
        if speaks:
            self.reading.wishes.append(Wish("speech", *clause.span, "speak", literals=literals))
        return True

    def _add_thing(self, clause: Clause, opening: Opening) -> bool:
        """Add a thing that is named, unless its words may mean something else."""
        i, terms = opening.place, clause.terms
        if self._verb_last:
            return self._add(clause, i, terms[i]["thing"], "", self._find_object(terms, i))
        if terms[i].has("missing") and not opening.has_article:
            self.reading.missing.append(terms[i]["missing"])
            return True
        is_bare = not (opening.has_article or opening.is_made or opening.lead)
        kinds = {wish.kind for wish in self.reading.wishes}
        near = terms[max(0, i - MAX_LEAD) : i]
        if (
            any(t.has("own") for t in near)
            and terms[i]["thing"] not in kinds
            and not clause.has("literal")
        ):
            return False  # it exists already: "Put my rant on a wall"
        is_spoken = terms[i]["thing"] == "speech" and "text" in kinds
        if opening.is_definite and not (opening.is_made or is_spoken):
            return self._add_detail(clause)
        if is_bare and _is_verb(terms, i):
            return False
        head = self._find_object(terms, i)
        place = i if head is None else head
        kind = terms[place]["thing"]
        kind = "speech" if kind == "text" and _is_spoken(terms, place) else kind
        return self._add(clause, i, kind, "", head)

    def _find_object(self, terms: Sequence[Term], i: int) -> int | None:
        """Find the thing that an act or a row of nouns is about."""
        head, unknown = None, 0
        for place in range(i, len(terms)):
            term = terms[place]
            if term.has("thing"):
                head, unknown = place, 0
                if not self._head_last:
                    return head
            elif term.is_unknown and head is None and unknown < MAX_LEAD:
                unknown += 1
            elif (
                head is not None
                or term.is_unknown
                or term.has("about", "with", "mark", "literal", "and")
            ):
                break
        return head

    def _add(self, clause: Clause, i: int, kind: str, act: str, head: int | None) -> bool:
        terms = clause.terms
        after = terms[i + 1 :] if act else terms[(i if head is None else head) + 1 :]
        if kind == "text" and not act and not self._verb_last and _goes_on(terms, head):
            return False
        topic = next((n for n, t in enumerate(after) if t.has("about", "literal")), len(after))
        absent = [
            t["missing"]
            for t in after[:topic]
            if t.has("missing") and not t.has("thing", "unit", "function")
        ]
        if absent or clause.has("address"):
            self.reading.missing.append(absent[0] if absent else "web.read")
            return True
        before = terms[:head] if head is not None else terms[: i + 1]
        content = (t for t in terms if not t.has(*_SMALL, "with") or t.has("act", "thing"))
        wish = Wish(
            kind, next(content, terms[0]).start, terms[-1].end, act,
            literals=[*self.reading.literals, *clause.list_literals()],
            artifacts=[t.text for t in terms if t.has("artifact")],
            count=max([1, *(read_number(t) for t in before)]),
            topic=self._find_topic(before, after),
            joined=clause.joint,
            refers=any(t.has("refer") for t in terms[i:])
            or (head is not None and any(t.has("definite") for t in terms[i:head])),
            asks=any(t.has("ask") and not t.has("about") for t in after),
            lists=sum(t.has("mark") and t.text in _COMMAS for t in after) >= 2,
            is_each=clause.has("each"),
            is_measure=head is not None and terms[head].has("unit"),
            has_article=any(t.has("article", "number", "numbers") for t in before),
        )  # fmt: skip
        self.reading.literals = []
        if act != "research":
            self._note_facts(after)
        self.reading.wishes.append(wish)
        return True

    def _find_topic(self, before: Sequence[Term], after: Sequence[Term]) -> str:
        """Find the topic of a thing: the words behind a word such as "about", or unknown words."""
        at = next((n for n, t in enumerate(after) if t.has("about")), len(after))
        run = _take_topic(after[at + 1 :])
        if run:
            return self._cut(run)
        for part in (before, after):
            run = _take_topic([t for t in part if not t.has("make", "act", "polite", "article")])
            if any(t.is_unknown for t in run):
                return self._cut(run)
        return ""

    def _cut(self, run: Sequence[Term]) -> str:
        return self._text[run[0].start : run[-1].end].strip() if run else ""


def _find_joint(term: Term) -> str:
    if term.has("mark") and not term.has("and"):
        return "comma" if term.text in _COMMAS else ""
    return next((name for name in ("then", "and", "with") if term.has(name)), "")


def _take_topic(terms: Sequence[Term]) -> list[Term]:
    """Take the terms of a topic: up to a mark, with a word of its own at its end."""
    run: list[Term] = []
    for term in terms:
        if not term.has("mark") or term.text in "-–'":
            run.append(term)
        elif run:
            break
    while run and not (run[-1].is_unknown or run[-1].has("literal", "thing", "number")):
        run.pop()
    while run and run[0].has("article", "function", "about") and not run[0].has("thing"):
        run.pop(0)
    return run if any(t.is_unknown or t.has("literal", "thing", "act") for t in run) else []


def _goes_on(terms: Sequence[Term], head: int | None) -> bool:
    """Return True if unknown words behind a thing may change its meaning: "a story app"."""
    if head is None:
        return False
    for term in terms[head + 1 :]:
        if term.is_unknown or term.has("mark", "about", "literal", "with", "and"):
            return term.is_unknown
    return False


def _is_spoken(terms: Sequence[Term], place: int) -> bool:
    """Return True if the words before a text make it a sound: "an audio greeting"."""
    near = terms[max(0, place - 2) : place]
    is_sound = any(t["thing"] == "speech" or t["act"] == "speak" for t in near)
    return is_sound and not terms[place].has("written")


def _is_exam(clause: Clause) -> bool:
    """Return True if a clause asks about quoted words: "How many words are in: …"."""
    return clause.has("literal") and not clause.has("make")


def _is_verb(terms: Sequence[Term], i: int) -> bool:
    """Return True if a word that names a thing is used as a verb: "Text my wife"."""
    after = terms[i + 1] if i + 1 < len(terms) else None
    if after is None or not terms[i].has("verbal"):
        return False
    return not after.has("mark", "about", "number", "numbers", "literal", "with", "and")


def _is_order(terms: Sequence[Term]) -> bool:
    """Return True if an unknown act begins here: "have it framed"."""
    words = [t for t in terms if not t.has("polite", "then", "and")]
    if len(words) < 2 or words[0].has("article", "thing", "mark", "number", "about"):
        return False
    return words[1].has("refer", "definite") or (words[0].is_unknown and words[1].has("article"))
