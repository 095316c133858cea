"""The painter that turns a scene into a PNG file."""

import io
import math

from PIL import Image, ImageDraw

from toolkit.capabilities._card._fonts import Fonts
from toolkit.capabilities._card._scene import (
    Box,
    ClippedGroup,
    Disc,
    Fade,
    Layer,
    PictureLayer,
    Polygon,
    RoundRect,
    Scene,
    Solid,
    TextBox,
)

# Shapes are drawn this many times larger and scaled down, which smooths their edges. Shapes of over
# a megapixel get less: their steps are relatively small, but their memory is not.
_FINE_ZOOM, _COARSE_ZOOM = 4, 2
_LARGE_SHAPE_PIXELS = 1_000_000


def paint_png(scene: Scene, fonts: Fonts) -> bytes:
    """Paint a scene as a PNG file, with the fonts that it was laid out with."""
    canvas = Image.new("RGB", (scene.width, scene.height))
    for layer in scene.layers:
        _draw_layer(canvas, layer, (0, 0))
    draw = ImageDraw.Draw(canvas)
    for box in scene.texts:
        _draw_text(draw, box, fonts)
    buffer = io.BytesIO()
    canvas.save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()


def _draw_text(draw: ImageDraw.ImageDraw, box: TextBox, fonts: Fonts) -> None:
    for line in box.lines:
        for font, part, offset, _ in fonts.place_runs(line.text, box.font_size, box.bold, line.rtl):
            draw.text(
                (line.x + offset, line.baseline),
                part,
                fill=box.color,
                font=font,
                anchor="ls",
                direction=fonts.get_direction(line.rtl),
            )


def _draw_layer(canvas: Image.Image, layer: Layer, origin: tuple[float, float]) -> None:
    """Draw one layer on a canvas that shows the card from the point `origin` on."""
    if isinstance(layer, ClippedGroup):
        area = _to_pixels(layer.clip, (0, 0), canvas.size)
        tile = canvas.crop(area)
        for shape in layer.shapes:
            _draw_layer(tile, shape, (area[0], area[1]))
        _paste_tile(canvas, tile, layer.clip, layer.radius)
    elif isinstance(layer, PictureLayer):
        _paste_tile(canvas, layer.image, layer.box, layer.radius)
    elif isinstance(layer, Fade):
        _draw_fade(canvas, layer, origin)
    else:
        _draw_shape(canvas, layer, origin)


def _paste_tile(canvas: Image.Image, tile: Image.Image, box: Box, radius: float) -> None:
    place = (round(box.x), round(box.y))
    if radius <= 0:
        canvas.paste(tile, place)
        return
    mask = Image.new("L", tile.size)
    _fill_shape_mask(mask, RoundRect(Box(0, 0, *tile.size), radius, (0, 0, 0)), (0, 0))
    canvas.paste(tile, place, mask)


def _draw_fade(canvas: Image.Image, fade: Fade, origin: tuple[float, float]) -> None:
    area = _to_pixels(fade.box, origin, canvas.size)
    wide, tall = area[2] - area[0], area[3] - area[1]
    strip = Image.new("RGBA", (1, tall))
    for y in range(tall):
        strip.putpixel((0, y), _interpolate_stops(fade, (y + 0.5) / tall))
    sheet = strip.resize((wide, tall), Image.Resampling.NEAREST)
    canvas.paste(sheet.convert("RGB"), area, sheet.getchannel("A"))


def _interpolate_stops(fade: Fade, at: float) -> tuple[int, int, int, int]:
    before = fade.stops[0]
    for after in fade.stops:
        if at < after[0]:
            share = (at - before[0]) / (after[0] - before[0])
            red, green, blue = (
                round(a + (b - a) * share) for a, b in zip(before[1], after[1], strict=True)
            )
            return red, green, blue, round(255 * (before[2] + (after[2] - before[2]) * share))
        before = after
    return *before[1], round(255 * before[2])


def _draw_shape(canvas: Image.Image, shape: Solid, origin: tuple[float, float]) -> None:
    area = _to_pixels(_find_bounds(shape), origin, canvas.size)
    if area[2] <= area[0] or area[3] <= area[1]:
        return
    mask = Image.new("L", (area[2] - area[0], area[3] - area[1]))
    _fill_shape_mask(mask, shape, (origin[0] + area[0], origin[1] + area[1]))
    canvas.paste(shape.color, area, mask)


def _find_bounds(shape: Solid) -> Box:
    if isinstance(shape, Disc):
        side = 2 * shape.radius
        return Box(shape.cx - shape.radius, shape.cy - shape.radius, side, side)
    if isinstance(shape, Polygon):
        xs, ys = zip(*shape.points, strict=True)
        return Box(min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))
    return shape.box


def _to_pixels(
    box: Box, origin: tuple[float, float], size: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the whole pixels of a canvas that a box touches."""
    left, top = math.floor(box.x - origin[0]), math.floor(box.y - origin[1])
    right, bottom = math.ceil(box.right - origin[0]), math.ceil(box.bottom - origin[1])
    return max(0, left), max(0, top), min(size[0], right), min(size[1], bottom)


def _fill_shape_mask(mask: Image.Image, shape: Solid, origin: tuple[float, float]) -> None:
    """Fill a mask, whose corner lies at `origin`, with the part of a shape that lies over it."""
    wide, tall = mask.size
    zoom = _FINE_ZOOM if wide * tall <= _LARGE_SHAPE_PIXELS else _COARSE_ZOOM
    large = Image.new("L", (wide * zoom, tall * zoom))
    draw = ImageDraw.Draw(large)

    def at(x: float, y: float) -> tuple[float, float]:
        # Pillow counts a pixel by its middle, geometry by its edge.
        return (x - origin[0]) * zoom - 0.5, (y - origin[1]) * zoom - 0.5

    if isinstance(shape, Disc):
        value = round(255 * shape.alpha)
        for radius, fill in ((shape.radius, value), (shape.hole, 0)):
            if radius > 0:
                low = at(shape.cx - radius, shape.cy - radius)
                draw.ellipse((*low, *at(shape.cx + radius, shape.cy + radius)), fill=fill)
    elif isinstance(shape, Polygon):
        draw.polygon([at(x, y) for x, y in shape.points], fill=round(255 * shape.alpha))
    else:
        low, high = at(shape.box.x, shape.box.y), at(shape.box.right, shape.box.bottom)
        radius = min(shape.radius, shape.box.w / 2, shape.box.h / 2) * zoom
        value = round(255 * shape.alpha)
        draw.rounded_rectangle((*low, *high), radius, fill=value)
    mask.paste(large.reduce(zoom))
