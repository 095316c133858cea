"""The simulated model's prose has the requested topic, form and length."""

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
def test_writes_the_requested_number_of_words(number: int, topic: str) -> None:
    """Given a number of words, then the text has this many within a fifth."""
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
def test_finds_the_topic(prompt: str, topic: str) -> None:
    """Given any wording, then the topic is found."""
    assert prompts.parse_prompt("", prompt).topic.lower() == topic


def test_writes_the_requested_form() -> None:
    """Given bullets, a title, a line, sentences or paragraphs, then the text has this form."""
    bullets = write("Give 4 bullet points on the Silk Road").splitlines()
    assert len(bullets) == 4
    assert all(line.startswith("- ") for line in bullets)
    headline = write("A headline for an article about wind power")
    assert headline.lower().startswith("wind power")
    assert len(headline.split()) <= 14
    assert "\n" not in write("One line about glaciers")
    assert write("Explain chess in two sentences").count(".") == 2
    assert write("Write 3 paragraphs about chess").count("\n\n") == 2


def test_summary_uses_sentences_of_the_text() -> None:
    """Given a text, then its summary has whole sentences of it, without headings."""
    text = write(f"Summarise the text below in 3 sentences.\n\n{TIDAL}")
    plain = " ".join(TIDAL.split())
    assert "==" not in text
    assert all(part.strip(" .") in plain for part in text.split(". "))


def test_objective_is_not_echoed() -> None:
    """Given an objective without a verb, then it is an instruction and no material."""
    text = write(f"One line on tidal power for a card\n\n<notes>\n{TIDAL}\n</notes>")
    assert "for a card" not in text
    assert text in " ".join(TIDAL.split())


def test_system_prompt_sets_the_form() -> None:
    """Given a form in the system prompt alone, then the text has this form."""
    text = write("Tidal power", "You write editorial copy. Answer in 25 words.")
    assert len(text.split()) == pytest.approx(25, rel=0.2)


def test_limit_is_no_length() -> None:
    """Given a limit on the words, then the text has whole sentences without padding."""
    block = f"<material-0123456789ab>\n{TIDAL}\n</material-0123456789ab>"
    text = write(f"Summarise the material on tidal power in at most 60 words.\n\n{block}")
    assert 20 < len(text.split()) <= 60
    assert "tidal" in text.lower()
    assert "material" not in text
    assert all(part.strip(" .") in " ".join(TIDAL.split()) for part in text.split(". "))


def test_unknown_topic_claims_no_facts() -> None:
    """Given an unknown topic, then the text names it without invented facts."""
    text = write("Write a short text about quantum knitting")
    assert "quantum knitting" in text.lower()
    assert not any(character.isdigit() for character in text)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("unit", ["'a", "a-", "a@", "1,", "translate ", "table comparing a and "])
def test_answers_a_long_unusual_prompt_soon(unit: str) -> None:
    """Given 100,000 characters that many patterns begin to match, then the answer comes."""
    text = unit * (100_000 // len(unit))

    assert generate_reply([ChatTurn("user", text)]).text
