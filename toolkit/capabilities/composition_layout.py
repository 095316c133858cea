"""`composition.layout`: a social card laid out on this machine's CPU; the registry loads it."""

import json
from typing import Annotated, Literal

from pydantic import Field

from toolkit.capabilities._text import clean, ends_sentence, shorten, without_markup
from toolkit.contract.base import Record, Request
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Blob, Call, Capability, Flow, Result, Take, VendorFault, compute

BODY_CHARACTERS = 320  # of a body that upstream wrote: more is not read on a card

Template = Literal["classic", "split", "cover", "quote"]
Theme = Literal["dawn", "paper", "mint", "lilac", "midnight", "ember", "forest"]


class LayoutInput(Request):
    """What `composition.layout` takes."""

    title: str = Field(
        min_length=1,
        max_length=300,
        pattern=r"\S",
        description="the headline; the quotation in the template `quote`",
        json_schema_extra={"x-role": "title"},
    )
    subtitle: str = Field(
        default="", max_length=300, description="a line under it; the speaker in `quote`"
    )
    body: str = Field(
        default="",
        max_length=20_000,
        description="running text; upstream fills it, cut to its first sentences",
    )
    bullets: list[Annotated[str, Field(min_length=1, max_length=300)]] = Field(
        default=[], max_length=8, description="short points"
    )
    footer: str = Field(default="", max_length=200, description="one line at the foot")
    kicker: str = Field(default="", max_length=100, description="a small label above the title")
    image: str | None = Field(
        default=None,
        pattern=r"^art_[0-7][0-9a-hjkmnp-tv-z]{25}$",
        description="id of an artifact with a PNG, JPEG or WebP picture; upstream fills it",
    )
    template: Template | None = Field(
        default=None, description="the arrangement; `split` with a picture and `classic` without"
    )
    theme: Theme = Field(default="dawn", description="the palette")
    width: int = Field(default=1200, ge=200, le=4096, description="in pixels")
    height: int = Field(default=630, ge=200, le=4096, description="in pixels")
    format: Literal["png", "svg"] = Field(default="png", description="what is made")


class PlacedText(Record):
    """A text as it stands on the card."""

    role: str = Field(description="such as `title`")
    text: str = Field(description="the drawn words, lines parted by line feeds")
    x: float = Field(description="left edge, in pixels")
    y: float = Field(description="top edge, in pixels")
    width: float = Field(description="in pixels")
    height: float = Field(description="in pixels")
    font_size: int = Field(description="in pixels")


class LayoutOutput(Record):
    """What `composition.layout` answers."""

    artifact_id: str = Field(description="the artifact that holds the card")
    media_type: str = Field(description="`image/png` or `image/svg+xml`")
    width: int = Field(gt=0, description="in pixels")
    height: int = Field(gt=0, description="in pixels")
    size_bytes: int = Field(gt=0, description="how large the file is")
    warnings: list[str] = Field(description="what had to be cut or made smaller")
    missing_glyphs: list[str] = Field(description="characters that no font here has")
    text_boxes: list[PlacedText] = Field(description="what stands where")


def layout(call: Call[LayoutInput]) -> Flow[Result]:
    """Lay a card out and draw it.

    Raises:
        VendorFault: `PROVIDER_REJECTED` for a card that cannot be drawn, such as with a picture
            that does not open.
    """
    return (yield from compute(lambda: _drawn(call)))


def _drawn(call: Call[LayoutInput]) -> Result:
    from toolkit.capabilities._card import Card, CardError, render_png, render_svg

    given = call.input
    picture = call.blobs.get("image")
    card = Card(
        title=clean(given.title),
        subtitle=clean(given.subtitle),
        body=body_text(call),
        bullets=tuple(clean(bullet) for bullet in given.bullets),
        footer=clean(given.footer),
        kicker=clean(given.kicker),
        image=picture.data if picture else None,
        template=given.template or ("split" if picture else "classic"),
        theme=given.theme,
        width=given.width,
        height=given.height,
    )
    try:
        made = render_svg(card) if given.format == "svg" else render_png(card)
    except CardError as error:
        raise VendorFault(ErrorCode.PROVIDER_REJECTED, f"The card was not drawn: {error}") from None
    facts: dict[str, object] = {
        "media_type": made.media_type,
        "width": made.width,
        "height": made.height,
        "size_bytes": len(made.data),
        "warnings": list(made.warnings),
        "missing_glyphs": list(made.missing_glyphs),
        "text_boxes": [
            {
                "role": box.role,
                "text": box.text,
                "x": box.x,
                "y": box.y,
                "width": box.w,
                "height": box.h,
                "font_size": box.font_size,
            }
            for box in made.text_boxes
        ],
    }
    metadata = {"width": made.width, "height": made.height, "title": card.title}
    return Result(facts, Blob(made.data, made.media_type, metadata))


def body_text(call: Call[LayoutInput]) -> str:
    """The body for the card: the caller's own as it is, upstream's cut to its first sentences."""
    given = call.input.body
    texts = [(item.blob, text) for item in call.upstream if (text := item.text)]
    if not given or "\n\n".join(text for _, text in texts)[: len(given)] != given:
        return clean(given)
    # Copy that was written for the card says it better than the facts it was written from.
    written = [text for blob, text in texts if blob.media_type.startswith("text/")]
    told = written or [_summary(blob, text) for blob, text in texts]
    return shorten(_running(without_markup(clean("\n\n".join(told)))), BODY_CHARACTERS)


def _summary(blob: Blob, text: str) -> str:
    """The `summary` of a JSON artifact that has one beside its `text`."""
    value = json.loads(blob.data)
    short = value.get("summary") if isinstance(value, dict) else None
    return short if isinstance(short, str) and short.strip() else text


def _running(text: str) -> str:
    """Text without the headings and greetings before its first sentence."""
    paragraphs = [part.strip() for part in text.split("\n") if part.strip()]
    first = next((n for n, part in enumerate(paragraphs) if ends_sentence(part)), 0)
    return "\n".join(paragraphs[first:])


CAPABILITY = Capability(
    id="composition.layout",
    title="Lay out a card",
    description="Lays text and a picture out as a social card, as PNG or SVG.",
    input_model=LayoutInput,
    output_model=LayoutOutput,
    flow=layout,
    takes={
        "body": Take(("text/*", "application/json"), "text"),
        "image": Take(("image/png", "image/jpeg", "image/webp"), "artifact"),
    },
    yields="image/png",
    keywords=(
        "card", "social card", "poster", "banner", "layout", "cover", "flyer", "thumbnail",
        "composition", "compose", "og image", "open graph", "quote card", "infographic",
    ),
)  # fmt: skip
