"""The clauses of an objective, and the wishes that they state.

A clause is understood if it begins with a known act or thing, rules something out, or describes the
wishes. One clause that is not understood makes the planner ask about the whole objective.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from toolkit.planning.keywords.grammar import GRAMMARS, Chunk
from toolkit.planning.keywords.words import Term, choose_vocabulary, read_number, read_terms
from toolkit.planning.plan_validator import MAX_NODES

_BY_ACT = {
    "write": "text", "rework": "text", "draw": "image", "speak": "speech", "research": "research",
    "lay_out": "card", "clone": "clone",
}  # fmt: skip


@dataclass
class Wish:
    """A result that an objective asks for.

    Attributes:
        kind: `text`, `image`, `speech`, `card`, `research`, `clone`, or the id of a capability.
        act: the act that makes it, such as `rework`; empty if only the thing is named.
        literals: the quoted words of its clause, each with the field that it fills.
    """

    kind: str
    clause: Chunk
    act: str = ""
    topic: str = ""
    count: int = 1
    literals: list[tuple[str, str]] = field(default_factory=list)


class Reading:
    """An objective as the keyword planner reads it: the results asked for, and their details.

    Attributes:
        text, terms: the objective, and all its terms.
        missing: the names of capabilities that nothing here has.
        banned: the kinds that it rules out.
        unplaced: the places of clauses that were not understood.
        details: the clauses that describe the wishes.
        unwanted: the words that a picture must not show.
        asks: whether a text answers a question, or is described.
        is_answerable: whether a question can be answered without facts.
        needs_facts: whether facts are to be used.
    """

    def __init__(self, text: str, keywords: Mapping[str, str] | None = None) -> None:
        self.text = text
        self.language = choose_vocabulary(text, keywords)
        self.terms = Chunk(read_terms(text, self.language))
        self.wishes: list[Wish] = []
        self.missing: list[str] = []
        self.banned: set[str] = set()
        self.unplaced: list[tuple[int, int]] = []
        self.details: list[Chunk] = []
        self.unwanted: list[str] = []
        self.asks = self.is_answerable = self.needs_facts = False
        self._literals: list[tuple[str, str]] = []
        self._rules = GRAMMARS[self.language.grammar.get("order", "last")]
        self._read()

    @property
    def kinds(self) -> set[str]:
        """The kinds of results that the objective asks for, such as `text` or `image`."""
        return {wish.kind for wish in self.wishes}

    def cut(self, run: Chunk) -> str:
        """Return the part of the objective that a run of terms covers."""
        start, end = run.span
        return self.text[start:end]

    def _read(self) -> None:
        terms, parts = self.terms, self.terms.match(self._rules["given"])
        if parts["given"] and not terms.has("literal"):
            quotation = Term(self.cut(parts["given"]), *parts["given"].span, {"literal": ""})
            terms = Chunk([*parts["before"].terms, quotation, parts["mark"].first])
        for joint, clause in self._split(terms):
            if not self._place(clause, joint):
                self.unplaced.append(clause.span)
        if not self.wishes and any(t["fields"] in {"seed", "steps"} for t in terms.terms):
            self.wishes.append(Wish("image", terms, topic=self.text))
        for wish in self.wishes if "image" in self.kinds else ():
            if wish.kind == "card" and any(not label for _, label in wish.literals):
                self.unplaced.append(wish.clause.span)  # it may have other words than a quotation
        kinds = self.kinds | self.banned | ({"speech"} if "clone" in self.kinds else set())
        mentions = (parts["mention"] for parts in terms.find_all(self._rules["mention"]))
        self.unplaced += [run.span for run in mentions if _list_kinds(run) - kinds]

    def _split(self, terms: Chunk) -> Iterator[tuple[Chunk, Chunk]]:
        """Split sentences into clauses by verbs and things; yield joining words and clause."""
        for sentence in terms.find_all(self._rules["sentence"]):
            is_question = sentence["clause"].match(self._rules["question"])
            clauses = sentence["clause"].find_all(self._rules["clause"])
            for parts in [sentence] if is_question else clauses:
                yield parts["joint"], parts["clause"]

    def _place(self, clause: Chunk, joint: Chunk) -> bool:
        """Record what a clause asks for, rules out or describes; return False if it is unclear."""
        rules = self._rules
        if clause.match(rules["nothing"]):
            return True
        if parts := clause.match(rules["question"]):
            is_given = clause.has("literal") or bool(self._literals)
            self.is_answerable |= is_given or parts["ask"].first["ask"] == "open"
            self.asks = True
            self._note_facts(clause)
            is_researched = any(term["act"] == "research" for term in self.terms.terms)
            return is_researched or not clause.has("missing")
        parts = clause.match(rules["denial"]) or clause.match(rules["opening"])
        if parts["act"]:
            return self._add_act(clause, parts, joint)
        if parts["thing"]:
            return self._add_thing(clause, parts, joint)
        if parts["not"]:
            self._rule_out(parts["after"])
        elif parts["missing"]:
            self.missing.append(parts["missing"].first["missing"])
        elif parts["self"]:
            self.details.append(clause)
        else:
            is_order = joint and clause.match(rules["order"])
            return not is_order and bool(clause.match(rules["detail"])) and self._describe(clause)
        return True

    def _rule_out(self, after: Chunk) -> None:
        """Ban the kinds that a clause rules out, or note the words that a picture must not show."""
        kinds = _list_kinds(after.match(self._rules["noted"])["noted"])
        self.banned |= kinds
        if not kinds and after.match(self._rules["unknown"]):
            self.unwanted.append(self.cut(after))

    def _describe(self, clause: Chunk) -> bool:
        """Add a clause that describes the wishes; return False if it asks for more."""
        if clause.has("each", "missing", "address"):
            return False
        self.asks |= any(t["thing"] == "text" for t in clause.terms)
        self.details.append(clause)
        self._note_facts(clause)
        literals = self.wishes[-1].literals if self.wishes else self._literals
        literals += self._list_literals(clause)
        return True

    def _note_facts(self, run: Chunk) -> None:
        self.needs_facts |= any("research" in (t["thing"], t["act"]) for t in run.terms)

    def _list_literals(self, run: Chunk) -> list[tuple[str, str]]:
        """List the quoted words of a run of terms, each with the field that is named before it."""
        matches = run.find_all(self._rules["labelled"])
        return [(parts["literal"].first.text, parts["label"].first["fields"]) for parts in matches]

    def _add_act(self, clause: Chunk, parts: Mapping[str, Chunk], joint: Chunk) -> bool:
        act, after = parts["act"].first["act"], parts["after"]
        if act == "write" and joint.has("mark") and self.wishes and self.wishes[-1].kind == "text":
            return self._describe(clause)
        is_given = clause.has("literal", "artifact") or bool(self._literals)
        if act == "rework" and not (is_given or self.kinds & {"text", "research"}):
            return False  # the text is absent: "Translate my contract"
        before = after.match(self._rules["object"])["before"]
        return self._add(clause, _BY_ACT.get(act, act), before, after, act)  # a plugin's own act

    def _add_thing(self, clause: Chunk, parts: Mapping[str, Chunk], joint: Chunk) -> bool:
        """Add the wish for a named thing; return False if its words may mean something else."""
        noun, thing, after = parts["noun"], parts["thing"], parts["after"]
        is_spoken = thing.first["thing"] == "text" and "speech" in _list_kinds(noun)
        kind = "speech" if is_spoken else thing.first["thing"]
        is_made = parts["before"].has("make")
        is_bare = not is_made and (noun.has("definite") or (joint.has("mark") and not noun))
        is_label = "card" in self.kinds and thing.has("fields") and clause.has("literal")
        if is_label or (kind in self.kinds and (is_bare or thing.has("unit"))):
            return self._describe(clause)
        if noun.has("own") and kind not in self.kinds and not clause.has("literal"):
            return False  # it exists already: "Put my rant on a wall"
        if kind == "text" and after.match(self._rules["goes_on"]):
            return False  # unknown words may change its meaning: "a story app"
        return self._add(clause, kind, noun, after)

    def _add(self, clause: Chunk, kind: str, before: Chunk, after: Chunk, act: str = "") -> bool:
        """Add a wish or a missing capability; return False if the wish is ambiguous."""
        rules, absent = self._rules, after.match(self._rules["absent"])["missing"]
        if absent or clause.has("address"):
            self.missing.append(absent.first["missing"] or "web.read")
            return True
        places = ((after, "about"), (before, "unknown"), (after, "unknown"))
        topics = (run.match(rules[rule])["topic"] for run, rule in places)
        topic = self.cut(next(filter(None, topics), Chunk()))
        count = max([1, *map(read_number, before.terms)])
        literals = [*self._literals, *self._list_literals(clause)]
        alike = [wish for wish in self.wishes if wish.kind == kind]
        is_clear = not alike or kind not in {"text", "image", "card", "speech"}
        if kind == "image":
            is_clear |= bool(topic) and all(wish.topic for wish in alike)
        elif kind == "text":
            is_clear |= act == "rework" and clause.has("refer", "definite")
        elif kind in {"card", "speech"}:
            is_clear &= count == 1 and (kind == "card" or len(literals) < 2)
        self._literals = []
        self._note_facts(after)
        self.asks |= kind == "research" and (count > 1 or clause.has("question"))
        is_clear &= not clause.has("each") and len(self.wishes) < MAX_NODES
        self.wishes += [Wish(kind, clause, act, topic, count, literals)] if is_clear else []
        return is_clear


def _list_kinds(run: Chunk) -> set[str]:
    """List the kinds of results that the things and verbs in a run of terms stand for."""
    return {t["thing"] or _BY_ACT.get(t["act"], "") for t in run.terms} - {""}
