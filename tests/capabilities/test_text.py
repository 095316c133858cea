"""Cleaning, shortening and fencing of text."""

import pytest

from toolkit.capabilities._text import clean, shorten, strip_markup
from toolkit.plugins.fencing import fence_text


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("Short.", 10, "Short."),
        ("One two. Three four. Five six.", 21, "One two. Three four."),
        ("Dr. Lee found it. She wrote.", 20, "Dr. Lee found it."),
        ("It is old, e.g. the mill at Eling. More here.", 36, "It is old, e.g. the mill at Eling."),
        ('"Tides turn." He left again.', 15, '"Tides turn."'),
        ("潮汐发电。利用潮汐。很多电站。", 11, "潮汐发电。利用潮汐。"),
        ("Version 3.11 is out now today", 20, "Version 3.11 is out…"),
        ("x" * 30, 10, "x" * 9 + "…"),
    ],
)
def test_shortens_at_a_sentence_or_word(text: str, limit: int, short: str) -> None:
    """Given a text over the limit, then whole sentences are kept, or else whole words."""
    assert shorten(text, limit) == short
    assert len(shorten(text, limit)) <= limit


def test_drops_control_characters() -> None:
    """Given control characters and lone surrogates, then they are removed."""
    assert clean("\ud800a\x00b\x1b[31m\r\nc\td") == "ab[31m\nc\td"
    clean("\udfff").encode()


def test_strips_markdown() -> None:
    """Given Markdown, then its marks are removed, but not a lone asterisk or underscore."""
    assert strip_markup("# Tides\n- **High** `water`\n2 * 3 snake_case") == (
        "Tides\nHigh water\n2 * 3 snake_case"
    )


def test_fence_cannot_be_closed_from_inside() -> None:
    """Given text that closes another text's fence, then its own fence stays closed."""
    _, inner = fence_text("first")
    rule, block = fence_text(inner)
    tag = block.splitlines()[0]
    assert block.count(tag) == 1
    assert block.endswith("</" + tag[1:])
    assert tag in rule
