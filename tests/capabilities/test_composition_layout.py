"""composition.layout: content of the card, from the caller and from upstream."""

import io
import json
from typing import get_args
from xml.etree import ElementTree

import pytest
from PIL import Image

from tests.capabilities.conftest import ARTIFACT, CapabilityDrive, picture
from toolkit.capabilities._card._templates import TEMPLATES_BY_NAME
from toolkit.capabilities._card._themes import PALETTES
from toolkit.capabilities._card_drawing import MAX_BODY_CHARACTERS, prepare_body
from toolkit.capabilities.composition_layout import CAPABILITY, TemplateName, ThemeName
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Blob, ProviderError, Upstream

FACTS = {
    "title": "Tidal power",
    "summary": "Tidal power turns tides into electricity.",
    "text": "Tidal power: Tidal power turns tides into electricity.\n\nHistory: Mills.",
}


def text_node(text: str, media_type: str = "text/plain") -> Upstream:
    """Return an upstream artifact of text."""
    return Upstream("copy", ARTIFACT, Blob(text.encode(), media_type))


def json_node(value: object) -> Upstream:
    """Return an upstream artifact of JSON."""
    return Upstream("facts", ARTIFACT, Blob(json.dumps(value).encode(), "application/json"))


def get_filled_body(*upstream: Upstream) -> str:
    """Return the body of the card when only upstream fills it, joined as by the engine."""
    joined = "\n\n".join(text for item in upstream if (text := item.text))[:20_000]
    return prepare_body(joined, [(item.blob.media_type, item.blob.data) for item in upstream])


def test_names_match_the_card() -> None:
    """Given the templates and themes of a card, then the input accepts exactly their names."""
    assert set(get_args(TemplateName)) == set(TEMPLATES_BY_NAME)
    assert set(get_args(ThemeName)) == set(PALETTES)


def test_draws_a_png(drive: CapabilityDrive) -> None:
    """Given a title and body, then a PNG of the requested size lists its text boxes."""
    fields = {"title": "Tidal power", "body": "Tides turn.", "bullets": ["One"], "width": 800}
    result = drive(CAPABILITY, fields)
    assert result.artifact is not None
    assert result.artifact.media_type == result.output["media_type"] == "image/png"
    with Image.open(io.BytesIO(result.artifact.data)) as image:
        assert (image.format, image.size) == ("PNG", (800, 630))
    assert result.output["size_bytes"] == len(result.artifact.data)
    assert result.output["missing_glyphs"] == []
    roles = {box["role"]: box["text"] for box in result.output["text_boxes"]}
    assert roles["title"].replace("\n", " ") == "Tidal power"
    json.dumps(result.output)


def test_svg_escapes_markup(drive: CapabilityDrive) -> None:
    """Given the format svg, then the image is well-formed, and markup of the caller is text."""
    fields = {"title": "<script>x()</script>", "format": "svg", "theme": "midnight"}
    result = drive(CAPABILITY, fields)
    assert result.artifact is not None
    assert result.artifact.media_type == "image/svg+xml"
    tags = {element.tag for element in ElementTree.fromstring(result.artifact.data).iter()}
    assert not any("script" in tag for tag in tags)


def test_picture_changes_the_card(drive: CapabilityDrive) -> None:
    """Given a picture, then the card differs from the card without it."""
    blobs = {"image": Blob(picture(), "image/png")}
    result = drive(CAPABILITY, {"title": "Tides", "image": ARTIFACT}, blobs=blobs)
    assert result.artifact != drive(CAPABILITY, {"title": "Tides"}).artifact


@pytest.mark.parametrize(
    "fields", [{"title": "Tides", "image": ARTIFACT}, {"title": "\x00"}, {"title": "\u200b"}]
)
def test_rejects_a_broken_picture_or_an_invisible_title(
    drive: CapabilityDrive, fields: dict[str, object]
) -> None:
    """Given a broken picture, or a title without a visible letter, then the job fails."""
    blobs = {name: Blob(b"no picture", "image/png") for name in fields if name == "image"}
    with pytest.raises(ProviderError, match="not drawn") as failure:
        drive(CAPABILITY, fields, blobs=blobs)
    assert failure.value.code is ErrorCode.PROVIDER_REJECTED


def test_own_body_is_kept() -> None:
    """Given a body of the caller and one of upstream, then the card has the caller's."""
    body = "# Mine. " * 90
    assert prepare_body(body, [("text/plain", b"Theirs.")]) == body.strip()


@pytest.mark.parametrize(
    ("upstream", "body"),
    [
        ((text_node("**Tides** turn."),), "Tides turn."),
        ((text_node("Tidal power\n\nTides turn.\nTwice a day."),), "Tides turn.\nTwice a day."),
        ((text_node("only words"),), "only words"),
        ((json_node(FACTS),), "Tidal power turns tides into electricity."),
        ((json_node({"text": "Just text."}),), "Just text."),
        ((json_node(FACTS), text_node("A teaser.")), "A teaser."),
        ((json_node({"voice": "no text"}), text_node("A teaser.")), "A teaser."),
        ((text_node("One."), text_node("Two.")), "One.\nTwo."),
    ],
)
def test_fills_the_body_from_upstream(upstream: tuple[Upstream, ...], body: str) -> None:
    """Given upstream artifacts, then the card gets their running text, copy before facts."""
    assert get_filled_body(*upstream) == body


@pytest.mark.parametrize("length", [400, 5_000, 30_000])
def test_shortens_a_long_body(length: int) -> None:
    """Given a long text from upstream, then the card gets its first whole sentences."""
    body = get_filled_body(text_node("Tides turn twice a day. " * (length // 24)))
    assert MAX_BODY_CHARACTERS - 30 < len(body) <= MAX_BODY_CHARACTERS
    assert body.endswith("day.")
