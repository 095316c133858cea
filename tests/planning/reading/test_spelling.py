"""Misspelled words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.planning.reading.words.lexicon import CODES
from toolkit.planning.reading.words.spelling import count_edits, mend_tokens, mend_word
from toolkit.planning.reading.words.tokens import split_tokens

MENDED = {
    ("en", "pictrue"): "picture", ("en", "sumarize"): "summarize", ("en", "wriet"): "write",
    ("en", "ilustartion"): "illustration", ("en", "stork"): None, ("en", "whales"): None,
    ("de", "zusammenfasung"): "zusammenfassung", ("de", "gedihct"): "gedicht",
    ("fr", "poeme"): None, ("es", "imajen"): "imagen", ("it", "imagine"): "immagine",
    ("ja", "俳句"): None,
}  # fmt: skip


@pytest.mark.parametrize(("code", "word"), MENDED)
def test_a_word_is_mended(code: str, word: str) -> None:
    """Given a misspelled word, when it is mended, then one slip leads to what was meant."""
    expected = MENDED[code, word]
    assert mend_word(word, code) == expected


def test_names_are_left() -> None:
    """Given a misspelled word and a name that is like a word, then the name stays."""
    tokens = mend_tokens(split_tokens("Wriet about Storry, a hors", "en"), "en")
    assert [token.key for token in tokens] == ["write", "about", "storry", ",", "a", "hors"]


@given(st.text(max_size=20), st.sampled_from(CODES))
def test_any_word_is_mended_or_left(word: str, code: str) -> None:
    """Given any word, when it is mended, then the result is near."""
    mended = mend_word(word, code)
    assert mended is None or count_edits(word, mended) <= 2
