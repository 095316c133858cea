"""The language that an objective is in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.planning.reading.words.language import detect_language
from toolkit.planning.reading.words.lexicon import CODES

LANGUAGES = {
    "A haiku": "en", "logo of a fox": "en", "Write an ad with the line «Le goût de la mer»": "en",
    "Haiku über Herbst": "de", "Bild eines Hundes": "de",
    "Poème sur la mer": "fr", "ecris un poeme sur la mer": "fr",
    "Poema sobre el mar": "es", "crea una imagen de un gato": "es",
    "Poesia sul mare": "it", "crea un'immagine di un gatto": "it",
    "Poema sobre o mar": "pt", "imagem de um gato": "pt",
    "海についての俳句": "ja", "“Hello my dear old friend”を翻訳して": "ja",
    "写一首关于海的诗": "zh", "用MP3格式朗读": "zh",
    "قصيدة عن البحر": "ar", "اقرأ art_01k9xgnw5nk51jvezpp0wqx694": "ar",
}  # fmt: skip


@pytest.mark.parametrize("objective", LANGUAGES)
def test_a_language_is_detected(objective: str) -> None:
    """Given a short objective, when its language is told, then quotations do not count."""
    assert detect_language(objective) == LANGUAGES[objective]


@given(st.text())
def test_any_text_has_a_language(text: str) -> None:
    """Given any text, when its language is told, then it is one that has a lexicon."""
    assert detect_language(text) in CODES
