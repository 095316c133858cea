"""Numbers in digits and in words."""

import pytest

from toolkit.planning.reading.words.lexicon import load_lexicon
from toolkit.planning.reading.words.numbers import read_number
from toolkit.planning.reading.words.tokens import split_tokens

NUMBERS = {
    ("en", "1,500 words"): (1500, 1),
    ("en", "1.5 minutes"): (1.5, 1),
    ("en", "two hundred and fifty words"): (250, 4),
    ("en", "two thousand words"): (2000, 2),
    ("en", "forty-five words"): (45, 2),
    ("en", "three and a card"): (3, 1),
    ("en", "a dozen ideas"): (12, 2),
    ("en", "16:9"): None,
    ("en", "words"): None,
    ("de", "1.500 Wörter"): (1500, 1),
    ("de", "fünfzig Wörter"): (50, 1),
    ("de", "dreiundzwanzig Wörter"): (23, 1),
    ("fr", "deux cents mots"): (200, 2),
    ("fr", "vingt-cinq mots"): (25, 2),
    ("es", "treinta y cinco palabras"): (35, 3),
    ("it", "cinquanta parole"): (50, 1),
    ("pt", "quarenta e cinco palavras"): (45, 3),
    ("ja", "三百字"): (300, 2),
    ("ja", "2千字"): (2000, 2),
    ("zh", "二百五十字"): (250, 4),
    ("zh", "两张"): (2, 1),
    ("ar", "٥٠ كلمة"): (50, 1),
    ("ar", "خمسين كلمة"): (50, 1),
}


@pytest.mark.parametrize(("code", "text"), NUMBERS)
def test_a_number_is_read(code: str, text: str) -> None:
    """Given a number of a language, when it is read, then its value and length are told."""
    assert read_number(split_tokens(text, code), 0, load_lexicon(code)) == NUMBERS[code, text]
