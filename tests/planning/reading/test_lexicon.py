"""The lexicons: their files, and what phrases of an objective are found in them."""

import tomllib
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.planning.reading.words.lexicon import (
    CODES,
    expand_entries,
    load_lexicon,
    read_lexicon,
)
from toolkit.planning.reading.words.tokens import split_tokens

FOUND = {
    ("en", "write it"): {("act.write", 1)},
    ("en", "read it aloud"): {("act.speak", 3)},
    ("en", "voice-over"): {("thing.speech", 2)},
    ("en", "social card"): {("thing.card", 2)},
    ("de", "lies bitte den Text vor."): {("act.speak", 1)},
    ("de", "Herbstgedicht"): {("thing.text", 1)},
    ("fr", "lis-le à voix haute"): {("act.speak", 1)},
    ("es", "léelo en voz alta"): {("act.speak", 4)},
    ("it", "scrivimi"): {("act.write", 1)},
    ("pt", "resuma-o"): {("act.summarize", 1)},
    ("ja", "書いてください"): {("act.write", 3)},
    ("zh", "社交卡片"): {("thing.card", 4)},
    ("ar", "واكتبها"): {("act.write", 1)},
}


@pytest.mark.parametrize(("code", "text"), FOUND)
def test_a_phrase_is_found(code: str, text: str) -> None:
    """Given a phrase in one of its forms, when it is looked up, then its meaning is found."""
    entries = load_lexicon(code).find_entries(split_tokens(text, code), 0)
    assert {(entry.category, entry.length) for entry in entries} >= FOUND[code, text]


def test_entries_are_spelled_out() -> None:
    """Given alternatives in parentheses, when they are expanded, then each stands by itself."""
    assert list(expand_entries("(read|reads) it(| out), say,\nsing")) == [
        "read it", "read it out", "reads it", "reads it out", "say", "sing",
    ]  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_every_lexicon_has_the_same_keys(code: str) -> None:
    """Given a language's file, when it is read, then no key of the English one is missing."""
    english, data = (tomllib.loads(read_lexicon(name)) for name in ("en", code))
    optional = {"skipped", "counters", "endings", "proclitics", "enclitics"}
    assert set(english) - optional <= set(data)
    for section, keys in english.items():
        if isinstance(keys, dict):
            assert set(keys) == set(data[section])


@pytest.mark.parametrize("code", CODES)
def test_words_with_two_meanings_are_marked(code: str) -> None:
    """Given a phrase that is a kind of act and a thing, then it is among the ambiguous ones."""
    lexicon = load_lexicon(code)
    kinds = defaultdict(set)
    for key, meanings in lexicon.meanings.items():
        for category, _ in meanings:
            if category.startswith(("act.", "thing.", "unavailable.")):
                kinds[key].add(category.split(".")[0])
    assert {key for key, found in kinds.items() if len(found) > 1} <= lexicon.ambiguous


@pytest.mark.parametrize("code", CODES)
def test_no_entry_is_empty(code: str) -> None:
    """Given a language's file, when its entries are spelled out, then each has words."""
    lexicon = load_lexicon(code)
    assert all(key.strip(" !") for key in lexicon.meanings)
    assert all(value for key in lexicon.meanings for category, value in lexicon.meanings[key]
               if category in {"number", "language"})  # fmt: skip


def test_words_stand_with_the_words_they_change() -> None:
    """Given words with clitics, compounds and accents, then what they are is found."""
    found = {
        (code, text): {one.category for one in load_lexicon(code).find_entries(
            split_tokens(text, code), 0)}
        for code, text in (("de", "kürze"), ("de", "kurze"), ("de", "kuerze"), ("de", "Werbetext"),
                           ("de", "Kontext"), ("fr", "mème"), ("ar", "القصيدة"), ("es", "pónmelo"))
    }  # fmt: skip
    assert "act.rewrite" in found["de", "kürze"]
    assert "act.rewrite" in found["de", "kuerze"]
    assert "act.rewrite" not in found["de", "kurze"]
    assert "thing.text" in found["de", "Werbetext"]
    assert found["de", "Kontext"] == set()
    assert "thing.image" in found["fr", "mème"]
    assert "thing.text" in found["ar", "القصيدة"]


def test_a_conjunction_is_a_word_of_its_own() -> None:
    """Given an Arabic conjunction before a known word, then it is split off, and else it is not."""
    lexicon = load_lexicon("ar")
    for text, size in (("وصورة", 2), ("ولد", 1)):
        assert len(lexicon.split_conjunctions(split_tokens(text, "ar"))) == size


@given(st.text(max_size=60), st.sampled_from(CODES))
def test_any_text_is_looked_up(text: str, code: str) -> None:
    """Given any text, when its tokens are looked up, then entries stay within it."""
    tokens = split_tokens(text, code)
    for i in range(len(tokens)):
        for entry in load_lexicon(code).find_entries(tokens, i):
            assert 1 <= entry.length <= len(tokens) - i
