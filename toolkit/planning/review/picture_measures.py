"""Measures of pictures: what they contain."""

import io
import re
from dataclasses import dataclass

MAX_PIXELS = 64_000_000  # a small file may unpack to gigabytes
_SVG_TAG = re.compile(rb"<svg\b[^>]{0,2000}>")
_SVG_SIDE = re.compile(rb"\s(width|height)=[\"']([\d.]+)(?:px)?[\"']", re.I)


@dataclass(frozen=True, slots=True)
class ImageMeasures:
    """The measures of an image.

    Attributes:
        spread: the standard deviation of its most varied channel, of 255.
        entropy: bits per pixel of its grey values.
        edges: the share of its pixels that lie on an edge.
    """

    width: int
    height: int
    spread: float
    entropy: float
    edges: float

    @property
    def is_blank(self) -> bool:
        """True if it shows nothing: one colour, or changes too faint to be seen."""
        return self.spread < 2.0 or (self.edges < 0.0005 and self.entropy < 2.0)


def measure_image(data: bytes) -> ImageMeasures | None:
    """Measure an image; none if it does not open, is cut off or unpacks to too much."""
    from PIL import Image, ImageFilter, ImageStat, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as opened:
            width, height = opened.size
            if width * height > MAX_PIXELS:
                return None
            opened.load()
            image = opened.convert("RGBA")
    except (
        UnidentifiedImageError,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,  # where warnings are errors
        OSError,
        ValueError,
        SyntaxError,
    ):
        return None
    ground = Image.new("RGBA", image.size, (255, 255, 255, 255))
    flat = Image.alpha_composite(ground, image).convert("RGB")
    spread = max(ImageStat.Stat(flat).stddev)
    grey = flat.convert("L")
    outlined = grey.filter(ImageFilter.FIND_EDGES)
    if min(grey.size) > 4:
        # The filter leaves the outermost pixels unchanged, which are no edges.
        outlined = outlined.crop((1, 1, grey.width - 1, grey.height - 1))
    strong = sum(outlined.histogram()[24:])
    return ImageMeasures(width, height, spread, grey.entropy(), strong / (width * height))


def read_svg_size(data: bytes) -> tuple[int, int] | None:
    """Read the size of a complete SVG picture; none if it is incomplete or does not say."""
    if b"</svg>" not in data[-64:]:
        return None
    tag = _SVG_TAG.search(data)
    sides = dict(_SVG_SIDE.findall(tag.group())) if tag else {}
    try:
        return round(float(sides[b"width"])), round(float(sides[b"height"]))
    except (KeyError, ValueError):
        return None
