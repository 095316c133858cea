"""Reserved and expected tokens of a text, compared with real tokenizers."""

from functools import cache
from statistics import median

import pytest

from benchmarks._texts import PROSE, long_texts
from benchmarks._tokenizers import Count, load_tokenizers
from toolkit.plugins import Model, TextRequest, TokenBound
from toolkit.plugins.tokens import estimate_tokens
from toolkit.vendors._prices import load_models

TEXTS = long_texts(1_500)
BOUND = TokenBound("a test")
MODEL = Model("m", TextRequest.kind)


@cache
def tokenizers() -> dict[str, Count]:
    """Return every tokenizer whose vocabulary is in a package of the tests."""
    return dict(load_tokenizers())


@pytest.mark.parametrize("name", TEXTS)
def test_no_tokenizer_counts_more_than_is_reserved(name: str) -> None:
    """Given a text of any script or kind, then no tokenizer counts full than the bound."""
    text = TEXTS[name]
    units = BOUND.units(TextRequest(prompt=text), MODEL)
    assert units is not None
    counts = {tokenizer: count(text) for tokenizer, count in tokenizers().items()}
    assert max(counts.values()) <= units["input_tokens"], counts


@pytest.mark.parametrize("name", PROSE)
def test_estimate_is_near_the_median_of_tokenizers(name: str) -> None:
    """Given prose in any script, then the estimate is within a factor of 2.5 of the median."""
    text = TEXTS[name]
    counted = median(count(text) for count in tokenizers().values())
    assert 0.4 <= estimate_tokens(text) / counted <= 2.5


def test_bound_covers_instructions_and_schema() -> None:
    """Given instructions and a schema, then the bound covers both."""
    schema: dict[str, object] = {"type": "object", "properties": {"tide": {"type": "string"}}}
    plain = BOUND.units(TextRequest(prompt="Tides"), MODEL)
    full = BOUND.units(TextRequest(prompt="Tides", system="Be brief.", schema=schema), MODEL)
    assert plain is not None
    assert full is not None
    for count in tokenizers().values():
        extra = count("Be brief.") + count(str(schema))
        assert full["input_tokens"] - plain["input_tokens"] > extra


# Examples of the vendors' guides; a scaled picture may count one more row of patches.
@pytest.mark.parametrize(
    ("model", "size", "published", "most"),
    [
        ("openai/gpt-5.6-luna", (1_024, 1_024), 1_229, 1_229),
        ("openai/gpt-5.6-luna", (2_048, 2_048), 3_000, 3_000),
        ("anthropic/claude-haiku-5-5", (1_920, 1_080), 2_691, 2_691),
        ("anthropic/claude-haiku-5-5", (3_840, 2_160), 4_784, 4_784),
        ("anthropic/claude-haiku-4-5", (1_920, 1_080), 1_560, 1_568),
        ("aws/us.anthropic.claude-haiku-5-5", (200, 200), 64, 64),
    ],
)
def test_bounds_a_picture_by_the_published_rule(
    model: str, size: tuple[int, int], published: int, most: int
) -> None:
    """Given a size with a published number of tokens, then the bound is that, or just above."""
    vendor, _, name = model.partition("/")
    rule = next(m.pictures for m in load_models(vendor) if m.id == name)
    assert rule is not None
    assert published <= rule.count_tokens(size) <= most <= rule.count_tokens(None)


def test_estimate_of_a_long_text_is_proportional() -> None:
    """Given a text that is sampled, then its estimate is proportional to its length."""
    text = PROSE["english"] * 300
    assert estimate_tokens(text) == pytest.approx(300 * estimate_tokens(PROSE["english"]), rel=0.1)
