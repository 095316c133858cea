"""Tokens of objectives, and how they are folded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.planning.reading.words.lexicon import CODES
from toolkit.planning.reading.words.tokens import fold_text, split_tokens

FOLDED = {
    "Écris": "ecris", "STRASSE Straße": "strasse strasse", "œuvre": "oeuvre", "Łódź": "lodz",
    "l’été": "l'ete", "אב": "אב", "إلى الأَرْض": "الي الارض", "قصيدة": "قصيده", "كـــتاب": "كتاب",
    "がぎ": "がぎ", "ﾊﾟ": "パ", "ＭＰ３": "mp3", "٣٠": "30",
}  # fmt: skip
TOKENS = {
    ("en", "A 50-word tl;dr, don't"): ["a", "50", "word", "tl", ";", "dr", ",", "don't"],
    ("en", "1200x630 in 3D, 1.5x"): ["1200", "x", "630", "in", "3", "d", ",", "1.5", "x"],
    ("fr", "l’été d'aujourd'hui"): ["l'", "ete", "d'", "aujourd'", "hui"],
    ("it", "sull'arte"): ["sull'", "arte"],
    ("pt", "traduza-o"): ["traduza", "o"],
    ("ja", "俳句を3つMP3で"): ["俳", "句", "を", "3", "つ", "mp3", "で"],
    ("zh", "写一首诗，20字"): ["写", "一", "首", "诗", ",", "20", "字"],
    ("ar", "اكتب ٣ جُمَل"): ["اكتب", "3", "جمل"],
}


@pytest.mark.parametrize("text", FOLDED)
def test_a_text_is_folded(text: str) -> None:
    """Given a text, when it is folded, then case, accents and spellings of a letter are gone."""
    assert fold_text(text) == FOLDED[text]


@pytest.mark.parametrize(("code", "text"), TOKENS)
def test_a_text_is_split(code: str, text: str) -> None:
    """Given a text of a language, when it is split, then its tokens have the keys of lexicons."""
    assert [token.key for token in split_tokens(text, code)] == TOKENS[code, text]


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    """Given any text, when it is folded twice, then the second time changes nothing."""
    assert fold_text(fold_text(text)) == fold_text(text)


@given(st.text(), st.sampled_from(CODES))
def test_tokens_cover_the_text(text: str, code: str) -> None:
    """Given any text, when it is split, then only spaces and hyphens are outside its tokens."""
    end = 0
    for token in split_tokens(text, code):
        assert text[end : token.start].strip().strip("-‐‑") == ""
        assert text[token.start : token.end] == token.text
        end = token.end
    assert not text[end:].strip()
