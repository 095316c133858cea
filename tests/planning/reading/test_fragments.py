"""Objectives in pieces: numbered lists, bare nouns, audiences, values, one for each."""

import pytest

from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.planning.reading.objective_reading import Measure
from toolkit.planning.reading.reader import read_objective

NAMES = CapabilityNames(
    fields={"speed": "speed", "theme": "theme", "sources": "max_sources"},
    fields_by_kind={
        "speech": frozenset({"speed"}),
        "card": frozenset({"theme"}),
        "research": frozenset({"max_sources"}),
    },
    numbers=frozenset({"speed", "max_sources"}),
    choices={"theme": frozenset({"forest", "paper"})},
)
TWO_TEXTS = [("text", ()), ("text", ())]


@pytest.mark.parametrize(
    ("objective", "graph"),
    [
        ("1. A haiku about rust\n2. A picture of a gate", [("text", ()), ("image", ())]),
        ("Please make (a) a poem about rain and (b) a card", [("text", ()), ("card", (0,))]),
        (
            "A slogan for tea. A picture of a cup. A card that puts the slogan over the picture.",
            [("text", ()), ("image", ()), ("card", (0, 1))],
        ),
        ("Agenda for our meeting. Headings only.", [("text", ())]),
        ("Tips for runners. Bullets, five of them.", [("text", ())]),
        ("A picture of a fox? portrait", [("image", ())]),
        ("What caused the fire of 1666? A handout for my pupils.", [("text", ())]),
        ("Explain tides to a child, then explain them to a sailor.", TWO_TEXTS),
        ("Imagine a town under the sea. Tell me about it.", [("text", ())]),
        ("I have to write to a neighbour. Please word it kindly.", [("text", ())]),
        ("Our office keeps getting asked about parking. A leaflet text, please.", [("text", ())]),
        ("Every May we hold a fair for old and young. I need an invitation.", [("text", ())]),
        ("A poem about rain and one about snow.", TWO_TEXTS),
        ("A story about a king and one of his servants.", [("text", ())]),
        ("A card with the title “Fair” and a picture of a barn", [("card", (1,)), ("image", ())]),
        ("A poem about bees; it should also be spoken.", [("text", ()), ("speech", (0,))]),
        ("A notice for the pool, and then do read it aloud.", [("text", ()), ("speech", (0,))]),
        ("Cartoon: a dog reading a newspaper", [("image", ())]),
        ("Write a complaint. Then make it more polite.", [("text", ()), ("text", (0,))]),
    ],
)  # fmt: skip
def test_pieces_belong_together(objective: str, graph: list[tuple[str, tuple[int, ...]]]) -> None:
    """A piece asks for something of its own, or says how what was asked for is to be."""
    reading = read_objective(objective, NAMES)
    assert [(request.kind, request.inputs) for request in reading.requests] == graph
    assert not reading.unavailable


@pytest.mark.parametrize(
    ("objective", "values"),
    [
        ("Read “Doors closing” at two speeds: 0.8 and 1.2.", [("speed", 0.8), ("speed", 1.2)]),
        ("Say “Hello” twice: once slowly, once fast.", [("pace", 0.8), ("pace", 1.3)]),
        (
            "A card saying “Open”, in light and forest themes",
            [("theme", "light"), ("theme", "forest")],
        ),
    ],
)  # fmt: skip
def test_each_value_asks_for_one(objective: str, values: list[tuple[str, object]]) -> None:
    """Coordinated values of one property are as many nodes."""
    found = [request.measures for request in read_objective(objective, NAMES).requests]
    assert [(one.name, one.value) for measures in found for one in measures] == values


def test_languages_ask_for_one_each() -> None:
    """Coordinated languages are as many texts; a language that is a topic is none."""
    reading = read_objective("A welcome note in German and in Dutch, 20 words each", NAMES)
    assert [request.language for request in reading.requests] == ["de", "nl"]
    reading = read_objective("A poem about the English and the French", NAMES)
    assert [request.language for request in reading.requests] == [None]


def test_each_is_made_of_its_own() -> None:
    """`each on its own card` makes as many cards, each of one text."""
    reading = read_objective("Three jokes about cats, each on its own card", NAMES)
    inputs = [request.inputs for request in reading.requests if request.kind == "card"]
    assert inputs == [(0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("objective", "measure"),
    [
        ("A blurb for our choir, 80–100 words", Measure("words", 90, "about")),
        ("A poster of a whale, 900 wide and 600 high", Measure("height", 600)),
        ("Tips for runners. Bullets, at most five of them.", Measure("bullets", 5, "at_most")),
        ("Compare trams and buses, at most four sources.", Measure("max_sources", 4, "at_most")),
    ],
)  # fmt: skip
def test_measures_in_other_shapes(objective: str, measure: Measure) -> None:
    """Ranges, sides and counts of a unit before them are measures."""
    (request,) = read_objective(objective, NAMES).requests
    assert measure in request.measures


def test_a_decade_is_no_length() -> None:
    """The `s` after a year makes a decade of it, and no seconds."""
    (request,) = read_objective("A text about fashion in the 1980s", NAMES).requests
    assert not request.measures


def test_running_text_after_a_colon_goes_to_its_end() -> None:
    """What is read after a colon has commas, where a title would end at one."""
    (request,) = read_objective("An audio with the words: Dear Tom, thank you!", NAMES).requests
    assert request.literal == "Dear Tom, thank you!"
