"""What an objective was read as; the reader makes it, and the planner plans by it."""

from dataclasses import dataclass
from typing import Literal

Bound = Literal["exactly", "about", "at_most", "at_least"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A property that the objective gives what it asks for, such as 50 words or 3:4.

    Attributes:
        name: of the unit or property: `words`, `characters`, `sentences`, `paragraphs`, `lines`,
            `bullets`, `seconds`, `minutes`, `width`, `height` (pixels), `pace`, `theme`, `shape`,
            `format`; or a field of a capability's input that the objective names (`seed`, `steps`).
        value: a number, or the value of a property (`dark`, `square`).
        bound: how closely a number is meant.
    """

    name: str
    value: float | str
    bound: Bound = "exactly"


@dataclass(frozen=True, slots=True)
class RequestedOutput:
    """Something that the objective asks for.

    Attributes:
        kind: `text`, `image`, `speech`, `card`, `research` or `clone`; or the id of a capability
            that is none of those, one that is here or one that nothing here has.
        phrase: its name as the objective has it; empty where it is only implied.
        start, end: where that stands in the objective, in characters.
        act: what is done to make it where a verb says so: `translate`, `summarize`, `speak`, …
        form: which form it has, as the objective calls it: `haiku`, `logo`.
        topic: what it is about, in its own words or those of its neighbours.
        wording: the part of the objective that it serves, to be handed to who makes it.
        measures: what the objective says of its length, size, pace or style.
        language: the code of the language that it is to be in, where the objective names one.
        literal: words that are to be used as they are, as what is spoken, shown or worked on.
        literal_is_title: whether they are its title.
        inputs: the indexes, in the list of requests, of those that it is made from.
        is_delivered: whether it is asked for by itself, and not only as a part of another.
        needs_facts: whether facts or sources are asked for.
        is_creative: whether facts cannot stand in for it, as for a poem.
        artifact_ids: artifacts there already that it is made from.
    """

    kind: str
    phrase: str = ""
    start: int = 0
    end: int = 0
    act: str | None = None
    form: str = ""
    topic: str = ""
    wording: str = ""
    measures: tuple[Measure, ...] = ()
    language: str | None = None
    literal: str | None = None
    literal_is_title: bool = False
    inputs: tuple[int, ...] = ()
    is_delivered: bool = True
    needs_facts: bool = False
    is_creative: bool = False
    artifact_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnavailableAct:
    """Something that the objective asks for and that is no kind of output known here.

    Attributes:
        capability: what a capability for it would be called: `email.send`.
        phrase: how the objective asks for it.
    """

    capability: str
    phrase: str


@dataclass(frozen=True, slots=True)
class ObjectiveReading:
    """An objective as it was understood.

    Attributes:
        language: the code of the language that it is written in.
        requests: what it asks for, in the order of the words; counts and `for each` spelled out.
        topic: what all of it is about.
        banned: the kinds that it says not to make.
        unavailable: what it asks for that nothing here could do.
        question: what a person has to be asked, as it does not say what is wanted.
        understood: the share of its words that was understood, from 0 to 1.
        unknown_words: those that were not.
    """

    language: str
    requests: tuple[RequestedOutput, ...] = ()
    topic: str = ""
    banned: frozenset[str] = frozenset()
    unavailable: tuple[UnavailableAct, ...] = ()
    question: str | None = None
    understood: float = 1.0
    unknown_words: tuple[str, ...] = ()
