"""Reserved and expected tokens of a text, held against real tokenizers."""

from functools import cache
from statistics import median

import pytest

from benchmarks._texts import PROSE, long_texts
from benchmarks._tokenizers import Count, load_tokenizers
from toolkit.plugins import Model, TextRequest, TokenBound
from toolkit.plugins.tokens import estimate_tokens

TEXTS = long_texts(1_500)
BOUND = TokenBound("what is tried here")
MODEL = Model("m", TextRequest.kind)


@cache
def tokenizers() -> dict[str, Count]:
    """Every tokenizer whose vocabulary a package of the tests carries."""
    return dict(load_tokenizers())


@pytest.mark.parametrize("name", TEXTS)
def test_no_tokenizer_counts_more_than_is_reserved(name: str) -> None:
    """Given a text of any script or kind, then no tokenizer makes more tokens than the bound."""
    text = TEXTS[name]
    units = BOUND.units(TextRequest(prompt=text), MODEL)
    assert units is not None
    counts = {tokenizer: count(text) for tokenizer, count in tokenizers().items()}
    assert max(counts.values()) <= units["input_tokens"], counts


@pytest.mark.parametrize("name", PROSE)
def test_what_is_expected_is_near_what_tokenizers_count(name: str) -> None:
    """Given prose in any script, then the expectation is within a factor of 2.5 of the median."""
    text = TEXTS[name]
    counted = median(count(text) for count in tokenizers().values())
    assert 0.4 <= estimate_tokens(text) / counted <= 2.5


def test_a_schema_and_instructions_are_counted_too() -> None:
    """Given instructions and a schema, then the bound covers both of them."""
    schema: dict[str, object] = {"type": "object", "properties": {"tide": {"type": "string"}}}
    plain = BOUND.units(TextRequest(prompt="Tides"), MODEL)
    more = BOUND.units(TextRequest(prompt="Tides", system="Be brief.", schema=schema), MODEL)
    assert plain is not None
    assert more is not None
    for count in tokenizers().values():
        said = count("Be brief.") + count(str(schema))
        assert more["input_tokens"] - plain["input_tokens"] > said


def test_a_long_text_is_expected_in_proportion() -> None:
    """Given a text that is only sampled, then as much is expected as of its parts."""
    text = PROSE["english"] * 300
    assert estimate_tokens(text) == pytest.approx(300 * estimate_tokens(PROSE["english"]), rel=0.1)
