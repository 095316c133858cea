"""Cards with random texts that the layout draws, and cards with defects by a plain painter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tests.planning.review import pictures
from tests.planning.review.evidence import ARTIFACT, build_evidence
from tests.planning.sample_capabilities import CARD
from toolkit.capabilities._card_drawing import draw_card
from toolkit.capabilities.composition_layout import LayoutInput, TemplateName, ThemeName
from toolkit.planning.review.evidence import Evidence
from toolkit.plugins import Blob

SIZES = ((1200, 630), (1080, 1080), (1080, 1350), (400, 400), (1600, 400), (600, 1000))
TEXTS = (
    "rain barrels on small balconies keep herbs alive through dry weeks and save money",
    "Regentonnen auf kleinen Balkonen halten Kräuter über trockene Wochen grün und frisch",
    "des tonneaux de pluie gardent les herbes vertes même après une longue sécheresse",
    "дождевые бочки на балконах сохраняют зелень живой в сухие недели и экономят воду",
    "براميل المطر على الشرفات تحفظ الأعشاب خضراء في الأسابيع الجافة",
)


def draw_random_card(seed: int) -> Evidence:
    """Draw a card of any theme, size and template, with texts in one of five languages."""
    draw = np.random.default_rng(seed)
    words = TEXTS[int(draw.integers(len(TEXTS)))].split()

    def write(low: int, high: int, share: float = 1.0) -> str:
        count = int(draw.integers(low, high))
        return " ".join(draw.choice(words, count)) if draw.random() < share else ""

    width, height = SIZES[int(draw.integers(len(SIZES)))]
    fields: dict[str, object] = {
        "title": write(1, 12), "subtitle": write(2, 12, 0.6), "footer": write(1, 7, 0.5),
        "kicker": write(1, 4, 0.4), "width": width, "height": height,
        "template": str(draw.choice(list(get_args(TemplateName)))),
        "theme": str(draw.choice(list(get_args(ThemeName)))),
        "bullets": [write(1, 7) for _ in range(int(draw.integers(0, 5)))],
        "format": "svg" if draw.random() < 0.15 else "png",
    }  # fmt: skip
    fields = {name: value for name, value in fields.items() if value}
    body = write(4, 60, 0.7)
    is_upstream = bool(body) and draw.random() < 0.5
    if body and not is_upstream:
        fields["body"] = body
    picture = None
    if draw.random() < 0.5:
        painted = pictures.paint_nature(draw, (640, 512))
        picture, fields["image"] = pictures.encode_picture(painted), ARTIFACT
    return lay_out(fields, picture, body if is_upstream else "")


def lay_out(values: Mapping[str, object], picture: bytes | None = None, body: str = "") -> Evidence:
    """Lay a card out as the capability does; `body` is the text of an earlier node."""
    fields = LayoutInput.model_validate({**values, **({"body": body} if body else {})})
    upstream = [("text/plain", body.encode())] if body else []
    facts, data, _ = draw_card(fields.model_dump(exclude={"image"}), picture, upstream)
    return _build_card(values, facts, data, picture, body)


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """A text of a plain card; `reported` replaces it in the node output."""

    role: str
    text: str
    x: float
    y: float
    size: int
    color: tuple[int, int, int] = (30, 30, 40)
    reported: str | None = None


@dataclass(frozen=True, slots=True)
class PlainCard:
    """A card with a plain background."""

    fields: Mapping[str, object]
    items: Sequence[PlacedItem]
    size: tuple[int, int] = (1200, 630)
    ground: tuple[int, int, int] = (246, 240, 228)
    picture: Image.Image | None = None
    is_picture_shown: bool = True
    facts: Mapping[str, object] = field(default_factory=dict)

    def paint(self) -> Evidence:
        """Paint the card, and report the place of each text."""
        image = Image.new("RGB", self.size, self.ground)
        pen = ImageDraw.Draw(image)
        if self.picture is not None and self.is_picture_shown:
            image.paste(self.picture.convert("RGB").resize((420, 420)), (720, 100))
        boxes = []
        for item in self.items:
            path = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"
            font = ImageFont.truetype(str(path), item.size)
            pen.multiline_text((item.x, item.y), item.text, font=font, fill=item.color)
            x, y, right, bottom = pen.multiline_textbbox((item.x, item.y), item.text, font)
            boxes.append({
                "role": item.role, "text": item.reported or item.text, "x": x, "y": y,
                "width": right - x, "height": bottom - y, "font_size": item.size,
            })  # fmt: skip
        data = pictures.encode_picture(image)
        output: dict[str, object] = {
            "media_type": "image/png", "width": self.size[0], "height": self.size[1],
            "warnings": [], "missing_glyphs": [], "text_boxes": boxes, **self.facts,
        }  # fmt: skip
        picture = None if self.picture is None else pictures.encode_picture(self.picture)
        return _build_card(self.fields, output, data, picture, "")


def _build_card(
    fields: Mapping[str, object],
    facts: Mapping[str, object],
    data: bytes,
    picture: bytes | None,
    upstream: str,
) -> Evidence:
    blob = Blob(data, str(facts["media_type"]))
    images = {"image": Blob(picture, "image/png")} if picture else {}
    return build_evidence(CARD, fields, blob, upstream=upstream or None, pictures=images, **facts)
