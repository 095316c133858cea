"""Objectives in languages other than English: what each of them asks for, and what it does not."""

import pytest

from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.planning.reading.reader import read_objective
from toolkit.planning.reading.words.lexicon import CODES, load_lexicon


@pytest.mark.parametrize(
    ("objective", "kinds"),
    [
        ("Agradecería que redactaran una reclamación sobre el ruido", ["text"]),
        ("Me vendría de perlas un dibujo de un faro", ["image"]),
        ("Je souhaiterais que l'on m'écrive un poème sur la mer", ["text"]),
        ("Auriez-vous l'amabilité de dessiner un chat ?", ["image"]),
        ("Vorrei che mi scriveste una lettera alle api", ["text"]),
        ("Bisognerebbe che qualcuno disegnasse un istrice", ["image"]),
        ("Agradecia que me desenhassem um galo", ["image"]),
        ("Ich hätte gern, dass ein Plakattext über Bienen verfasst wird", ["text"]),
        ("Bitte einen Igel zeichnen", ["image"]),
        ("Könntest du mir einen Igel zeichnen?", ["image"]),
        ("نود لو ترسم لنا قطة", ["image"]),
        ("Une image d'un phare", ["image"]),
        ("No quiero ni dibujos ni voces. Lo que quiero es un poema sobre el mar", ["text"]),
        ("Un visuel sur la mer, avec une illustration et un texte", ["card", "image", "text"]),
    ],
)
def test_wishes_are_requests(objective: str, kinds: list[str]) -> None:
    """What a formal sentence wishes for is what it asks for."""
    assert [one.kind for one in read_objective(objective, CapabilityNames()).requests] == kinds


@pytest.mark.parametrize(
    "objective",
    [
        "Escribe la letra de un bolero. La música ya la pongo yo.",
        "Schreib einen Text zur Kreuzotter. Die Folien drucke ich selbst aus.",
        "Escribe el anuncio. Lo publicaré yo en Instagram.",
    ],
)
def test_own_acts_are_not_asked_for(objective: str) -> None:
    """What somebody says to do himself lacks nothing."""
    assert not read_objective(objective, CapabilityNames()).unavailable


@pytest.mark.parametrize(
    ("objective", "topic"),
    [
        ("Schlag nach, woher „Eulen nach Athen tragen“ kommt.", "Eulen nach Athen"),
        ("Perché si dice «in bocca al lupo»? Verifica su fonti attendibili.", "bocca al lupo"),
        ("ابحث عن أصل كلمة «قهوة» ولخص ذلك في جملتين", "قهوة"),
    ],
)
def test_quoted_words_name_what_is_looked_up(objective: str, topic: str) -> None:
    """Quoted words are part of what is looked up, and where to look is not."""
    assert topic in read_objective(objective, CapabilityNames()).requests[0].topic


@pytest.mark.parametrize("code", CODES)
def test_every_language_asks_in_its_own_words(code: str) -> None:
    """Each lexicon has the sentences that are asked back."""
    questions = load_lexicon(code).questions
    assert set(questions) == {"what", "form", "subject"}
    assert "{phrase}" in questions["subject"]
    assert code == "en" or questions["what"] != load_lexicon("en").questions["what"]
