"""Closed classes of words of each language that its lexicon does not tell apart.

Each language has one file, `grammars/<code>.toml`, with a key for each attribute of `Grammar` that
it has words of. Words stand in one text with spaces between them and are folded when they are
read; phrases stand in a list and are kept as they are, as they are looked for in objectives as
written.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from .tokens import fold_text


@dataclass(frozen=True, slots=True)
class Grammar:
    """The words by which a phrase is told from a clause.

    Attributes:
        definite: determiners that speak of a thing already there.
        possessive: those that speak of a thing of somebody's.
        finite: verbs without which no statement of the language goes: auxiliaries, modals.
        relative: words that open a clause about the thing before them.
        particles: second parts of verbs, which may stand apart from the first.
        subject: pronouns that can only be a subject.
        impersonal: those of them that stand for a thing, or for nothing: `il pleut`.
        objects: pronouns of who is given something: `me`.
        pronouns: those that stand for a thing as an object.
        enclitics: those that a verb can end in, as one word or after a hyphen.
        article_prefix: the definite article where it is written as one with its noun.
        addressees: those for who is asked.
        wants: verbs by which the first person asks for something.
        now: words for this moment, which make a question one about live data.
        means: prepositions of the way that something is sent by.
        leading: prepositions of where something is brought to.
        turning: prepositions of what something is turned into.
        causatives: verbs that have others do something: `have it framed`.
        styling: verbs that say how something is to be, and not what is done with it.
        conditions: words that open a condition, and no question where none is asked.
        times: words that say how often.
        parts: nouns of what a text consists of.
        listed: nouns that are counted within one text: `five questions`.
        getting: verbs that bring to light what is so, whoever made it.
        fetching: those that bring a thing, which nothing here can.
        moving: verbs that do something to a thing that is there.
        playing: verbs of what is heard and was made by others.
        live: nouns of what is another tomorrow: prices, tickets, the weather.
        held: nouns of what somebody keeps, and nothing here can look into.
        comparing: words that open a comparison.
        comparative: the ending of an adjective that compares.
        soon: words for a day to come.
        converting: verbs that turn one thing into another.
        into: what stands before the other.
        same: words for what was said or made before.
        wishing: auxiliaries of a wish: `would`.
        wishes: verbs of what somebody would like, after those of `wishing`.
        ordering: words that open a clause about what is done before or after.
        earlier: words for a thing to be made before what was asked for.
        topical: words after a noun that make it a work about something.
        needing: verbs of what somebody lacks.
        momentary: words of what is so today, and may be another tomorrow.
        retracting: what takes back that something was asked for.
        saying: verbs after which quoted words are said, and no name.
        ourselves: words for who asks as the one who does something.
        parts_of_card: nouns of what a card consists of, as a clause about them opens.
        voices: nouns of what a recording has of who speaks.
        reasons: words that ask for a reason.
        manner: those that ask in what way, unless one of `measuring` follows.
        measuring: words after those that make them ask for a state or a number: `how long`.
        gerund: the ending of a verb that stands as a noun: `a booking system`.
        addressers: pronouns of who asks, as an object.
        inflections: endings of verbs by which they state and do not ask.
        telling: verbs of what is done by words alone: `invite`.
        giving: verbs that give somebody something: `give the shop a name`.
        placing: prepositions of a part's place on the whole.
        verb_final: auxiliaries that end a clause after its verb; none where verbs do not end it.
        recipients: prepositions of whom a text is for, which is not its subject.
        imagining: verbs of thinking of a thing, as a scene for what is asked for.
        nothing: pronouns for nothing at all.
        emphatic: auxiliaries that stress an imperative.
        further: adjectives before such a pronoun: `a second one`.
        another: pronouns for one more of what was named.
        periods: nouns of time, which come again.
        partitive: prepositions between `each` and what there are several of.
        plural: endings of a noun that stands for many.
        sides: words after a number for the side of a picture that it measures.
        concord: words by which a negation is said again: `no quiero ni dibujos`.
        progressive: endings of a verb that goes on, and is no noun before an object.
    """

    definite: frozenset[str] = frozenset()
    possessive: frozenset[str] = frozenset()
    finite: frozenset[str] = frozenset()
    relative: frozenset[str] = frozenset()
    particles: frozenset[str] = frozenset()
    subject: frozenset[str] = frozenset()
    impersonal: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()
    pronouns: frozenset[str] = frozenset()
    enclitics: frozenset[str] = frozenset()
    article_prefix: str = ""
    addressees: frozenset[str] = frozenset()
    wants: frozenset[str] = frozenset()
    now: tuple[str, ...] = ()
    means: frozenset[str] = frozenset()
    leading: frozenset[str] = frozenset()
    turning: frozenset[str] = frozenset()
    causatives: frozenset[str] = frozenset()
    styling: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    times: Mapping[str, int] = field(default_factory=dict)
    parts: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()
    getting: frozenset[str] = frozenset()
    fetching: frozenset[str] = frozenset()
    moving: frozenset[str] = frozenset()
    playing: frozenset[str] = frozenset()
    live: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    comparing: frozenset[str] = frozenset()
    comparative: tuple[str, ...] = ()
    soon: tuple[str, ...] = ()
    converting: frozenset[str] = frozenset()
    into: frozenset[str] = frozenset()
    same: frozenset[str] = frozenset()
    wishing: frozenset[str] = frozenset()
    wishes: frozenset[str] = frozenset()
    ordering: frozenset[str] = frozenset()
    earlier: frozenset[str] = frozenset()
    topical: frozenset[str] = frozenset()
    needing: frozenset[str] = frozenset()
    momentary: frozenset[str] = frozenset()
    retracting: tuple[str, ...] = ()
    saying: frozenset[str] = frozenset()
    ourselves: tuple[str, ...] = ()
    parts_of_card: tuple[str, ...] = ()
    voices: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    manner: frozenset[str] = frozenset()
    measuring: frozenset[str] = frozenset()
    gerund: tuple[str, ...] = ()
    addressers: frozenset[str] = frozenset()
    inflections: tuple[str, ...] = ()
    telling: frozenset[str] = frozenset()
    giving: frozenset[str] = frozenset()
    placing: frozenset[str] = frozenset()
    verb_final: frozenset[str] = frozenset()
    recipients: frozenset[str] = frozenset()
    imagining: frozenset[str] = frozenset()
    nothing: frozenset[str] = frozenset()
    emphatic: frozenset[str] = frozenset()
    further: frozenset[str] = frozenset()
    another: frozenset[str] = frozenset()
    periods: frozenset[str] = frozenset()
    partitive: frozenset[str] = frozenset()
    plural: tuple[str, ...] = ()
    sides: Mapping[str, str] = field(default_factory=dict)
    concord: frozenset[str] = frozenset()
    progressive: tuple[str, ...] = ()


_NO_GRAMMAR = Grammar()


@cache
def get_grammar(code: str) -> Grammar:
    """Return the closed classes of a language; empty for one that has no file."""
    source = resources.files(__package__) / "grammars" / f"{code}.toml"
    if not source.is_file():
        return _NO_GRAMMAR
    data = tomllib.loads(source.read_text(encoding="utf-8"))
    return Grammar(**{name: _read_class(name, value) for name, value in data.items()})


def _read_class(name: str, value: Any) -> Any:
    """Read a class of words as the type that its attribute has when it is empty."""
    match getattr(_NO_GRAMMAR, name):
        case frozenset():
            return frozenset(fold_text(value).split())
        case tuple():
            return tuple(value)
        case Mapping():
            return {fold_text(word): meaning for word, meaning in value.items()}
        case _:
            return value
