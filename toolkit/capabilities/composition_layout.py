"""`composition.layout`: a social card laid out on this machine's CPU; the registry loads it."""

from typing import Annotated, Literal

from pydantic import Field

from toolkit.capabilities._card_drawing import draw_card
from toolkit.contract.base import Record, Request
from toolkit.contract.ids import Prefix, build_id_pattern
from toolkit.plugins import Blob, Call, Capability, Flow, InputBinding, Result, run_in_process

TemplateName = Literal["classic", "split", "cover", "quote"]
ThemeName = Literal["dawn", "paper", "mint", "lilac", "midnight", "ember", "forest"]


class LayoutInput(Request):
    """The input of `composition.layout`."""

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
        pattern=build_id_pattern(Prefix.ARTIFACT),
        description="id of an artifact with a PNG, JPEG or WebP picture; upstream fills it",
    )
    template: TemplateName | None = Field(
        default=None, description="the arrangement; `split` with a picture and `classic` without"
    )
    theme: ThemeName = Field(
        default="dawn",
        description="the palette",
        json_schema_extra={"x-names": {"dark": "midnight", "light": "paper"}},
    )
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
    """The output of `composition.layout`."""

    artifact_id: str = Field(description="the artifact that holds the card")
    media_type: str = Field(description="`image/png` or `image/svg+xml`")
    width: int = Field(gt=0, description="in pixels")
    height: int = Field(gt=0, description="in pixels")
    size_bytes: int = Field(gt=0, description="how large the file is")
    warnings: list[str] = Field(description="what had to be cut or made smaller")
    missing_glyphs: list[str] = Field(description="characters that no font here has")
    text_boxes: list[PlacedText] = Field(description="what stands where")


def lay_out_card(call: Call[LayoutInput]) -> Flow[Result]:
    """Lay a card out and draw it.

    Raises:
        ProviderError: `PROVIDER_REJECTED` for a card that cannot be drawn, such as with a picture
            that does not open.
    """
    fields, picture = call.input, call.blobs.get("image")
    facts, data, title = yield from run_in_process(
        draw_card,
        fields.model_dump(exclude={"image"}),
        picture.data if picture else None,
        [(item.blob.media_type, item.blob.data) for item in call.upstream if fields.body],
    )
    metadata = {"width": facts["width"], "height": facts["height"], "title": title}
    return Result(facts, Blob(data, str(facts["media_type"]), metadata))


CAPABILITY = Capability(
    id="composition.layout",
    title="Lay out a card",
    description="Lays text and a picture out as a social card, as PNG or SVG.",
    input_model=LayoutInput,
    output_model=LayoutOutput,
    flow=lay_out_card,
    cpu_steps=(draw_card,),
    accepts={
        "body": InputBinding(("text/*", "application/json"), "text"),
        "image": InputBinding(("image/png", "image/jpeg", "image/webp"), "artifact"),
    },
    produces="image/png",
    keywords=(
        "card", "social card", "poster", "banner", "layout", "cover", "flyer", "thumbnail",
        "composition", "compose", "og image", "open graph", "quote card", "infographic",
    ),
)  # fmt: skip
