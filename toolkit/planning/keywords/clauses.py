"""The reading of an objective: its clauses, and what each asks for.

A clause is placed if it begins with a known act or names a known thing, rules something out, or
adds a detail. One clause that is not placed makes the whole objective one that is asked back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolkit.planning.keywords.words import Term, Vocabulary
from toolkit.planning.plan_validator import MAX_NODES

MAX_LEAD = 4  # unknown words between an article and the thing that they describe
MAX_BARE_LEAD = 2  # the same without an article
LOOK_AHEAD = 24  # terms behind a joint in which a further act or thing begins
_STOPS = frozenset(".!?。！？\n;；•؟")
_COMMAS = frozenset(",、，،:：–—-")
_BY_ACT = {
    "write": "text", "rework": "text", "draw": "image", "speak": "speech", "research": "research",
    "lay_out": "card", "clone": "clone",
}  # fmt: skip


@dataclass
class Wish:
    """A thing that an objective asks for.

    Attributes:
        kind: `text`, `image`, `speech`, `card`, `research` or `clone`.
        start, end: the place of its words in the objective.
        act: what is to be done, such as `rework`; empty if only the thing is named.
        literals: the quoted words that stand in its clause, each with the word before it.
        artifacts: the ids of the artifacts that stand in it.
        count: how many are asked for.
        topic: the words that say what it is about, if it has any.
        refers: whether it points at what was asked for before, such as by "it".
        joined: the meaning of the word that joins it to the wish before it.
    """

    kind: str
    start: int
    end: int
    act: str = ""
    literals: list[tuple[str, str]] = field(default_factory=list)
    artifacts: list[str] = field(default_factory=list)
    count: int = 1
    topic: str = ""
    refers: bool = False
    joined: str = ""
    is_each: bool = False
    is_measure: bool = False
    has_article: bool = False
    asks: bool = False
    lists: bool = False


@dataclass
class Reading:
    """What was read of an objective.

    Attributes:
        wishes: the things that are asked for.
        questions: the places of what is asked, such as "Who invented the crossword?".
        missing: the names of capabilities that nothing here has.
        banned: the kinds that it rules out.
        unplaced: the clauses that were not understood.
        details: the places of clauses that add to the wishes.
        unwanted: the words of what is not to be shown.
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


def read_clauses(text: str, terms: Sequence[Term], language: Vocabulary) -> Reading:
    """Read what each clause of an objective asks for."""
    reader = _ClauseReader(text, language, is_researched=any(t["act"] == "research" for t in terms))
    for sentence in _split_sentences(_quote_rest(text, terms)):
        is_question = any(t.text in "?？؟" for t in sentence if t.has("mark"))
        is_question &= reader.is_asked(sentence)
        parts = [("", sentence)] if is_question else reader.split_clauses(sentence)
        for joint, clause in parts:
            if len(reader.reading.wishes) > MAX_NODES:  # so many are planned by nobody
                reader.reading.unplaced.append((clause[0].start, len(text)))
                return reader.reading
            reader.place(clause, joint, is_question)
    reader.check_mentions(terms)
    return reader.reading


def _quote_rest(whole: str, terms: Sequence[Term]) -> list[Term]:
    """Take for quoted what stands behind "Summarise this:", or behind a question on "this"."""
    if any(t.has("literal") for t in terms):
        return list(terms)
    at = next((i for i, t in enumerate(terms) if t.has("mark") and t.text in "::?？؟"), -1)
    before, after = terms[:at], terms[at + 1 :]
    if at <= 0 or not after or after[0].has("number", "numbers"):
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
    return [*before, Term(whole[start:end], start, end, {"literal": ""}), terms[at]]


def _split_sentences(terms: Sequence[Term]) -> list[list[Term]]:
    sentences: list[list[Term]] = [[]]
    for term in terms:
        sentences[-1].append(term)
        if term["mark"] in _STOPS and term.has("mark"):
            sentences.append([])
    return [one for one in sentences if any(not t.has("mark") for t in one)]


class _ClauseReader:
    """The reader of one objective."""

    def __init__(self, text: str, language: Vocabulary, *, is_researched: bool) -> None:
        self.reading = Reading()
        self._is_researched = is_researched
        self._text = text
        self._head_last = language.grammar.get("head", "last") == "last"
        self._verb_last = language.grammar.get("final") == "verb"

    # Clauses.

    def is_asked(self, sentence: Sequence[Term]) -> bool:
        """Tell whether a sentence begins as a question does, and is no polite request."""
        return bool(sentence) and sentence[self._first(sentence)].has("ask")

    def split_clauses(self, sentence: Sequence[Term]) -> list[tuple[str, list[Term]]]:
        """Split a sentence where a further act or thing begins, each part with what joins it."""
        clauses: list[tuple[str, list[Term]]] = [("", [])]
        has_topic = False
        for i, term in enumerate(sentence):
            joint = self._find_joint(term)
            if joint == "then" and " " in term.text and i + 1 < len(sentence):
                joint = "" if sentence[i + 1].has("thing") else joint  # "from this text"
            current = clauses[-1][1]
            if joint and any(not t.has("mark", "polite") for t in current):
                if self._verb_last:
                    opened = self._opens_last(sentence, i + 1)
                else:
                    opened = self._opens(sentence, i + 1, joint)
                refers = any(t.has("refer") for t in sentence[i + 1 : i + LOOK_AHEAD])
                if opened == "thing:text" and has_topic and joint != "with" and not refers:
                    self.reading.unplaced.append((term.start, term.end))
                if (
                    not opened
                    and joint in {"and", "then"}
                    and _is_other_act(sentence[i + 1 : i + LOOK_AHEAD])
                ):
                    self.reading.unplaced.append((term.start, term.end))
                if opened:
                    clauses.append((joint, []))
                    has_topic = False
            has_topic |= term.has("about")
            clauses[-1][1].append(term)
        return clauses

    @staticmethod
    def _find_joint(term: Term) -> str:
        if term.has("mark"):
            return "comma" if term.text in _COMMAS else ""
        return next((name for name in ("then", "and", "with") if term.has(name)), "")

    def _opens_last(self, sentence: Sequence[Term], i: int) -> str:
        """Tell the same if the verb comes last: what is before the joint must have ended."""
        near = sentence[max(0, i - LOOK_AHEAD) : i - 1]
        before = [t for t in near if not t.has("mark", "polite")]
        if not before or not before[-1].has("act", "make", "thing", "not", "missing"):
            return ""
        for term in sentence[i : i + LOOK_AHEAD]:
            if term.has("thing", "act", "missing", "not"):
                return "act"
        return ""

    def _opens(self, sentence: Sequence[Term], i: int, joint: str) -> str:
        """Tell what act or thing begins at a place: empty if none."""
        joint = "with" if i < len(sentence) and sentence[i].has("with") else joint
        article, is_spoken, unknown = False, False, 0
        for term in sentence[i : i + LOOK_AHEAD]:
            is_spoken |= term["act"] == "speak"
            if term.has("mark"):
                if term.text in _COMMAS and not (article or unknown):
                    continue
                return ""
            if term.has("not"):
                return "not"
            if term.has("missing") and not term.has("thing"):
                return "missing"
            if term.has("act") and not article and not unknown and joint != "with":
                return f"act:{term['act']}"
            if term.has("thing"):
                if term.has("unit") and article and joint != "with":
                    return ""
                is_spoken |= term["thing"] == "speech"
                if joint == "with" and term["thing"] in {"text", "research"}:
                    return "thing:speech" if is_spoken and term["thing"] == "text" else ""
                known = article or joint == "with" or not unknown
                return f"thing:{term['thing']}" if known else ""
            if term.has("article", "number", "numbers"):
                article = True
            elif term.has("make") and not article:
                article = joint != "with"
            elif term.has("literal", "artifact", "address", "about"):
                return ""
            elif term.is_unknown:
                unknown += 1
                if unknown > MAX_LEAD - 1:
                    return ""
        return ""

    def check_mentions(self, terms: Sequence[Term]) -> None:
        """Note the kinds that are mentioned and that nothing was made of."""
        made = {wish.kind for wish in self.reading.wishes} | self.reading.banned
        made |= {"speech"} if "clone" in made else set()
        leading, starts = "", True
        for term in terms:
            is_act = starts or term["act"] in {"draw", "speak"}
            kind = term["thing"] or (_BY_ACT.get(term["act"], "") if is_act else "")
            is_topic = leading == "about" and not starts
            if kind in {"image", "speech", "card", "clone"} - made and not is_topic:
                self.reading.unplaced.append((term.start, term.end))
            starts = term.has("mark", "and", "then", "polite") or (starts and term.has("function"))
            if term.has("onto"):
                leading = "onto"
            elif term.has("about"):
                leading = "about"
            elif not term.is_unknown and not term.has("article", "detail"):
                leading = ""

    # One clause.

    def place(self, clause: Sequence[Term], joint: str, is_question: bool) -> None:
        """Place a clause, or note that it was not understood."""
        span = (clause[0].start, clause[-1].end)
        if all(t.has("mark", "polite", "and", "then", "function") for t in clause):
            return
        if not (self._place_parts(clause, joint, is_question) or self._add_topic(clause)):
            self.reading.unplaced.append(span)

    def _add_topic(self, clause: Sequence[Term]) -> bool:
        """Take a clause for the topic of the wish before it, if that has none: "Haiku. Snow."."""
        last = self.reading.wishes[-1] if self.reading.wishes else None
        known = ("make", "act", "missing", "not", "thing", "artifact", "address", "ask", "refer")
        words = [t for t in clause if not t.has("mark")]
        if last is None or last.topic or last.literals or last.kind in {"speech", "clone"}:
            return False
        is_order = len(words) > 1 and words[0].is_unknown and words[1].has("article", "definite")
        if (
            self._verb_last
            or is_order
            or any(t.has(*known) and not t.has("function") for t in words)
        ):
            return False
        last.topic, last.end = self._cut(words), clause[-1].end
        return True

    def _place_parts(self, clause: Sequence[Term], joint: str, is_question: bool) -> bool:
        lead = 0
        article = made = definite = False
        if clause[self._first(clause)]["fields"] == "negative_prompt":
            self.reading.unwanted.append(self._cut(clause[self._first(clause) + 1 :]).strip(" :"))
            return True
        if any(t.has("voice") for t in clause) and any(t.has("artifact") for t in clause):
            return self._add_voice(clause)
        for i, term in enumerate(clause):
            if term.has("missing") and not term.has("thing") and not lead:
                self.reading.missing.append(term["missing"])
                return True
            if term.has("mark", "polite", "only") and not term.has("act", "thing"):
                continue
            if term.has("not") and not lead:
                return self._rule_out(clause[i + 1 :])
            if (
                i == self._first(clause)
                and term.has("ask")
                and (is_question or self._is_exam(clause))
            ):
                if any(t.has("missing") for t in clause) and not self._is_researched:
                    return False
                self.reading.questions.append((clause[0].start, clause[-1].end))
                given = any(t.has("literal") for t in clause) or bool(self.reading.literals)
                self.reading.is_answerable |= given or term["ask"] == "open"
                self._note_facts(clause)
                return True
            if term.has("act") and (self._verb_last or not (article or lead)):
                if self._verb_last and not _ends_known(clause):
                    return False
                return self._add_act(clause, i, joint, term["act"])
            if term.has("not"):
                return self._rule_out(clause[i + 1 :])
            if term.has("thing"):
                if self._label_card(clause, i):
                    return True
                if self._verb_last:
                    return _ends_known(clause) and self._add_thing(clause, i, joint)
                if term.has("missing") and not article:
                    self.reading.missing.append(term["missing"])
                    return True
                is_spoken = term["thing"] == "speech" and any(
                    wish.kind == "text" for wish in self.reading.wishes
                )
                if definite and not made and not lead and not is_spoken:
                    return self._add_detail(clause)
                if not (article or made or lead) and _is_verb(clause, i):
                    return False
                limit = MAX_LEAD if article or made else MAX_BARE_LEAD
                return lead <= limit and self._add_thing(clause, i, joint)
            if term.has("make") and not article and not lead:
                made = True
            elif term.has("article", "number", "numbers"):
                if lead:
                    return self._add_detail(clause)
                article = True
                definite = term.has("definite")
            elif term.has("literal"):
                if not self._verb_last:
                    self.reading.literals.append((term.text, ""))
                lead = 0
            elif term.is_unknown or (term.has("detail") and not term.has("number")):
                lead += 1
                if lead > MAX_LEAD and not self._verb_last:
                    return self._add_detail(clause)
            elif term.has("artifact", "address") and not self._verb_last:
                return False
            elif not self._verb_last and (
                term.has("detail", "unit", "about", "refer") or (lead and term.has("function"))
            ):
                return self._add_detail(clause)
        return self._add_detail(clause)

    def _is_exam(self, clause: Sequence[Term]) -> bool:
        """Tell whether a clause asks about words that are given: "How many words are in: …"."""
        return any(t.has("literal") for t in clause) and not any(t.has("make") for t in clause)

    def _label_card(self, clause: Sequence[Term], i: int) -> bool:
        """Give a card the quoted text of a field: "title: “Sold out”"."""
        cards = [wish for wish in self.reading.wishes if wish.kind == "card"]
        after = [t for t in clause[i + 1 :] if not t.has("mark")]
        if not cards or clause[i]["thing"] != "text" or not after or not after[0].has("literal"):
            return False
        cards[-1].literals += _list_literals(clause)
        return True

    @staticmethod
    def _first(clause: Sequence[Term]) -> int:
        skipped = ("mark", "and", "then", "polite")
        return next((i for i, t in enumerate(clause) if not t.has(*skipped) or t.has("ask")), 0)

    @staticmethod
    def _find_start(clause: Sequence[Term]) -> int:
        """Find where the words of a wish begin, behind what joins it to others."""
        joints = ("mark", "and", "then", "polite", "with")
        own = (t for t in clause if not t.has(*joints) or t.has("act", "thing"))
        return next(own, clause[0]).start

    def _rule_out(self, rest: Sequence[Term]) -> bool:
        """Ban the kinds that a clause says not to make, or note what is not to be shown."""
        if any(term.has("not") and not term.has("thing") for term in rest):
            return False
        before = len(self.reading.banned)
        for term in rest:
            if term.has("about", "literal"):
                break
            if term.has("thing"):
                self.reading.banned.add(term["thing"])
            elif term["act"] in {"draw", "speak", "research"}:
                self.reading.banned.add(_BY_ACT[term["act"]])
        if len(self.reading.banned) == before and any(term.is_unknown for term in rest):
            self.reading.unwanted.append(self._cut(rest))
        return True

    def _add_detail(self, clause: Sequence[Term]) -> bool:
        """Add a clause that says more of what is asked for, if it says something known."""
        kinds = {t["thing"] or _BY_ACT.get(t["act"], "") for t in clause}
        if kinds & {"image", "speech", "card", "clone"} - {one.kind for one in self.reading.wishes}:
            return False
        self.reading.mentions_text |= any(t["thing"] == "text" for t in clause)
        if self._is_statement(clause):
            self.reading.details.append((clause[0].start, clause[-1].end))
            return True
        known = sum(t.has("detail", "unit", "only", "not", "literal", "number") for t in clause)
        words = [t for t in clause if not t.has("mark")]
        unknown = sum(t.is_unknown for t in words)
        if any(t.has("missing") for t in words) or not known or unknown > 2 * known + 1:
            return False
        self.reading.details.append((clause[0].start, clause[-1].end))
        self._note_facts(clause)
        literals = _list_literals(clause)
        last = self.reading.wishes[-1] if self.reading.wishes else None
        if last is not None and literals and (last.kind == "clone" or last.literals):
            return last.kind == "card" and any(label for _, label in literals)
        (self.reading.literals if last is None else last.literals).extend(literals)
        return True

    def _is_statement(self, clause: Sequence[Term]) -> bool:
        """Tell whether a clause only states something: it begins as no order does."""
        first = clause[self._first(clause)]
        if self._verb_last or not first.has("article", "definite", "number", "numbers", "refer"):
            return False
        asked = ("make", "act", "missing", "not", "only", "each", "thing", "artifact", "address")
        return not any(t.has(*asked) and not t.has("function", "detail") for t in clause)

    def _note_facts(self, clause: Sequence[Term]) -> None:
        if any(t["thing"] == "research" or t["act"] == "research" for t in clause):
            self.reading.needs_facts = True

    # Wishes.

    def _add_act(self, clause: Sequence[Term], i: int, joint: str, act: str) -> bool:
        kind = _BY_ACT.get(act, act)  # a plugin names its own act
        head = self._find_object(clause, i + 1)
        if act == "rework" and self._needs_material(clause, head):
            return False
        if head is not None and act in {"write", "rework", "speak"}:
            named = clause[head]["thing"]
            if act == "speak":
                kind = "speech"
            elif named in {"card", "image"} and act == "write":
                return False
            elif named in {"speech", "research"} and act == "write":
                kind = named
        return self._add(clause, i, kind, act, head, joint)

    def _needs_material(self, clause: Sequence[Term], head: int | None) -> bool:
        """Tell whether an act works on a text that nobody gave: "Translate my contract"."""
        given = any(t.has("literal", "artifact") for t in clause) or self.reading.literals
        made = any(wish.kind in {"text", "research"} for wish in self.reading.wishes)
        named = head is not None and any(t.has("definite") for t in clause[:head])
        return not given and not made and (named or any(t.has("refer") for t in clause))

    def _add_voice(self, clause: Sequence[Term]) -> bool:
        """Add the cloning of the voice in a recording, and what it is to say at once."""
        samples = [t.text for t in clause if t.has("artifact")]
        if len(samples) > 1:
            return False
        said = [t for t in clause if t.has("literal")]
        speaks = any(t["act"] == "speak" and not t.has("voice") for t in clause)
        start, end = clause[self._first(clause)].start, clause[-1].end
        name = "" if speaks or not said else said[0].text
        self.reading.wishes.append(Wish("clone", start, end, artifacts=samples, topic=name))
        if speaks:
            literals = _list_literals(clause)
            self.reading.wishes.append(Wish("speech", start, end, "speak", literals=literals))
        return True

    def _add_thing(self, clause: Sequence[Term], i: int, joint: str) -> bool:
        head = self._find_object(clause, i)
        head = i if head is None else head
        kind = clause[head]["thing"]
        described = clause[max(0, head - 2) : head]
        is_spoken = any(t["thing"] == "speech" or t["act"] == "speak" for t in described)
        if kind == "text" and is_spoken and not clause[head].has("written"):
            kind = "speech"
        return self._add(clause, i, kind, "", head, joint)

    def _find_object(self, clause: Sequence[Term], i: int) -> int | None:
        """Find the thing that an act or a row of nouns is about."""
        found, unknown = None, 0
        for place in range(i, len(clause)):
            term = clause[place]
            if term.has("thing"):
                found = place
                unknown = 0
                if not self._head_last:
                    return found
            elif term.is_unknown:
                unknown += 1
                if unknown > MAX_LEAD or found is not None:
                    break
            elif term.has("about", "with", "mark", "literal", "and") or (found is not None):
                break
        return found

    def _add(
        self, clause: Sequence[Term], i: int, kind: str, act: str, head: int | None, joint: str
    ) -> bool:
        rest = clause[i + 1 :] if act else clause[(i if head is None else head) + 1 :]
        topic = next((n for n, t in enumerate(rest) if t.has("about", "literal")), len(rest))
        for term in rest[:topic]:
            if term.has("missing") and not term.has("thing", "unit", "function"):
                self.reading.missing.append(term["missing"])
                return True
        if any(t.has("address") for t in clause):
            self.reading.missing.append("web.read")
            return True
        before = clause[:head] if head is not None else clause[: i + 1]
        numbers = [_read_number(t) for t in before if t.has("number", "numbers")]
        wish = Wish(
            kind, self._find_start(clause), clause[-1].end, act,
            literals=[*self.reading.literals, *_list_literals(clause)],
            artifacts=[t.text for t in clause if t.has("artifact")],
            count=max([n for n in numbers if n], default=1),
            topic=self._find_topic(before, rest),
            refers=any(t.has("refer") for t in clause[i:]) or
            (head is not None and any(t.has("definite") for t in clause[i:head])),
            joined=joint,
            is_each=any(t.has("each") for t in clause),
            is_measure=head is not None and clause[head].has("unit"),
            lists=sum(t.has("mark") and t.text in _COMMAS for t in rest) >= 2,
            asks=any(t.has("ask") and not t.has("about") for t in rest),
            has_article=any(t.has("article", "number", "numbers") for t in before),
        )  # fmt: skip
        self.reading.literals = []
        if act != "research":
            self._note_facts(rest)
        self.reading.wishes.append(wish)
        return True

    def _find_topic(self, before: Sequence[Term], rest: Sequence[Term]) -> str:
        """Find the words that say what a thing is about, after or before the word for that."""
        at = next((n for n, t in enumerate(rest) if t.has("about")), None)
        if at is not None:
            run = _take_topic(rest[at + 1 :])
            if run:
                return self._cut(run)
        for part in (before, rest):
            run = _take_topic([t for t in part if not t.has("make", "act", "polite", "article")])
            if any(t.is_unknown for t in run):
                return self._cut(run)
        return ""

    def _cut(self, run: Sequence[Term]) -> str:
        return self._text[run[0].start : run[-1].end].strip() if run else ""


def _take_topic(terms: Sequence[Term]) -> list[Term]:
    """Take the terms of a topic: up to a mark, or a detail at its end, with a word of its own."""
    run: list[Term] = []
    for term in terms:
        if term.has("mark") and term.text not in "-–'":
            if run:
                break
            continue
        run.append(term)
    while run and not (run[-1].is_unknown or run[-1].has("literal", "thing", "number")):
        run.pop()
    while run and run[0].has("article", "function", "about") and not run[0].has("thing"):
        run.pop(0)
    return run if any(t.is_unknown or t.has("literal", "thing", "act") for t in run) else []


def _ends_known(clause: Sequence[Term]) -> bool:
    """Tell whether the last word of a clause is known, where that is its verb."""
    words = [t for t in clause if not t.has("mark", "polite")]
    return bool(words) and not words[-1].is_unknown


def _is_verb(clause: Sequence[Term], i: int) -> bool:
    """Tell whether a word that names a thing is used as a verb: "Text my wife"."""
    after = clause[i + 1] if i + 1 < len(clause) else None
    if after is None or not clause[i].has("verbal"):
        return False
    return not after.has("mark", "about", "number", "numbers", "literal", "with", "and")


def _is_other_act(rest: Sequence[Term]) -> bool:
    """Tell whether an unknown act begins here: "and have it framed"."""
    rest = [term for term in rest if not term.has("polite", "then")]
    if len(rest) < 2 or rest[0].has("article", "thing", "mark", "number", "about"):
        return False
    return rest[1].has("refer", "definite")


def _list_literals(clause: Sequence[Term]) -> list[tuple[str, str]]:
    """List the quoted words of a clause, each with the word that stands before it."""
    found, label = [], ""
    for term in clause:
        if term.has("literal"):
            found.append((term.text, label))
            label = ""
        elif not term.has("mark", "function"):
            label = term["fields"] or label
    return found


def _read_number(term: Term) -> int:
    value = term["number"] or term["numbers"]
    return int(value) if value.isdigit() else 0
