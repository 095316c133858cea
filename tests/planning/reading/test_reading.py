"""Objectives and what is read from them, pass by pass."""

import pytest

from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.planning.reading.objective_reading import Measure, ObjectiveReading
from toolkit.planning.reading.reader import read_objective

NAMES = CapabilityNames(
    fields={"seed": "seed", "steps": "steps", "negative prompt": "negative_prompt"},
    fields_by_kind={"image": frozenset({"seed", "steps", "negative_prompt"})},
    numbers=frozenset({"seed", "steps"}),
)
ARTIFACT = "art_01k6x10y6p52xn9zz1fyw2w77y"


def read(objective: str) -> ObjectiveReading:
    """Read an objective for capabilities that name some fields of a picture."""
    return read_objective(objective, NAMES)


@pytest.mark.parametrize(
    ("objective", "graph"),
    [
        ("A limerick about foghorns", [("text", ())]),
        ("Draw a fox in the snow.", [("image", ())]),
        ("Look up Ada Lovelace, then write 50 words.", [("research", ()), ("text", (0,))]),
        ("Write a story and read it aloud.", [("text", ()), ("speech", (0,))]),
        ("A poem about the moon, spoken", [("text", ()), ("speech", (0,))]),
        ("A card about bees with a picture of a hive", [("card", (1,)), ("image", ())]),
        ("Write a poem and translate it into French.", [("text", ()), ("text", (0,))]),
        ("Write a poem. I want a French version of it too.", [("text", ()), ("text", (0,))]),
        ("What is a quasar? Sum it up in two sentences.", [("text", ())]),
        ("An image of a cat and an image of a dog", [("image", ()), ("image", ())]),
        ("Write a poem about a photo of my grandmother.", [("text", ())]),
        ("A story about a lost letter", [("text", ())]),
        ("Don't leave out the picture: a card about the quay.", [("image", ()), ("card", (0,))]),
        (f"Clone the voice in {ARTIFACT} and say “Hi” with it.", [("clone", ()), ("speech", (0,))]),
        ("Poster: a heron", [("image", ())]),
    ],
)  # fmt: skip
def test_requests_and_their_inputs(
    objective: str, graph: list[tuple[str, tuple[int, ...]]]
) -> None:
    """Acts and things make requests, and joins tie them together."""
    reading = read(objective)
    assert [(request.kind, request.inputs) for request in reading.requests] == graph
    assert not reading.unavailable


@pytest.mark.parametrize(
    ("objective", "capability"),
    [
        ("Write a short note and email it to Anna.", "email.send"),
        ("Make a video of a kitten chasing a ball.", "video.generate"),
        ("Book me a table for four on Friday.", "booking.make"),
        (f"Transcribe {ARTIFACT}.", "speech.transcribe"),
        (f"Crop {ARTIFACT} to a square.", "image.edit"),
        (f"Who can be seen in {ARTIFACT}?", "image.describe"),
        ("What's the temperature in Bergen right now?", "data.live"),
        ("Summarise https://example.org/report.html in three sentences.", "file.read"),
        ("A song about the sea", "music.generate"),
        ("Turn the essay on bees into a PDF.", "document.generate"),
    ],
)
def test_what_nothing_here_does_is_said(objective: str, capability: str) -> None:
    """What nobody offers is reported, and not answered by something else."""
    assert [one.capability for one in read(objective).unavailable] == [capability]


@pytest.mark.parametrize(
    "objective",
    [
        "Write an email to my landlord about the leaking tap.",
        "Explain how a website works.",
        "Write a slogan for a video rental store.",
        "A limerick about a man who could not send a letter",
        "Write a script for a two-minute video about recycling.",
        "Draft the agenda for our team meeting; I'll put it in the calendar myself.",
    ],
)
def test_what_is_only_mentioned_is_not_missed(objective: str) -> None:
    """A topic may name what nobody offers."""
    reading = read(objective)
    assert [request.kind for request in reading.requests] == ["text"]
    assert not reading.unavailable


@pytest.mark.parametrize(
    ("objective", "measures"),
    [
        ("A poem of at most 50 words", [Measure("words", 50, "at_most")]),
        ("Summarise the news of 1969 in two sentences.", [Measure("sentences", 2)]),
        ("A picture of a red door, 768 by 512", [Measure("width", 768), Measure("height", 512)]),
        ("A 512-pixel icon of a cone", [Measure("width", 512), Measure("height", 512)]),
        ("A picture of a lake, seed 7, 30 steps", [Measure("seed", 7), Measure("steps", 30)]),
        ("A card about tea, dark theme", [Measure("theme", "dark")]),
    ],
)
def test_measures_go_to_what_they_fit(objective: str, measures: list[Measure]) -> None:
    """Measures belong to the request that they are of."""
    assert list(read(objective).requests[0].measures) == measures


@pytest.mark.parametrize(
    ("objective", "topics"),
    [
        ("Three images of houses: gothic, thatched, glazed", ["gothic", "thatched", "glazed"]),
        ("Write a haiku for each of Oslo, Rome and Bern.", ["Oslo", "Rome", "Bern"]),
        ("Two icons, one of a sun and one of a moon", ["sun", "moon"]),
        ("Three pictures of a mountain lake", ["lake", "lake", "lake"]),
    ],
)
def test_counts_are_spelled_out(objective: str, topics: list[str]) -> None:
    """One request is made for each of what is counted or listed."""
    requests = read(objective).requests
    assert len(requests) == len(topics)
    assert all(topic in one.topic for topic, one in zip(topics, requests, strict=True))


@pytest.mark.parametrize("objective", ["", "???!!", "hmm", "Hello!", "the usual, please"])
def test_what_says_nothing_is_asked_back(objective: str) -> None:
    """A person is asked where nothing is understood."""
    reading = read(objective)
    assert reading.question is not None
    assert not reading.requests


def test_a_strangers_capability_is_asked_for_by_its_phrase() -> None:
    """A capability that makes what is usually unavailable is asked for by its id."""
    names = CapabilityNames(
        phrases={"bird song": "birds.record"}, kinds=frozenset({"birds.record", "video.generate"})
    )
    reading = read_objective("Make a bird song and a video of a wren", names)
    assert [one.kind for one in reading.requests] == ["birds.record", "video.generate"]
    assert not reading.unavailable
