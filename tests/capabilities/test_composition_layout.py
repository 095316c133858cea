"""composition.layout: what reaches the card, from the caller and from upstream."""

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
from toolkit.capabilities.composition_layout import (
    CAPABILITY,
    TemplateName,
    ThemeName,
)
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Blob, ProviderError, Upstream

FACTS = {
    "title": "Tidal power",
    "summary": "Tidal power turns tides into electricity.",
    "text": "Tidal power: Tidal power turns tides into electricity.\n\nHistory: Mills.",
}


def text_node(text: str, media_type: str = "text/plain") -> Upstream:
    """An upstream artifact of text."""
    return Upstream("copy", ARTIFACT, Blob(text.encode(), media_type))


def json_node(value: object) -> Upstream:
    """An upstream artifact of JSON."""
    return Upstream("facts", ARTIFACT, Blob(json.dumps(value).encode(), "application/json"))


def get_filled_body(*upstream: Upstream) -> str:
    """The body that the card gets when upstream alone fills it, as the engine joins it."""
    joined = "\n\n".join(text for item in upstream if (text := item.text))[:20_000]
    return prepare_body(joined, [(item.blob.media_type, item.blob.data) for item in upstream])


def test_names_match_the_card() -> None:
    """Given the templates and themes a card has, the input names exactly those."""
    assert set(get_args(TemplateName)) == set(TEMPLATES_BY_NAME)
    assert set(get_args(ThemeName)) == set(PALETTES)


def test_png(drive: CapabilityDrive) -> None:
    """Given a title and body, a PNG of the asked size comes with an account of what is on it."""
    given = {"title": "Tidal power", "body": "Tides turn.", "bullets": ["One"], "width": 800}
    result = drive(CAPABILITY, given)
    assert result.artifact is not None
    assert result.artifact.media_type == result.output["media_type"] == "image/png"
    with Image.open(io.BytesIO(result.artifact.data)) as image:
        assert (image.format, image.size) == ("PNG", (800, 630))
    assert result.output["size_bytes"] == len(result.artifact.data)
    assert result.output["missing_glyphs"] == []
    roles = {box["role"]: box["text"] for box in result.output["text_boxes"]}
    assert roles["title"].replace("\n", " ") == "Tidal power"
    json.dumps(result.output)


def test_svg(drive: CapabilityDrive) -> None:
    """Given the format svg, what comes is well-formed and holds no markup of the caller's."""
    given = {"title": "<script>x()</script>", "format": "svg", "theme": "midnight"}
    result = drive(CAPABILITY, given)
    assert result.artifact is not None
    assert result.artifact.media_type == "image/svg+xml"
    tags = {element.tag for element in ElementTree.fromstring(result.artifact.data).iter()}
    assert not any("script" in tag for tag in tags)


def test_picture(drive: CapabilityDrive) -> None:
    """Given a picture, it is on the card."""
    given = {"title": "Tides", "image": ARTIFACT}
    plain = drive(CAPABILITY, {"title": "Tides"})
    result = drive(CAPABILITY, given, blobs={"image": Blob(picture(), "image/png")})
    assert result.artifact is not None
    assert plain.artifact is not None
    assert result.artifact.data != plain.artifact.data


def test_broken_picture(drive: CapabilityDrive) -> None:
    """Given a picture that does not open, the job fails and says so."""
    blobs = {"image": Blob(b"no picture", "image/png")}
    with pytest.raises(ProviderError, match="not drawn") as caught:
        drive(CAPABILITY, {"title": "Tides", "image": ARTIFACT}, blobs=blobs)
    assert caught.value.code is ErrorCode.PROVIDER_REJECTED


@pytest.mark.parametrize("title", ["\x00", "\u200b"])
def test_title_of_nothing(drive: CapabilityDrive, title: str) -> None:
    """Given a title of which nothing can be drawn, the job fails and says so."""
    with pytest.raises(ProviderError, match="not drawn"):
        drive(CAPABILITY, {"title": title})


def test_own_body_is_kept() -> None:
    """Given the caller's own body beside an upstream one, it is kept as it is."""
    own = "# Mine. " * 90
    assert prepare_body(own, [("text/plain", b"Theirs.")]) == own.strip()


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
def test_upstream_body(upstream: tuple[Upstream, ...], body: str) -> None:
    """Given what upstream wrote, the card gets its running text, copy before facts."""
    assert get_filled_body(*upstream) == body


@pytest.mark.parametrize("length", [400, 5_000, 30_000])
def test_long_upstream_body(length: int) -> None:
    """Given a long text from upstream, the card gets its first whole sentences."""
    body = get_filled_body(text_node("Tides turn twice a day. " * (length // 24)))
    assert MAX_BODY_CHARACTERS - 30 < len(body) <= MAX_BODY_CHARACTERS
    assert body.endswith("day.")
