"""The simulated model's prose: it keeps to the topic, the form and the length that are asked."""

import pytest

from toolkit.sandbox.text import prompts, prose
from toolkit.sandbox.text.chat import ChatTurn, generate_reply
from toolkit.sandbox.text.library import load_articles

TIDAL = next(article.extract for article in load_articles() if article.title == "Tidal power")


def write(prompt: str, system: str = "") -> str:
    """Return the answer of the simulated model."""
    return prose.write_text(prompts.parse_prompt(system, prompt))


@pytest.mark.parametrize("number", [5, 8, 12, 15, 20, 25, 33, 40, 60, 100, 150, 400])
@pytest.mark.parametrize("topic", ["tidal power", "honey bees", "quantum knitting"])
def test_writes_about_as_many_words_as_asked(number: int, topic: str) -> None:
    """A number of words is met within a fifth, whatever the topic."""
    for prompt in (f"A {number}-word teaser about {topic}", f"Explain {topic} in {number} words."):
        text = write(prompt)
        assert len(text.split()) == pytest.approx(number, rel=0.2), text
        assert text[-1] in ".!?"


@pytest.mark.parametrize(
    ("prompt", "topic"),
    [
        ("A 20-word teaser about tidal power", "tidal power"),
        ("Objective: a line about coral reefs", "coral reefs"),
        ("Explain in two sentences how photosynthesis works", "photosynthesis"),
        ("In 12 words: tea", "tea"),
        ("Write an article of 3 paragraphs about urban planning for students", "urban planning"),
        (f"Summarise the following text.\n\n{TIDAL}", "tidal power"),
    ],
)
def test_topic_is_found(prompt: str, topic: str) -> None:
    """The topic is read from many wordings."""
    assert prompts.parse_prompt("", prompt).topic.lower() == topic


def test_forms() -> None:
    """Bullets, titles, lines, sentences and paragraphs come as asked."""
    bullets = write("Give 4 bullet points on the Silk Road").splitlines()
    assert len(bullets) == 4
    assert all(line.startswith("- ") for line in bullets)
    headline = write("A headline for an article about wind power")
    assert headline.lower().startswith("wind power")
    assert len(headline.split()) <= 14
    assert "\n" not in write("One line about glaciers")
    assert write("Explain chess in two sentences").count(".") == 2
    assert write("Write 3 paragraphs about chess").count("\n\n") == 2


def test_summary_is_drawn_from_the_text_given() -> None:
    """A summary uses sentences of the text it is given, headings left out."""
    text = write(f"Summarise the text below in 3 sentences.\n\n{TIDAL}")
    plain = " ".join(TIDAL.split())
    assert "==" not in text
    assert all(part.strip(" .") in plain for part in text.split(". "))


def test_objective_is_not_echoed() -> None:
    """An objective without a verb is an instruction and no part of the text to work from."""
    text = write(f"One line on tidal power for a card\n\n<notes>\n{TIDAL}\n</notes>")
    assert "for a card" not in text
    assert text in " ".join(TIDAL.split())


def test_system_prompt_sets_the_form() -> None:
    """The system's words count for the form where the user's say nothing."""
    text = write("Tidal power", "You write editorial copy. Answer in 25 words.")
    assert len(text.split()) == pytest.approx(25, rel=0.2)


def test_a_limit_is_no_length() -> None:
    """At most so many words means whole sentences and no padding."""
    block = f"<material-0123456789ab>\n{TIDAL}\n</material-0123456789ab>"
    text = write(f"Summarise the material on tidal power in at most 60 words.\n\n{block}")
    assert 20 < len(text.split()) <= 60
    assert "tidal" in text.lower()
    assert "material" not in text
    assert all(part.strip(" .") in " ".join(TIDAL.split()) for part in text.split(". "))


def test_unknown_topic_claims_no_facts() -> None:
    """A topic the library does not know is named, and nothing is invented about it."""
    text = write("Write a short text about quantum knitting")
    assert "quantum knitting" in text.lower()
    assert not any(character.isdigit() for character in text)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("unit", ["'a", "a-", "a@", "1,", "translate ", "table comparing a and "])
def test_a_long_odd_prompt_is_answered_soon(unit: str) -> None:
    """Given a prompt of 100,000 characters that many patterns begin to match, then it is read."""
    text = unit * (100_000 // len(unit))

    assert generate_reply([ChatTurn("user", text)]).text
