"""A canvas measured from 0 to 1, drawn at twice its size so that edges come out smooth."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from toolkit.sandbox.pictures.palette import Color, Palette, mix_colors

Point = tuple[float, float]


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

    def draw_disc(
        self, x: float, y: float, radius: float, color: Color, alpha: float = 1.0
    ) -> None:
        """Draw a filled circle."""
        r, cx, cy = radius * self.unit, x * self.w, y * self.h
        box = (cx - r, cy - r, cx + r, cy + r)
        if alpha >= 1:
            self._draw.ellipse(box, fill=color)
            return
        mask = Image.new("L", (self.w, self.h))
        ImageDraw.Draw(mask).ellipse(box, fill=round(255 * alpha))
        self._image.paste(Image.new("RGB", self._image.size, color), (0, 0), mask)

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
