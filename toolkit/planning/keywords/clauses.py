"""The clauses of an objective, and the wishes that they state.

A clause is understood if it begins with a known act or thing, rules something out, or describes the
wishes. One clause that is not understood makes the planner ask about the whole objective.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.planning.keywords.grammar import GRAMMARS, Run
from toolkit.planning.keywords.words import Term, load_vocabulary, read_number, read_terms
from toolkit.planning.plan_validator import MAX_NODES

MEDIA = frozenset({"image", "speech", "card", "clone"})
_BY_ACT = {
    "write": "text", "rework": "text", "draw": "image", "speak": "speech", "research": "research",
    "lay_out": "card", "clone": "clone",
}  # fmt: skip
_IMAGE_FIELDS = frozenset({"seed", "steps", "negative_prompt"})
_NOTHING = Run(())


@dataclass
class Wish:
    """A result that an objective asks for.

    Attributes:
        kind: `text`, `image`, `speech`, `card`, `research`, `clone`, or the id of a capability.
        clause: the terms that ask for it.
        act: the act that makes it, such as `rework`; empty if only the thing is named.
        topic: the words of its topic.
        count: the number of results.
        literals: the quoted words of its clause, each with the field that it fills.
    """

    kind: str
    clause: Run
    act: str = ""
    topic: str = ""
    count: int = 1
    literals: list[tuple[str, str]] = field(default_factory=list)
    lists: bool = False

    @property
    def artifacts(self) -> list[str]:
        """The ids of the artifacts of its clause."""
        return [term.text for term in self.clause.terms if "artifact" in term.meanings]

    @property
    def reworks(self) -> bool:
        """True if it works on an earlier wish."""
        return self.act == "rework" and self.clause.has("refer", "definite")


class Reading:
    """The contents of an objective.

    Attributes:
        text, language, terms: the objective, the code of its language, and all terms.
        joint: the word that joins a wish to the main wish.
        wishes: the results that it asks for.
        missing: the names of capabilities that nothing here has.
        banned: the kinds that it rules out.
        unplaced: the places of clauses that were not understood.
        details: the places of clauses that describe the wishes.
        unwanted: the words that a picture must not show.
        questions: the number of its questions, such as "Who invented the crossword?".
        is_answerable: whether a question can be answered without facts.
        needs_facts: whether facts are to be used.
        mentions_text: whether a clause describes a text.
    """

    def __init__(self, text: str, keywords: Mapping[str, str] | None = None) -> None:
        language = load_vocabulary(text, keywords)
        self.text = text
        self.language = language.code
        self.joint = language.grammar.get("for", "for")
        self.terms = Run(read_terms(text, language))
        self.wishes: list[Wish] = []
        self.missing: list[str] = []
        self.banned: set[str] = set()
        self.unplaced: list[tuple[int, int]] = []
        self.details: list[tuple[int, int]] = []
        self.unwanted: list[str] = []
        self.questions = 0
        self.is_answerable = self.needs_facts = self.mentions_text = False
        self._literals: list[tuple[str, str]] = []
        self._order = language.grammar.get("order", "last")
        self._rules = GRAMMARS[self._order]
        self._read()

    @property
    def asks(self) -> bool:
        """True if a text answers a question, or is described."""
        found = (wish for wish in self.wishes if wish.kind == "research")
        is_text = any(wish.count > 1 or wish.clause.has("question") for wish in found)
        return bool(self.questions) or self.mentions_text or is_text

    @property
    def kinds(self) -> set[str]:
        """The kinds of its wishes."""
        return {wish.kind for wish in self.wishes}

    def cut(self, run: Run) -> str:
        """Return the words of a run."""
        start, end = run.span if run else (0, 0)
        return self.text[start:end]

    def _read(self) -> None:
        rules, terms = self._rules, self.terms
        if not terms.has("literal") and (parts := terms.match(rules["given"])):
            start, end = parts["given"].span
            given = Term(self.text[start:end], start, end, {"literal": ""})
            terms = Run([*parts["before"].terms, given])
        for parts in terms.find_all(rules["sentence"]):
            for joint, clause in self._split(parts["sentence"]):
                if len(self.wishes) > MAX_NODES:  # so many are planned by nobody
                    self.unplaced.append((clause.span[0], len(self.text)))
                    return
                if not self._place(clause, joint):
                    self.unplaced.append(clause.span)
        if not self.wishes and any(t["fields"] in _IMAGE_FIELDS for t in terms.terms):
            self.wishes.append(Wish("image", terms, topic=self.text))
        self._check_mentions(terms)

    def _split(self, sentence: Run) -> Iterator[tuple[Run, Run]]:
        """Split a sentence where a further act or thing begins, unless it is a question."""
        if parts := sentence.match(self._rules["unwanted"]):
            self.unwanted.append(self.cut(parts["after"]).strip(" :."))
            sentence = parts["before"]
        if sentence.match(self._rules["question"]) is not None:
            yield _NOTHING, sentence
        else:
            yield from sentence.split(self._rules["joint"], "joint")

    def _check_mentions(self, terms: Run) -> None:
        """Note the kinds that are mentioned, but that no wish makes."""
        kinds = self.kinds | self.banned
        kinds |= {"speech"} if "clone" in kinds else set()
        is_topic, starts = False, True
        for term in terms.terms:
            meanings = term.meanings
            is_act = starts or term["act"] in {"draw", "speak"}
            kind = term["thing"] or (_BY_ACT.get(term["act"], "") if is_act else "")
            if kind in MEDIA - kinds and (starts or not is_topic):
                self.unplaced.append((term.start, term.end))
            starts = not meanings.keys().isdisjoint(("mark", "polite", "and", "then"))
            if "onto" in meanings or "about" in meanings:
                is_topic = self._order != "first" and "onto" not in meanings

    def _place(self, clause: Run, joint: Run) -> bool:
        """Place a clause; return False if it was not understood."""
        rules = self._rules
        if clause.match(rules["nothing"]) is not None:
            return True
        if clause.has("voice") and clause.has("artifact"):
            return self._add_voice(clause)
        if parts := clause.match(rules["question"]):
            return self._add_question(clause, parts["ask"].terms[0])
        if parts := clause.match(rules["denial"]):
            return self._rule_out(parts["after"])
        parts = clause.match(rules["opening"]) or {}
        if "self" in parts:
            self.details.append(clause.span)
        elif "not" in parts:
            self._rule_out(parts["after"])
        elif "missing" in parts:
            self.missing.append(parts["missing"].terms[0]["missing"])
        elif "act" in parts:
            return self._add_act(clause, parts, joint)
        elif "thing" in parts:
            return self._label_card(clause, parts) or self._add_thing(clause, parts, joint)
        elif clause.has("address", "artifact") or (
            joint and clause.match(rules["order"]) is not None
        ):
            return False
        else:
            return self._add_detail(clause)
        return True

    def _label_card(self, clause: Run, parts: Mapping[str, Run]) -> bool:
        """Give a card the quoted text of a field: "title: “Sold out”"."""
        cards = [wish for wish in self.wishes if wish.kind == "card"]
        if not cards or not parts["thing"].has("fields") or not clause.has("literal"):
            return False
        cards[-1].literals += _list_literals(clause)
        return True

    def _add_question(self, clause: Run, ask: Term) -> bool:
        if clause.has("missing") and not any(t["act"] == "research" for t in self.terms.terms):
            return False
        self.questions += 1
        self._note_facts(clause)
        is_given = clause.has("literal") or bool(self._literals) or ask["ask"] == "open"
        self.is_answerable |= is_given
        return True

    def _rule_out(self, after: Run) -> bool:
        """Ban the kinds that a clause rules out, or note the words that a picture must not show."""
        noted = (after.match(self._rules["noted"]) or {}).get("noted", _NOTHING)
        acts = ("draw", "speak", "research")
        banned = {
            t["thing"] or _BY_ACT[t["act"]] for t in noted.terms if t["thing"] or t["act"] in acts
        }
        self.banned |= banned
        if not banned and after.match(self._rules["unknown"]):
            self.unwanted.append(self.cut(after))
        return True

    def _add_detail(self, clause: Run) -> bool:
        """Add a clause that describes the wishes; return False if it may be an order."""
        return clause.match(self._rules["detail"]) is not None and self._describe(clause)

    def _describe(self, clause: Run) -> bool:
        if clause.has("each", "missing"):
            return False
        self.mentions_text |= any(t["thing"] == "text" for t in clause.terms)
        self.details.append(clause.span)
        self._note_facts(clause)
        literals = self.wishes[-1].literals if self.wishes else self._literals
        literals += _list_literals(clause)
        return True

    def _note_facts(self, run: Run) -> None:
        if any("research" in (t["thing"], t["act"]) for t in run.terms):
            self.needs_facts = True

    def _add_voice(self, clause: Run) -> bool:
        """Add the cloning of a voice, and the speech that the clause asks of it."""
        kinds = {t["thing"] or _BY_ACT.get(t["act"], "") for t in clause.terms}
        voice, literals = Wish("clone", clause), _list_literals(clause)
        if len(voice.artifacts) > 1 or "clone" not in kinds:
            return False
        self.wishes.append(voice)
        if any(t["act"] == "speak" and "voice" not in t.meanings for t in clause.terms):
            self.wishes.append(Wish("speech", clause, "speak", literals=literals))
        elif literals:
            voice.topic = literals[0][0]
        return True

    def _add_act(self, clause: Run, parts: Mapping[str, Run], joint: Run) -> bool:
        act, after = parts["act"].terms[0]["act"], parts["after"]
        found = after.match(self._rules["object"]) or {}
        kind, head = _BY_ACT.get(act, act), found.get("head", _NOTHING)  # a plugin names its act
        if act == "write" and any(t["thing"] in {"speech", "research"} for t in head.terms):
            kind = head.terms[0]["thing"]
        if act == "write" and joint.has("mark") and self.wishes and self.wishes[-1].kind == "text":
            return self._describe(clause)
        is_given = clause.has("literal", "artifact") or bool(self._literals)
        if act == "rework" and not (is_given or self.kinds & {"text", "research"}):
            return False  # the text is absent: "Translate my contract"
        return self._add(clause, kind, found.get("before", _NOTHING), after, act)

    def _add_thing(self, clause: Run, parts: Mapping[str, Run], joint: Run) -> bool:
        """Add a thing that is named, unless its words may mean something else."""
        noun, after = parts["noun"], parts["after"]
        kind = parts["thing"].terms[0]["thing"]
        is_made = parts["before"].has("make")
        is_present = kind in self.kinds
        if noun.has("own") and not is_present and not clause.has("literal"):
            return False  # it exists already: "Put my rant on a wall"
        is_described = joint.has("mark") and not (noun or is_made)
        if is_present and (is_described or parts["thing"].has("unit")):
            return self._describe(clause)
        if self._order == "verb":
            return self._add(clause, kind, noun, after)
        if noun.has("definite") and not is_made:
            return self._add_detail(clause)
        if kind == "text" and any(
            t["act"] == "speak" or t["thing"] == "speech" for t in noun.terms
        ):
            kind = "speech"
        if kind == "text" and after.match(self._rules["goes_on"]) is not None:
            return False  # unknown words may change its meaning: "a story app"
        return self._add(clause, kind, noun, after)

    def _add(self, clause: Run, kind: str, before: Run, after: Run, act: str = "") -> bool:
        absent = after.match(self._rules["absent"])
        if absent or clause.has("address"):
            self.missing.append(absent["missing"].terms[0]["missing"] if absent else "web.read")
            return True
        topics = (
            after.match(self._rules["about"]),
            before.match(self._rules["unknown"]),
            after.match(self._rules["unknown"]),
        )
        topic = next((parts["topic"] for parts in topics if parts), _NOTHING)
        wish = Wish(
            kind, clause, act, self.cut(topic), max([1, *map(read_number, before.terms)]),
            [*self._literals, *_list_literals(clause)],
            kind != "image" and after.match(self._rules["lists"]) is not None,
        )  # fmt: skip
        self._literals = []
        if act != "research":
            self._note_facts(after)
        self.wishes.append(wish)
        return True


def _list_literals(run: Run) -> list[tuple[str, str]]:
    """List the quoted words of a run, each with the field that is named before it."""
    literals, label = [], ""
    for term in run.terms:
        if "literal" in term.meanings:
            literals.append((term.text, label))
            label = ""
        elif not term.meanings.keys() & {"mark", "function"}:
            label = term["fields"] or label
    return literals
