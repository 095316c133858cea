"""Acts by the construction that asks for them, and requests in fragments."""

import pytest

from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.planning.reading.objective_reading import ObjectiveReading
from toolkit.planning.reading.reader import read_objective


def read(objective: str, *without: str) -> ObjectiveReading:
    """Read an objective without any capability of a stranger."""
    return read_objective(objective, CapabilityNames(), without=frozenset(without))


@pytest.mark.parametrize(
    ("objective", "lacking"),
    [
        ("Drop Lena a line saying the rehearsal is off.", "email.send"),
        ("I want the newsletter in all members' inboxes by Friday.", "email.send"),
        ("Tell my sister I'm running late.", "email.send"),
        ("Give the plumber a ring.", "phone.call"),
        ("Stick a dentist appointment in my diary for Tuesday.", "calendar.schedule"),
        ("Grab a table for four at Luigi's tonight.", "booking.make"),
        ("Turn the heating down to 18 degrees.", "task.perform"),
        ("Have flowers delivered to my mum on Sunday.", "task.perform"),
        ("Write a note and leave it on the doorstep.", "task.perform"),
        ("Is the library open on Sunday?", "data.live"),
        ("When does the post office close today?", "data.live"),
        ("Summarise report_q3.pdf in five lines.", "file.read"),
        ("The price list as a PDF, A4.", "document.generate"),
        ("I'd like the sound of a kettle whistling.", "music.generate"),
    ],
)
def test_an_act_is_told_by_its_frame(objective: str, lacking: str) -> None:
    """Acts that nothing here does are missing, however they are worded."""
    assert lacking in [one.capability for one in read(objective).unavailable]


@pytest.mark.parametrize(
    "objective",
    [
        "Write a text message to Lena; I'll send it from my phone.",
        "Read aloud: 'Please send the keys to reception.'",
        "Ask the council for a bench, in a letter of 100 words.",
        "Invite the parents to the school fair; only the wording, in two sentences.",
        "A story about a girl who writes letters, spoken",
        "Pay-what-you-can notice for the theatre door",
        "Release notes: PDF export added, login faster",
        "Why does the weather in Scotland change so quickly?",
        "Put them on a card: 'Mind the step'",
        "Play the part of a ferry captain and write a safety announcement.",
    ],
)
def test_words_that_only_sound_like_an_act_ask_for_a_text(objective: str) -> None:
    """Acts of others, parts of nouns and contents of a text block nothing."""
    reading = read(objective)

    assert not reading.unavailable
    assert reading.requests


@pytest.mark.parametrize(
    ("objective", "kind"),
    [
        ("no hurry, but a limerick about a llama would be grand", "text"),
        ("a lighthouse at dusk, oil painting", "image"),
        ("It is pouring here, so cheer me up with a limerick.", "text"),
        ("For every planet a picture in the style of a railway poster", "image"),
        ("Two things: a riddle about a key and a picture of one.", "text"),
        ("Could the computer read this out: 'The shop closes in ten minutes.'", "speech"),
    ],
)
def test_a_fragment_that_names_a_work_asks_for_it(objective: str, kind: str) -> None:
    """A work that is named in passing is asked for."""
    assert kind in [one.kind for one in read(objective).requests]


@pytest.mark.parametrize("objective", ["Can you help me with my project?", "Surprise me!"])
def test_what_asks_for_nothing_is_asked_back(objective: str) -> None:
    """Set phrases alone are no request."""
    reading = read(objective)

    assert not reading.requests
    assert reading.question is not None or reading.unavailable


def test_a_pass_that_is_left_out_finds_nothing() -> None:
    """The benchmark can tell what each pass brings."""
    assert not read("Drop Lena a line saying the rehearsal is off.", "frames").unavailable
    assert not read("a lighthouse at dusk, oil painting", "fragments").requests
