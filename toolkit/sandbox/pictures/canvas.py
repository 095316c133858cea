"""A canvas measured from 0 to 1, drawn at twice its size for smooth edges, and its colours."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from PIL import Image, ImageChops, ImageDraw, ImageFilter

Color = tuple[int, int, int]

_COLOR_WORDS: dict[str, Color] = {
    "red": (196, 60, 58), "crimson": (170, 36, 62), "orange": (236, 138, 60),
    "amber": (240, 170, 66), "gold": (232, 184, 84), "golden": (232, 184, 84),
    "yellow": (240, 206, 92), "green": (70, 140, 96), "emerald": (34, 140, 108),
    "teal": (36, 136, 146), "turquoise": (64, 178, 178), "cyan": (84, 186, 208),
    "blue": (58, 112, 186), "navy": (32, 56, 108), "indigo": (74, 72, 158),
    "purple": (126, 82, 166), "violet": (138, 98, 188), "pink": (226, 132, 160),
    "magenta": (190, 70, 140), "brown": (134, 96, 70), "black": (36, 38, 46),
    "white": (236, 238, 240), "grey": (136, 142, 150), "gray": (136, 142, 150),
}  # fmt: skip

# Three colours of sky from the top down, the light's colour, and the tint of far land.
_SKIES: dict[str, tuple[tuple[Color, Color, Color, Color, Color], ...]] = {
    "night": (
        ((10, 16, 42), (28, 38, 82), (70, 74, 126), (240, 238, 218), (52, 58, 104)),
        ((8, 20, 38), (18, 48, 76), (52, 92, 118), (232, 240, 236), (40, 70, 96)),
    ),
    "dusk": (
        ((48, 44, 98), (176, 88, 122), (250, 178, 120), (255, 224, 170), (128, 84, 122)),
        ((30, 52, 104), (130, 100, 150), (248, 168, 134), (255, 214, 168), (104, 86, 134)),
    ),
    "dawn": (
        ((96, 142, 190), (216, 190, 200), (255, 222, 182), (255, 242, 206), (150, 150, 178)),
        ((120, 150, 204), (236, 186, 188), (255, 228, 196), (255, 246, 220), (168, 148, 172)),
    ),
    "day": (
        ((64, 138, 206), (142, 196, 228), (226, 240, 240), (255, 250, 224), (128, 164, 188)),
        ((52, 122, 178), (136, 190, 206), (244, 236, 212), (255, 246, 214), (126, 158, 170)),
        ((84, 160, 200), (166, 212, 218), (250, 240, 220), (255, 250, 230), (138, 172, 176)),
    ),
}
_TIME_WORDS = {
    "night": r"night|midnight|star|moon|aurora|space|galaxy|telescope|cosmos|dark",
    "dusk": r"sunset|dusk|evening|twilight|volcano|lava|jazz|warm",
    "dawn": r"sunrise|dawn|morning|mist|pastel|soft|bread|tea",
}
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours that a picture is drawn in."""

    time: str
    sky: tuple[Color, Color, Color]
    light: Color
    far: Color
    accent: Color
    near: Color


def mix_colors(first: Color, second: Color, share: float) -> Color:
    """Mix two colours: `share` 0 gives the first, 1 the second."""
    blended = [round(a + (b - a) * share) for a, b in zip(first, second, strict=True)]
    return blended[0], blended[1], blended[2]


def choose_palette(prompt: str, chance: random.Random) -> Palette:
    """Choose the palette for a prompt."""
    text = prompt.lower()
    accents = [_COLOR_WORDS[word] for word in re.findall(r"[a-z]+", text) if word in _COLOR_WORDS]
    time = next((t for t, words in _TIME_WORDS.items() if re.search(rf"\b(?:{words})", text)), None)
    time = time or chance.choice(("day", "day", "dusk", "dawn"))
    top, middle, low, light, far = chance.choice(_SKIES[time])
    accent = accents[0] if accents else chance.choice(tuple(_COLOR_WORDS.values())[:20])
    if accents:
        top, middle, far = (
            mix_colors(top, accent, 0.35),
            mix_colors(middle, accent, 0.28),
            mix_colors(far, accent, 0.3),
        )
    near = mix_colors(far, (14, 22, 34), 0.78)
    return Palette(time, (top, middle, low), light, far, accent, near)


class SceneCanvas:
    """A picture that is being drawn; x runs right and y down, both from 0 to 1."""

    def __init__(self, width: int, height: int) -> None:
        self._size = (width, height)
        self._scale = 2 if width * height <= 1024 * 1024 else 1
        self.w, self.h = width * self._scale, height * self._scale
        self.unit = min(self.w, self.h)  # radii and strokes keep their shape on any format
        self._image = Image.new("RGB", (self.w, self.h))
        self._draw = ImageDraw.Draw(self._image)

    def _scale_points(self, points: Sequence[Point]) -> list[Point]:
        return [(x * self.w, y * self.h) for x, y in points]

    def draw_gradient(self, colors: Sequence[Color], top: float, bottom: float) -> None:
        """Draw a vertical gradient between two heights; the last colour continues below."""
        first, last = int(top * self.h), max(1, int(bottom * self.h))
        column = Image.new("RGB", (1, last - first))
        steps = len(colors) - 1
        for y in range(last - first):
            place = y / max(1, last - first - 1) * steps
            index = min(int(place), steps - 1)
            column.putpixel((0, y), mix_colors(colors[index], colors[index + 1], place - index))
        self._image.paste(column.resize((self.w, last - first)), (0, first))
        if last < self.h:
            self._draw.rectangle((0, last, self.w, self.h), fill=colors[-1])

    def draw_glow(self, x: float, y: float, radius: float, color: Color, strength: float) -> None:
        """Draw a soft light around a point."""
        side = max(2, int(radius * self.unit * 2))
        mask = Image.radial_gradient("L").resize((side, side))
        mask = mask.point(
            [round(max(0.0, 1 - v / 181) ** 2.2 * 255 * strength) for v in range(256)]
        )
        left, top = int(x * self.w) - side // 2, int(y * self.h) - side // 2
        self._image.paste(Image.new("RGB", (side, side), color), (left, top), mask)

    def draw_disc(self, x: float, y: float, radius: float, color: Color) -> None:
        """Draw a filled circle."""
        r, cx, cy = radius * self.unit, x * self.w, y * self.h
        self._draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=color)

    def draw_polygon(self, points: Sequence[Point], color: Color) -> None:
        """Draw a filled polygon."""
        self._draw.polygon(self._scale_points(points), fill=color)

    def draw_line(self, points: Sequence[Point], color: Color, width: float) -> None:
        """Draw a line; `width` is a share of the shorter side."""
        pixels = max(1, round(width * self.unit))
        self._draw.line(self._scale_points(points), fill=color, width=pixels, joint="curve")

    def draw_veil(self, points: Sequence[Point], color: Color, alpha: float, blur: float) -> None:
        """Draw a translucent polygon with a soft edge: drawn small, then enlarged."""
        w, h = max(2, self.w // 4), max(2, self.h // 4)
        mask = Image.new("L", (w, h))
        area = [(x * w, y * h) for x, y in points]
        ImageDraw.Draw(mask).polygon(area, fill=round(255 * alpha))
        mask = mask.filter(ImageFilter.GaussianBlur(blur * min(w, h))).resize((self.w, self.h))
        self._image.paste(Image.new("RGB", self._image.size, color), (0, 0), mask)

    def draw_land(self, line: Callable[[float], float], color: Color, *, lighter: Color) -> None:
        """Fill everything under a line, lighter along its upper edge."""
        step = max(2, self.w // 320)
        top = [(x, line(x / self.w) * self.h) for x in range(0, self.w + step, step)]
        mask = Image.new("L", (self.w, self.h))
        ImageDraw.Draw(mask).polygon([*top, (self.w, self.h), (0, self.h)], fill=255)
        highest = min(y for _, y in top)
        column = Image.new("RGB", (1, self.h), color)
        reach = 0.16 * self.h
        for y in range(max(0, int(highest)), self.h):
            share = min(1.0, (y - highest) / reach)
            column.putpixel((0, y), mix_colors(lighter, color, share))
        self._image.paste(column.resize((self.w, self.h)), (0, 0), mask)

    def draw_reflection(self, horizon: float, share: float, tint: Color) -> None:
        """Draw the reflection of all above a horizon, dimmed, below it: still water."""
        y = int(horizon * self.h)
        depth = self.h - y
        above = self._image.crop((0, max(0, y - depth), self.w, y))
        flipped = above.transpose(Image.Transpose.FLIP_TOP_BOTTOM).resize((self.w, depth))
        flipped = flipped.filter(ImageFilter.GaussianBlur(self.unit * 0.006))
        plain = Image.new("RGB", flipped.size, tint)
        fade = Image.linear_gradient("L").resize(flipped.size)
        fade = fade.point(
            [round(min(255, 255 * share + v * (1 - share) * 0.9)) for v in range(256)]
        )
        self._image.paste(Image.composite(plain, flipped, fade), (0, y))

    def tint_palette(self, palette: Palette, color: Color) -> Palette:
        """Return the palette with its land mixed with a colour."""
        far = mix_colors(palette.far, color, 0.6)
        dark = mix_colors(color, (10, 18, 26), 0.86 if palette.time == "night" else 0.62)
        return replace(palette, far=far, near=dark)

    def render_image(self) -> Image.Image:
        """Return the picture at its own size, its corners a little darker."""
        image = self._image
        if self._scale > 1:
            image = image.resize(self._size, Image.Resampling.BOX)
        shade = Image.radial_gradient("L").resize(self._size)
        shade = shade.point([round(255 - max(0, v - 110) * 0.42) for v in range(256)])
        return ImageChops.multiply(image, Image.merge("RGB", (shade, shade, shade)))
