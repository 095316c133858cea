"""Checks of cards: cards that the layout draws pass, and unreadable cards do not."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest

from benchmarks.sets.review.makers import Spec, make
from tests.planning.review.evidence import ARTIFACT, build_evidence
from tests.planning.sample_capabilities import CARD
from toolkit.capabilities.composition_layout import TemplateName, ThemeName
from toolkit.planning.review.evidence import Evidence, Inspection, ReviewIssue
from toolkit.planning.review.node_checks import check_node
from toolkit.plugins import Blob

BODY = "Barrels, felt pockets and a length of old hose go further than you would think."
GIVEN = {"title": "Rain for herbs", "subtitle": "A guide for small places", "body": BODY}
INK, GROUND = (30, 30, 40), (246, 240, 228)
TITLE = {"role": "title", "text": "Rain for herbs", "x": 80, "y": 80, "size": 72, "color": INK}
SUBTITLE = {
    "role": "subtitle", "text": "A guide for small places", "x": 80, "y": 200, "size": 36,
    "color": INK,
}  # fmt: skip
TEXT = {
    "role": "body", "text": BODY.replace(" old", "\nold"), "x": 80, "y": 290, "size": 30,
    "color": INK,
}  # fmt: skip
FOOTER = {**TEXT, "role": "footer", "y": 500, "text": "Lorem ipsum dolor sit amet adipiscing elit"}
PICTURE: Spec = {
    "maker": "sandbox_picture",
    "args": {"prompt": "rain at dusk", "width": 512, "height": 512, "seed": 3},
}


def find_issues(evidence: Evidence) -> list[ReviewIssue]:
    """Find the issues of a card."""
    return check_node(Inspection(evidence, "a card"))


def find_blocking(evidence: Evidence) -> set[str]:
    """Find the checks that block a card."""
    return {issue.check for issue in find_issues(evidence) if issue.is_blocking}


def build_card(
    fields: dict[str, object], spec: Spec, picture: Spec | None = None, **options: Any
) -> Evidence:
    """Build the evidence of a card."""
    made = make(spec)
    pictures = {"image": Blob(make(picture).data, "image/png")} if picture else {}
    blob = Blob(made.data, made.media_type)
    return build_evidence(CARD, fields, blob, pictures=pictures, **{**made.facts, **options})


def paint(
    *items: dict[str, object],
    size: tuple[int, int] = (1200, 630),
    picture: Spec | None = None,
    is_picture_shown: bool = True,
    **facts: object,
) -> Evidence:
    """Paint a plain card of some texts."""
    args = {
        "width": size[0], "height": size[1], "background": GROUND, "items": items,
        "image": picture, "image_box": (720, 100, 420, 420), "image_shown": is_picture_shown,
    }  # fmt: skip
    return build_card(GIVEN, {"maker": "plain_card", "args": args}, picture, **facts)


def lay_out(
    fields: dict[str, object], picture: Spec | None = None, body: str = "", **options: Any
) -> Evidence:
    """Lay a card out as the capability does; `body` is the text of an earlier node."""
    drawn = {**fields, "body": body} if body else fields
    args = {"fields": drawn, "image": picture, "shorten_upstream": body}
    upstream = {"upstream": body} if body else {}
    fields = {**fields, "image": ARTIFACT} if picture else fields
    return build_card(fields, {"maker": "card", "args": args}, picture, **upstream, **options)


SPOILED: dict[str, tuple[Callable[[], Evidence], str]] = {
    "no title": (lambda: paint(SUBTITLE, TEXT), "card_texts"),
    "no body": (lambda: paint(TITLE, SUBTITLE), "card_texts"),
    "another title": (
        lambda: paint({**TITLE, "text": "How owls hear mice"}, SUBTITLE, TEXT), "card_texts"),
    "half of the body": (
        lambda: paint(TITLE, SUBTITLE, {**TEXT, "text": "Barrels, felt pockets and a"}),
        "card_texts"),
    "no text": (paint, "layout"),
    "out at the right": (lambda: paint(TITLE, SUBTITLE, {**TEXT, "x": 700}), "places"),
    "out at the left": (lambda: paint({**TITLE, "x": -90}, SUBTITLE, TEXT), "places"),
    "out at the foot": (lambda: paint(TITLE, SUBTITLE, {**TEXT, "y": 600}), "places"),
    "tiny": (lambda: paint(TITLE, SUBTITLE, {**TEXT, "size": 7}), "places"),
    "overlapping texts": (lambda: paint(TITLE, {**SUBTITLE, "y": 90}, TEXT), "places"),
    "the colour of the ground": (
        lambda: paint({**TITLE, "color": GROUND}, SUBTITLE, TEXT), "contrast"),
    "hardly another colour": (
        lambda: paint({**TITLE, "color": (250, 245, 234)}, SUBTITLE, TEXT), "contrast"),
    "boxes for letters": (
        lambda: paint(
            {**TITLE, "text": "\ue000ain for h\ue001rbs", "told": TITLE["text"]}, SUBTITLE, TEXT,
            missing_glyphs=["R", "e"],
        ),
        "glyphs"),
    "unrequested words": (lambda: paint(TITLE, SUBTITLE, TEXT, FOOTER), "card_texts"),
    "signs of replacement": (
        lambda: paint({**TITLE, "text": "Ra\ufffd\ufffd for h\ufffdrbs"}, SUBTITLE, TEXT),
        "glyphs"),
    "no picture": (
        lambda: paint(TITLE, SUBTITLE, TEXT, picture=PICTURE, is_picture_shown=False),
        "card_picture"),
    "another size": (lambda: paint(TITLE, SUBTITLE, TEXT, size=(1080, 1080)), "picture_size"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
def test_blocks_an_unreadable_card(name: str) -> None:
    """Given a card that cannot be read, then the check of its defect blocks it."""
    paint_card, check = SPOILED[name]
    assert check in find_blocking(paint_card())


GOOD: dict[str, Callable[[], Evidence]] = {
    "plain": lambda: paint(TITLE, SUBTITLE, TEXT),
    "with a picture": lambda: paint(TITLE, SUBTITLE, TEXT, picture=PICTURE),
    "small": lambda: paint(TITLE, SUBTITLE, {**TEXT, "size": 16}),
    "grey": lambda: paint({**TITLE, "color": (120, 120, 120)}, SUBTITLE, TEXT),
    "a lost picture sign": lambda: paint(TITLE, SUBTITLE, TEXT, missing_glyphs=["🙂"]),
}


@pytest.mark.parametrize("name", GOOD)
def test_passes_a_readable_card(name: str) -> None:
    """Given a card that can be read, then no issue blocks it."""
    assert not find_blocking(GOOD[name]())


@pytest.mark.parametrize("theme", get_args(ThemeName))
@pytest.mark.parametrize("template", get_args(TemplateName))
def test_passes_cards_of_the_layout(template: str, theme: str) -> None:
    """Given a card that the layout draws, with any template and theme, then it passes."""
    look = {"template": template, "theme": theme}
    assert not find_blocking(lay_out({**GIVEN, **look}))
    arabic = {"title": "براميل المطر على الشرفات", "bullets": ["الأعشاب خضراء", "في الأسابيع"]}
    assert not find_blocking(lay_out({**arabic, **look, "width": 600, "height": 1000}, PICTURE))


def test_blocks_a_card_with_another_text() -> None:
    """Given a card whose body is not the text of the earlier node, then it is blocked."""
    evidence = lay_out({"title": "Rain for herbs"}, body=BODY)
    assert not find_issues(evidence)
    changed = replace(evidence, upstream_text="Owls hear mice by ears at unequal heights.")
    assert "card_texts" in find_blocking(changed)


SVG: dict[str, object] = {"title": "Rain for herbs", "subtitle": "A guide", "format": "svg"}


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
    assert find_blocking(spoiled)


def test_blocks_an_svg_card_without_its_picture() -> None:
    """Given an SVG card without its input picture, then it is blocked."""
    evidence = lay_out(SVG, PICTURE)
    assert not find_issues(evidence)
    bare = replace(lay_out(SVG), pictures=evidence.pictures)
    assert [issue.check for issue in find_issues(bare)] == ["card_picture"]
