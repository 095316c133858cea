"""Pictures made by rule, good and spoiled, each by its seed."""

import io
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

Array = npt.NDArray[np.float64]
Draw = np.random.Generator
Size = tuple[int, int]
Color = tuple[int, int, int]


def encode_picture(image: Image.Image, kind: str = "PNG") -> bytes:
    """Encode a picture; JPEG and WebP at the quality that vendors use."""
    buffer = io.BytesIO()
    options = {"JPEG": {"quality": 90}, "WEBP": {"quality": 85}}.get(kind, {})
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def _to_image(array: Array) -> Image.Image:
    return Image.fromarray(np.clip(array, 0, 255).astype(np.uint8))


def _draw_color(draw: Draw, low: int = 0, high: int = 256) -> Color:
    red, green, blue = (int(value) for value in draw.integers(low, high, 3))
    return red, green, blue


def _blend(size: Size, *stops: Color) -> Array:
    places = np.linspace(0, len(stops) - 1, size[1])
    table = np.array(stops, float)
    rows = [np.interp(places, range(len(stops)), table[:, band]) for band in range(3)]
    return np.asarray(np.repeat(np.stack(rows, axis=1)[:, None], size[0], axis=1))


def _make_clouds(draw: Draw, size: Size, slope: float) -> Array:
    """Make a random field whose amplitude falls with frequency, from 0 to 1."""
    width, height = size
    noise = np.fft.rfft2(draw.standard_normal((height, width)))
    hz = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    hz[0, 0] = 1 / max(size)
    field = np.fft.irfft2(noise / hz**slope, (height, width))
    low, high = np.percentile(field, (0.5, 99.5))
    return np.asarray(np.clip((field - low) / (high - low), 0, 1))


def paint_nature(draw: Draw, size: Size) -> Image.Image:
    """Paint a landscape with the spectrum of photographs."""
    ground, light = _make_clouds(draw, size, 1.2), _make_clouds(draw, size, 1.6)
    dark, pale = np.array(_draw_color(draw, 0, 90)), np.array(_draw_color(draw, 130))
    mix = (0.6 * ground + 0.4 * light)[..., None]
    return _to_image(dark * (1 - mix) + pale * mix + draw.normal(0, 2, (size[1], size[0], 1)))


def paint_icon(draw: Draw, size: Size) -> Image.Image:
    """Paint an icon of two or three flat shapes in the middle of a plain ground."""
    image = Image.new("RGB", size, "white" if draw.random() < 0.7 else _draw_color(draw))
    pen = ImageDraw.Draw(image)
    cx, cy, radius = size[0] / 2, size[1] / 2, min(size) * draw.uniform(0.12, 0.35)
    pen.ellipse(
        (cx - radius, cy - radius, cx + radius, cy + radius), fill=_draw_color(draw, 0, 180)
    )
    inner = radius * draw.uniform(0.3, 0.6)
    pen.polygon(
        [(cx, cy - inner), (cx + inner, cy + inner), (cx - inner, cy + inner)],
        fill=_draw_color(draw, 180),
    )
    return image


def paint_night(draw: Draw, size: Size) -> Image.Image:
    """Paint a dark scene with few lights."""
    array = _blend(size, (4, 6, 16), _draw_color(draw, 6, 26), (3, 3, 8))
    image = _to_image(array + draw.normal(0, 1.2, (size[1], size[0], 1)))
    pen = ImageDraw.Draw(image)
    for _ in range(int(draw.integers(4, 40))):
        x, y = draw.uniform(0, size[0]), draw.uniform(size[1] * 0.3, size[1] * 0.9)
        tone = int(draw.integers(90, 230))
        pen.rectangle((x, y, x + 7, y + 10), fill=(tone, tone * 3 // 4, tone // 3))
    return image


def paint_sky(draw: Draw, size: Size) -> Image.Image:
    """Paint a sky, which is a gradient."""
    return _to_image(_blend(size, _draw_color(draw), _draw_color(draw, 100), _draw_color(draw)))


def paint_bokeh(draw: Draw, size: Size) -> Image.Image:
    """Paint lights that are out of focus, with the grain of a film."""
    image = Image.new("RGB", size, _draw_color(draw, 0, 50))
    pen = ImageDraw.Draw(image, "RGBA")
    for _ in range(int(draw.integers(12, 40))):
        x, y, r = draw.uniform(0, size[0]), draw.uniform(0, size[1]), draw.uniform(15, 60)
        pen.ellipse((x - r, y - r, x + r, y + r), fill=(*_draw_color(draw, 90), 120))
    image = image.filter(ImageFilter.GaussianBlur(float(draw.uniform(3, 9))))
    grain = draw.normal(0, draw.uniform(1, 3), (size[1], size[0], 1))
    return _to_image(np.asarray(image, float) + grain)


def paint_fog(draw: Draw, size: Size) -> Image.Image:
    """Paint pale shapes in pale fog."""
    array = (
        _blend(size, (228, 230, 232), (240, 240, 240))
        - 20 * _make_clouds(draw, size, 1.8)[..., None]
    )
    image = _to_image(array)
    for depth in range(3):
        layer = Image.new("L", size, 0)
        pen = ImageDraw.Draw(layer)
        for _ in range(3):
            x, width = draw.uniform(0, size[0]), 6 + 8 * depth
            pen.rectangle((x, 0, x + width, size[1] * 0.8), fill=255)
        tone = 215 - 25 * depth
        image.paste(
            (tone, tone, tone + 3), (0, 0), layer.filter(ImageFilter.GaussianBlur(4 - depth))
        )
    return _to_image(np.asarray(image, float) + draw.normal(0, 1, (size[1], size[0], 1)))


def paint_white_on_white(draw: Draw, size: Size) -> Image.Image:
    """Paint white shapes with pale shadows on a white background."""
    image = Image.new("RGB", size, (246, 248, 250))
    pen = ImageDraw.Draw(image)
    for _ in range(4):
        x, y, r = draw.uniform(0.2, 0.8) * size[0], draw.uniform(0.2, 0.8) * size[1], 0.15 * size[0]
        pen.ellipse(
            (x - r, y - r / 2, x + r, y + r / 2), fill=(228, 233, 240), outline=(214, 220, 230)
        )
    return image.filter(ImageFilter.GaussianBlur(1))


def paint_pattern(draw: Draw, size: Size) -> Image.Image:
    """Paint tiles that repeat."""
    side = int(draw.integers(40, 160))
    tile = Image.new("RGB", (side, side), _draw_color(draw, 200))
    pen = ImageDraw.Draw(tile)
    ink = _draw_color(draw, 0, 140)
    pen.ellipse((side * 0.2, side * 0.2, side * 0.8, side * 0.8), outline=ink, width=4)
    pen.line((0, 0, side, side), fill=ink, width=3)
    image = Image.new("RGB", size)
    for x in range(0, size[0], side):
        for y in range(0, size[1], side):
            image.paste(tile, (x, y))
    return image


def paint_texture(draw: Draw, size: Size) -> Image.Image:
    """Paint thousands of thin blades of grass, which look similar to noise."""
    image = Image.new("RGB", size, (30, 60, 20))
    pen = ImageDraw.Draw(image)
    for _ in range(size[0] * size[1] // 60):
        x, y, lean = draw.uniform(0, size[0]), draw.uniform(0, size[1]), draw.uniform(-5, 5)
        tone = int(draw.integers(50, 190))
        pen.line((x, y, x + lean, y - draw.uniform(5, 18)), fill=(tone // 2, tone, tone // 4))
    return image


def paint_confetti(draw: Draw, size: Size) -> Image.Image:
    """Paint confetti."""
    image = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(image)
    for _ in range(int(draw.integers(800, 6000))):
        x, y, r = draw.uniform(0, size[0]), draw.uniform(0, size[1]), draw.uniform(1, 5)
        pen.ellipse((x - r, y - r, x + r, y + r), fill=_draw_color(draw))
    return image


def paint_silhouettes(draw: Draw, size: Size) -> Image.Image:
    """Paint black towers and black ground in front of an evening sky."""
    image = _to_image(_blend(size, _draw_color(draw, 60), _draw_color(draw, 150)))
    pen = ImageDraw.Draw(image)
    horizon = size[1] * draw.uniform(0.7, 0.85)
    x = 0.0
    while x < size[0]:
        width, height = draw.uniform(20, 90), draw.uniform(20, 220)
        pen.rectangle((x, horizon - height, x + width, size[1]), fill=(8, 8, 10))
        x += width + draw.uniform(0, 40)
    pen.rectangle((0, horizon, size[0], size[1]), fill=(8, 8, 10))
    return image


def paint_poster(draw: Draw, size: Size) -> Image.Image:
    """Paint bold blocks of colour; a block may fill the lower third."""
    image = Image.new("RGB", size, _draw_color(draw, 180))
    pen = ImageDraw.Draw(image)
    for _ in range(int(draw.integers(3, 14))):
        x, y = draw.uniform(0, size[0]), draw.uniform(0, size[1])
        pen.rectangle(
            (x, y, x + draw.uniform(30, 400), y + draw.uniform(30, 400)), fill=_draw_color(draw)
        )
    if draw.random() < 0.5:
        pen.rectangle((0, size[1] * 0.7, *size), fill=_draw_color(draw))
    return image


def paint_cut_out(draw: Draw, size: Size) -> Image.Image:
    """Paint a sticker on a ground that is transparent."""
    image = Image.new("RGBA", size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    width, height = size
    pen.ellipse(
        (width * 0.2, height * 0.2, width * 0.8, height * 0.8), fill=(*_draw_color(draw), 255)
    )
    pen.ellipse((width * 0.35, height * 0.4, width * 0.42, height * 0.5), fill=(20, 20, 20, 255))
    pen.ellipse((width * 0.58, height * 0.4, width * 0.65, height * 0.5), fill=(20, 20, 20, 255))
    return image


GOOD_PAINTERS: tuple[Callable[[Draw, Size], Image.Image], ...] = (
    paint_nature, paint_icon, paint_night, paint_sky, paint_bokeh, paint_fog, paint_white_on_white,
    paint_pattern, paint_texture, paint_confetti, paint_silhouettes, paint_poster, paint_cut_out,
)  # fmt: skip


def paint_good(seed: int, size: Size = (512, 512)) -> Image.Image:
    """Paint a good picture; the seed selects the kind."""
    draw = np.random.default_rng(seed)
    return GOOD_PAINTERS[seed % len(GOOD_PAINTERS)](draw, size)


def name_good(seed: int) -> str:
    """Name the kind of a good picture, as a prompt would."""
    name = GOOD_PAINTERS[seed % len(GOOD_PAINTERS)].__name__
    return name.removeprefix("paint_").replace("_", " ")


def make_blank(size: Size, color: Color, grain: float = 0, seed: int = 0) -> Image.Image:
    """Make a picture of a single colour with noise of an amplitude."""
    noise = np.random.default_rng(seed).normal(0, grain, (size[1], size[0], 3))
    return _to_image(np.array(color, float) + noise)


def make_noise(seed: int, size: Size, block: int = 1, *, grey: bool = False) -> Image.Image:
    """Make random pixels, or random blocks of pixels."""
    draw = np.random.default_rng(seed)
    shape = (-(-size[1] // block), -(-size[0] // block), 1 if grey else 3)
    small = np.broadcast_to(draw.integers(0, 256, shape), (*shape[:2], 3))
    return _to_image(np.kron(small, np.ones((block, block, 1)))[: size[1], : size[0]])


def make_half_flat(
    image: Image.Image, color: tuple[int, int, int], start: float, side: int
) -> Image.Image:
    """Fill a picture from `start` on; `side` counts from the bottom, anticlockwise."""
    canvas = image.convert("RGB").rotate(-90 * side, expand=True)
    canvas.paste(color, (0, round(start * canvas.height), canvas.width, canvas.height))
    return canvas.rotate(90 * side, expand=True)


def make_enlarged(image: Image.Image, width: int, way: Image.Resampling) -> Image.Image:
    """Shrink a picture to a width, and enlarge it again."""
    tiny = (width, max(1, width * image.height // image.width))
    return image.convert("RGB").resize(tiny, Image.Resampling.BOX).resize(image.size, way)
