"""Plain text work: cleaning, shortening, fencing."""

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
def test_shorten(text: str, limit: int, short: str) -> None:
    """Given a text over the limit, whole sentences are kept, else whole words."""
    assert shorten(text, limit) == short
    assert len(shorten(text, limit)) <= limit


def test_clean() -> None:
    """Given control characters and lone surrogates, they are dropped and the words kept."""
    assert clean("\ud800a\x00b\x1b[31m\r\nc\td") == "ab[31m\nc\td"
    clean("\udfff").encode()


def test_without_markup() -> None:
    """Given Markdown, its marks are dropped and a lone asterisk or underscore is not."""
    assert strip_markup("# Tides\n- **High** `water`\n2 * 3 snake_case") == (
        "Tides\nHigh water\n2 * 3 snake_case"
    )


def test_fence_cannot_be_closed_from_inside() -> None:
    """Given text that closes another text's fence, its own fence stays shut."""
    _, inner = fence_text("first")
    rule, block = fence_text(inner)
    tag = block.splitlines()[0]
    assert block.count(tag) == 1
    assert block.endswith("</" + tag[1:])
    assert tag in rule
