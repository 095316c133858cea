"""Pictures drawn for a prompt: a sky with its light, above layers of land or above a sea."""

import io
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

from PIL import Image, ImageChops, ImageDraw, ImageFilter

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Color = tuple[int, int, int]
_COLOR_WORDS: dict[str, Color] = {
    "red": (196, 60, 58), "orange": (236, 138, 60), "gold": (232, 184, 84),
    "yellow": (240, 206, 92), "green": (70, 140, 96), "teal": (36, 136, 146),
    "cyan": (84, 186, 208), "blue": (58, 112, 186), "indigo": (74, 72, 158),
    "purple": (126, 82, 166), "pink": (226, 132, 160), "brown": (134, 96, 70),
}  # fmt: skip
# Of each time of day: its words, three colours of the sky from the top down, and of the light.
_TIMES: tuple[tuple[str, tuple[Color, Color, Color], Color], ...] = (
    (r"night|star|moon|aurora|space|galaxy|dark", ((10, 16, 42), (28, 38, 82), (70, 74, 126)),
     (240, 238, 218)),
    (r"sunset|dusk|evening|volcano|jazz|warm", ((48, 44, 98), (176, 88, 122), (250, 178, 120)),
     (255, 224, 170)),
    (r"sunrise|dawn|morning|mist|soft|bread", ((96, 142, 190), (216, 190, 200), (255, 222, 182)),
     (255, 242, 206)),
    ("", ((64, 138, 206), (142, 196, 228), (226, 240, 240)), (255, 250, 224)),
)  # fmt: skip
_SEA_WORDS = re.compile(
    r"\b(?:sea|ocean|tid(?:e|al)|coast|beach|wave|island|harbou?r|ship|reef|coral|water|bay)"
)
_SHADE: Color = (14, 22, 34)


@dataclass(frozen=True, slots=True)
class _Palette:
    """The colours of a picture: of its sky from the top down, its light, and its land."""

    sky: tuple[Color, Color, Color]
    light: Color
    far: Color
    near: Color


def draw_picture(
    prompt: str, *, width: int = 1024, height: int = 1024, steps: int = 25, seed: int = 0
) -> bytes:
    """Draw a PNG that depends on the arguments alone."""
    text = prompt.strip().lower()
    chance = random.Random(f"{seed}|{text}")  # noqa: S311 - not for secrets
    palette = _choose_palette(text, chance)
    scale = 2 if width * height <= 1024 * 1024 else 1  # for smooth edges
    picture = Image.new("RGB", (width * scale, height * scale))
    _draw_sky(picture, palette, chance)
    if _SEA_WORDS.search(text):
        horizon = chance.uniform(0.5, 0.56)
        _draw_ridges(picture, palette, chance, 2, top=horizon - 0.05, bottom=horizon - 0.015)
        _draw_sea(picture, palette, chance, horizon)
    else:
        layers = max(2, min(7, 2 + steps // 6))
        _draw_ridges(picture, palette, chance, layers, top=0.5, bottom=0.88)
    return _encode_png(picture.resize((width, height), Image.Resampling.BOX), prompt)


def _choose_palette(text: str, chance: random.Random) -> _Palette:
    sky, light = next(
        (sky, light) for words, sky, light in _TIMES if re.search(rf"\b(?:{words})", text)
    )
    accents = [_COLOR_WORDS[word] for word in re.findall(r"[a-z]+", text) if word in _COLOR_WORDS]
    accent = accents[0] if accents else chance.choice(tuple(_COLOR_WORDS.values()))
    far = _mix(sky[1], accent, 0.45)
    return _Palette((_mix(sky[0], accent, 0.2), sky[1], sky[2]), light, far, _mix(far, _SHADE, 0.7))


def _mix(first: Color, second: Color, share: float) -> Color:
    """Mix two colours: `share` 0 gives the first, 1 the second."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def _draw_sky(picture: "Picture", palette: _Palette, chance: random.Random) -> None:
    """Draw a gradient, and a sun or moon with its glow."""
    width, height = picture.size
    picture.paste(_make_gradient(palette.sky, height).resize(picture.size))
    x, y = chance.uniform(0.2, 0.8) * width, chance.uniform(0.16, 0.4) * height
    radius = chance.uniform(0.05, 0.08) * min(width, height)
    side = round(radius * 14)
    glow = Image.radial_gradient("L").resize((side, side))
    glow = glow.point([round(max(0.0, 1 - value / 181) ** 2.2 * 150) for value in range(256)])
    picture.paste(palette.light, (round(x) - side // 2, round(y) - side // 2), glow)
    disc = (x - radius, y - radius, x + radius, y + radius)
    ImageDraw.Draw(picture).ellipse(disc, fill=palette.light)


def _make_gradient(colors: Sequence[Color], height: int) -> "Picture":
    """Make a column of pixels that runs through some colours."""
    column = Image.new("RGB", (1, len(colors)))
    column.putdata(colors)
    return column.resize((1, height), Image.Resampling.BILINEAR)


def _draw_ridges(
    picture: "Picture",
    palette: _Palette,
    chance: random.Random,
    layers: int,
    *,
    top: float,
    bottom: float,
) -> None:
    """Draw layers of land, paler and rougher with distance, each lighter at its upper edge."""
    width, height = picture.size
    for layer in range(layers):
        share = (layer + 1) / layers
        line = _make_line(chance, top + (bottom - top) * share, 0.06 * (1.15 - 0.6 * share))
        color = _mix(palette.far, palette.near, share)
        edge = [(x, line(x / width) * height) for x in range(0, width + 4, 4)]
        mask = Image.new("L", picture.size)
        ImageDraw.Draw(mask).polygon([*edge, (width, height), (0, height)], fill=255)
        highest = max(0, round(min(y for _, y in edge)))
        shades = (_mix(color, palette.light, 0.2), color)
        land = Image.new("RGB", picture.size, color)
        reach = round(0.16 * height)
        land.paste(_make_gradient(shades, reach).resize((width, reach)), (0, highest))
        picture.paste(land, mask=mask)


def _make_line(chance: random.Random, level: float, rough: float) -> Callable[[float], float]:
    """Make the height of a ridge across the picture: sine waves of falling size."""
    waves = [
        (rough / 1.9**n, chance.uniform(0.8, 1.3) * 1.9**n, chance.uniform(0, math.tau))
        for n in range(5)
    ]
    return lambda x: level + sum(a * math.sin(f * x * math.tau + p) for a, f, p in waves)


def _draw_sea(picture: "Picture", palette: _Palette, chance: random.Random, horizon: float) -> None:
    """Draw water that mirrors all above the horizon, with glints that widen towards the viewer."""
    width, height = picture.size
    y = round(horizon * height)
    depth = height - y
    mirrored = picture.crop((0, y - depth, width, y)).transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    mirrored = mirrored.filter(ImageFilter.GaussianBlur(0.006 * min(width, height)))
    deep = _mix(palette.near, (18, 84, 110), 0.5)
    picture.paste(Image.blend(mirrored, Image.new("RGB", mirrored.size, deep), 0.5), (0, y))
    draw = ImageDraw.Draw(picture)
    for _ in range(360):
        share = chance.random()
        left, length = chance.random() * width, (0.01 + 0.07 * share) * width
        line = y + 2 + share * depth
        color = _mix(deep, palette.light, chance.uniform(0.15, 0.6))
        draw.line([(left, line), (left + length, line)], color, max(1, round(0.003 * height)))


def _encode_png(picture: "Picture", prompt: str) -> bytes:
    """Encode a picture, its corners a little darker, with a note that no model drew it."""
    from PIL.PngImagePlugin import PngInfo

    shade = Image.radial_gradient("L").resize(picture.size)
    shade = shade.point([round(255 - max(0, value - 110) * 0.42) for value in range(256)])
    note = PngInfo()
    note.add_text("Software", "sandbox picture drawn by rule, not by a model")
    note.add_text("Comment", f"prompt {crc32(prompt.encode()):08x}")
    buffer = io.BytesIO()
    shaded = ImageChops.multiply(picture, Image.merge("RGB", (shade, shade, shade)))
    shaded.save(buffer, "PNG", pnginfo=note, compress_level=6)
    return buffer.getvalue()
