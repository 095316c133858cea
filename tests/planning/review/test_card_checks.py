"""Checks of cards: cards that the layout draws pass, and unreadable cards do not."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.planning.review import pictures
from tests.planning.review.cards import PlacedItem, PlainCard, draw_random_card, lay_out
from tests.planning.review.evidence import ARTIFACT
from toolkit.planning.review.evidence import Evidence, Inspection, ReviewIssue
from toolkit.planning.review.node_checks import check_node
from toolkit.plugins import Blob

BODY = "Barrels, felt pockets and a length of old hose go further than you would think."
GIVEN = {"title": "Rain for herbs", "subtitle": "A guide for small places", "body": BODY}
LINES = "Barrels, felt pockets and a length of\nold hose go further than you would think."
TITLE = PlacedItem("title", "Rain for herbs", 80, 80, 72)
SUBTITLE = PlacedItem("subtitle", "A guide for small places", 80, 200, 36)
TEXT = PlacedItem("body", LINES, 80, 290, 30)
GOOD = PlainCard(GIVEN, (TITLE, SUBTITLE, TEXT))
NATURE = pictures.paint_nature(np.random.default_rng(3), (512, 512))


def find_issues(evidence: Evidence) -> list[ReviewIssue]:
    """Find the issues of a card."""
    return check_node(Inspection(evidence, "a card"))


def replace_item(old: PlacedItem, new: PlacedItem | None) -> PlainCard:
    """Replace a text of the good card, or leave it out."""
    items = [new if item is old else item for item in GOOD.items]
    return replace(GOOD, items=[item for item in items if item is not None])


SPOILED: dict[str, tuple[PlainCard, str]] = {
    "no title": (replace_item(TITLE, None), "card_texts"),
    "no body": (replace_item(TEXT, None), "card_texts"),
    "another title": (
        replace_item(TITLE, replace(TITLE, text="How owls hear mice")), "card_texts"),
    "half of the body": (
        replace_item(TEXT, replace(TEXT, text="Barrels, felt pockets and a")), "card_texts"),
    "no text": (replace(GOOD, items=()), "layout"),
    "out at the right": (replace_item(TEXT, replace(TEXT, x=700)), "places"),
    "out at the left": (replace_item(TITLE, replace(TITLE, x=-90)), "places"),
    "out at the foot": (replace_item(TEXT, replace(TEXT, y=600)), "places"),
    "tiny": (replace_item(TEXT, replace(TEXT, size=7)), "places"),
    "overlapping texts": (replace_item(SUBTITLE, replace(SUBTITLE, y=90)), "places"),
    "the colour of the ground": (
        replace_item(TITLE, replace(TITLE, color=GOOD.ground)), "contrast"),
    "hardly another colour": (
        replace_item(TITLE, replace(TITLE, color=(250, 245, 234))), "contrast"),
    "boxes for letters": (
        replace(
            replace_item(
                TITLE, replace(TITLE, text="\ue000ain for h\ue001rbs", reported=TITLE.text)),
            facts={"missing_glyphs": ["R", "e"]},
        ),
        "glyphs"),
    "unrequested words": (
        replace(GOOD, items=(*GOOD.items, PlacedItem("footer", "Lorem ipsum dolor sit amet "
                "consectetur adipiscing elit sed", 80, 500, 24))), "card_texts"),
    "signs of replacement": (
        replace_item(TITLE, replace(TITLE, text="Ra\ufffd\ufffd for h\ufffdrbs")), "glyphs"),
    "no picture": (replace(GOOD, picture=NATURE, is_picture_shown=False), "card_picture"),
    "another size": (replace(GOOD, size=(1080, 1080)), "picture_size"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
def test_blocks_an_unreadable_card(name: str) -> None:
    """Given a card that cannot be read, then the check of its defect blocks it."""
    card, check = SPOILED[name]
    assert check in {issue.check for issue in find_issues(card.paint()) if issue.is_blocking}


@pytest.mark.parametrize(
    "card",
    [
        GOOD,
        replace(GOOD, picture=NATURE),
        replace_item(TEXT, replace(TEXT, size=16)),
        replace_item(TITLE, replace(TITLE, color=(120, 120, 120))),
        replace(GOOD, facts={"missing_glyphs": ["🙂"]}),
    ],
    ids=["plain", "with a picture", "small", "grey", "a lost picture sign"],
)
def test_passes_a_readable_card(card: PlainCard) -> None:
    """Given a card that can be read, then no issue blocks it."""
    assert not [issue for issue in find_issues(card.paint()) if issue.is_blocking]


def test_passes_cards_of_the_layout() -> None:
    """Given 20 random cards that the layout draws, then all pass."""
    blocked = [
        (seed, issue.message)
        for seed in range(60, 80)
        for issue in find_issues(draw_random_card(seed))
        if issue.is_blocking
    ]
    assert not blocked


def test_blocks_a_card_with_another_text() -> None:
    """Given a card whose body is not the text of the earlier node, then it is blocked."""
    evidence = lay_out({"title": "Rain for herbs"}, body=BODY)
    assert not find_issues(evidence)
    changed = replace(evidence, upstream_text="Owls hear mice by ears at unequal heights.")
    assert "card_texts" in {issue.check for issue in find_issues(changed) if issue.is_blocking}


SVG = {"title": "Rain for herbs", "subtitle": "A guide", "format": "svg"}


@pytest.mark.parametrize(
    "spoil",
    [lambda data: re.sub(rb"(<text[^>]*>)[^<]*", rb"\1", data, count=1), lambda data: data[:-20]],
)
def test_checks_an_svg_card(spoil: Callable[[bytes], bytes]) -> None:
    """Given an SVG card, then it passes whole and fails without its title or its end."""
    evidence = lay_out(SVG)
    assert not find_issues(evidence)
    assert evidence.blob is not None
    spoiled = replace(evidence, blob=Blob(spoil(evidence.blob.data), evidence.blob.media_type))
    assert any(issue.is_blocking for issue in find_issues(spoiled))


def test_blocks_an_svg_card_without_its_picture() -> None:
    """Given an SVG card without its input picture, then it is blocked."""
    picture = pictures.encode_picture(NATURE)
    evidence = lay_out({**SVG, "image": ARTIFACT}, picture)
    assert not find_issues(evidence)
    bare = replace(lay_out(SVG), pictures=evidence.pictures)
    assert [issue.check for issue in find_issues(bare)] == ["card_picture"]
