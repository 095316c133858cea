"""Measures of pictures: visible content, noise, dead areas, detail, and the texts of cards.

Import it inside functions, because it loads numpy and Pillow.
"""

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from toolkit.media.pictures import MAX_PIXELS

Floats = npt.NDArray[np.float32]
Pixels = npt.NDArray[np.uint8]

_VISIBLE_ALPHA = 16
_OVERVIEW_SIDE = 128  # cells a side of a picture as seen from far away
_NOISE_BLOCKS = (1, 2, 3, 4, 6, 8, 12, 16)
_MIN_NOISE_SIDE, _MIN_NOISE_SPREAD = 24, 10.0
_FLAT_STEP, _MAX_NOISE_FLAT = 6, 0.12  # levels: neighbours that differ by less look the same
_MIN_DEAD_SHARE = 0.1
_SAME_LEVELS = 3
_TEXTURED_BELOW = 0.1  # the share of neighbours that are the same
_MIN_CUT_STEPS = 0.05
_DETAIL_TIMES = 2
_TURN_STEP = 8  # levels
_MIN_BLOCK_COLORS = 64
_HASH_SIDE = 8
Rectangle = tuple[float, float, float, float]  # left, top, width, height
_SHADES = 8  # steps of each channel in which colours are compared
_COMMON_SHARE = 0.01  # colours that are rarer in a picture are ignored
_THERE_SHARE = 0.0005
_EDGE_STEP, _MIN_EDGES = 8, 0.005


@dataclass(frozen=True, slots=True)
class PictureMeasures:
    """The measures of a picture, which the checks of a review compare with thresholds.

    Attributes:
        kind: format, such as `PNG`.
        visible_share: share of the pixels that are not transparent.
        contrast: difference between the lightest and darkest parts, seen from far, from 0 to 255,
            in the channel with the largest difference.
        noise: randomness of the pixels: 1 minus the correlation of neighbours; 0 if the picture
            has flat areas.
        dead_share: share of the picture, starting at an edge, that is one colour and no content.
        finest_detail: loss of its sharpest places when its size is halved, from 0 to 255.
        turns: mean number of turns from lighter to darker or back, along a row plus a column.
        block: side of its square blocks of one colour, in pixels; 1 if it has no blocks.
        fingerprint: perceptual hash; pictures that look the same share its bits.
    """

    kind: str
    width: int
    height: int
    visible_share: float
    contrast: float
    noise: float
    dead_share: float
    finest_detail: float
    turns: float
    block: int
    fingerprint: int


def measure_picture(data: bytes) -> PictureMeasures | None:
    """Measure a picture; returns None if it does not open, is cut off or unpacks too large."""
    opened = _open_picture(data)
    if opened is None:
        return None
    image, kind = opened
    visible = 1.0
    if image.mode == "RGBA":
        visible = float((np.asarray(image.getchannel("A")) >= _VISIBLE_ALPHA).mean())
        image = _lay_on_white(image)
    pixels = np.asarray(image)
    plain = image.convert("L")
    grey = np.asarray(plain)
    overview = image.resize(
        (min(_OVERVIEW_SIDE, image.width), min(_OVERVIEW_SIDE, image.height)),
        Image.Resampling.BOX, reducing_gap=2,
    )  # fmt: skip
    return PictureMeasures(
        kind=kind,
        width=image.width,
        height=image.height,
        visible_share=visible,
        contrast=_measure_contrast(np.asarray(overview, np.float32)),
        noise=_measure_noise(grey.astype(np.float32)),
        dead_share=max(_measure_dead_rows(np.rot90(pixels, turns)) for turns in range(4)),
        finest_detail=_measure_loss(plain),
        turns=_count_turns(plain),
        block=_find_block(grey, pixels),
        fingerprint=_make_fingerprint(overview),
    )


def open_pixels(data: bytes) -> Pixels | None:
    """Return a picture's pixels, laid on white, or None if it does not open."""
    opened = _open_picture(data)
    return None if opened is None else np.asarray(_lay_on_white(opened[0]))


def _lay_on_white(image: Image.Image) -> Image.Image:
    if image.mode != "RGBA":
        return image
    ground = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(ground, image).convert("RGB")


def _open_picture(data: bytes) -> tuple[Image.Image, str] | None:
    """Open a picture as RGB, or as RGBA if it has transparency, and return it with its format.

    Returns None if it does not open or is too large.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data)) as opened:
                if opened.width * opened.height > MAX_PIXELS:
                    return None
                opened.load()
                kind = opened.format or ""
                clear = opened.mode in ("RGBA", "LA", "PA") or "transparency" in opened.info
                return opened.convert("RGBA" if clear else "RGB"), kind
    except (
        UnidentifiedImageError,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
        OSError,
        ValueError,
        SyntaxError,
    ):
        return None


def _measure_contrast(cells: Floats) -> float:
    """Measure the contrast between parts of a picture; noise and grain average out in a part."""
    low, high = np.percentile(cells.reshape(-1, 3), (0.1, 99.9), axis=0)
    return float((high - low).max())


def _measure_noise(grey: Floats) -> float:
    """Measure how little neighbouring pixels correlate, at the scale with the least correlation."""
    noise = 0.0
    for block in _NOISE_BLOCKS:
        part = grey[block // 2 :: block, block // 2 :: block][:256, :256]
        if min(part.shape) < _MIN_NOISE_SIDE:
            break
        centred = part - part.mean()
        spread = float((centred**2).mean())
        if spread < _MIN_NOISE_SPREAD**2:
            break
        flat = float((np.abs(np.diff(part, axis=1)) < _FLAT_STEP).mean())
        if flat > _MAX_NOISE_FLAT:
            continue
        if block > 1 and not _has_blocks(grey, block):
            continue
        across = float((centred[:, 1:] * centred[:, :-1]).mean()) / spread
        down = float((centred[1:] * centred[:-1]).mean()) / spread
        noise = max(noise, 1 - max(abs(across), abs(down)))
    return noise


def _has_blocks(grey: Floats, block: int) -> bool:
    """Check whether most changes along rows are at columns of the same distance."""
    steps = np.abs(np.diff(grey[:256, :512], axis=1)).sum(axis=0)
    sums = [float(steps[start::block].sum()) for start in range(block)]
    return max(sums) > max(0.4, 1.6 / block) * sum(sums)


def _measure_dead_rows(pixels: Pixels) -> float:
    """Measure the share of dead rows at the end: rows of one colour that are no content.

    They are dead if they are flat below a part with the texture of a photograph. They are also
    dead if the picture breaks off along one line, as if it continued behind them.
    """
    height, width = pixels.shape[:2]
    color = pixels[-1, -1].astype(np.int16)
    sample = pixels[:, :: max(1, width // 64)]
    same = (np.abs(sample - color) <= _SAME_LEVELS).all(axis=(1, 2))
    dead = height if same.all() else height - int(np.flatnonzero(~same)[-1]) - 1
    # Only some pixels of each row were sampled, so the first dead row may be lower.
    while 0 < dead < height:
        if (np.abs(pixels[height - dead] - color) <= _SAME_LEVELS).all():
            break
        dead -= 1
    if not _MIN_DEAD_SHARE * height < dead < height * 0.95:
        return 0.0
    above = pixels[: height - dead]
    # A few rows above, because lossy formats smear the line at which the picture breaks off.
    last = above[max(0, len(above) - 8)].astype(np.int16)
    differs = np.abs(last - color).max(axis=1)
    rows = above[:: max(1, len(above) // 64)].astype(np.int16)
    if float((np.abs(np.diff(rows, axis=1)).max(axis=2) == 0).mean()) < _TEXTURED_BELOW:
        return dead / height if float((differs > _SAME_LEVELS).mean()) > 0.5 else 0.0
    steps = float((np.abs(np.diff(last, axis=0)).max(axis=1) > 0).mean())
    is_cut = float((differs > 8).mean()) > 0.9 and steps > _MIN_CUT_STEPS
    return dead / height if is_cut else 0.0


def _measure_loss(plain: Image.Image) -> float:
    """Measure the finest detail of a picture: its loss when the size is halved."""
    small = _shrink(plain, _DETAIL_TIMES)
    back = np.asarray(small.resize(plain.size, Image.Resampling.BICUBIC), np.int16)
    lost = np.abs(back - np.asarray(plain)).ravel()
    return float(np.percentile(lost, 99.95))


def _shrink(plain: Image.Image, times: int) -> Image.Image:
    size = max(1, plain.width // times), max(1, plain.height // times)
    return plain.resize(size, Image.Resampling.BOX)


def _count_turns(plain: Image.Image) -> float:
    """Count the mean number of turns from lighter to darker or back, by row plus by column."""
    cells = np.asarray(_shrink(plain, 8), np.float32)
    return sum(
        float(np.mean([_count_line_turns(line) for line in lines[:: max(1, len(lines) // 24)]]))
        for lines in (cells.tolist(), cells.T.tolist())
    )


def _count_line_turns(line: list[float]) -> int:
    low = high = line[0]
    way = turns = 0
    for value in line:
        low, high = min(low, value), max(high, value)
        if way >= 0 and value < high - _TURN_STEP:
            turns, way, low = turns + (way != 0), -1, value
        elif way <= 0 and value > low + _TURN_STEP:
            turns, way, high = turns + (way != 0), 1, value
    return turns


def _find_block(grey: Pixels, pixels: Pixels) -> int:
    """Find the side in pixels of the one-colour blocks that make up a picture; 1 without blocks."""
    sides = [_find_run(grey[:: max(1, len(grey) // 48)])]
    if sides[0] > 1:
        sides = [_find_run(grey), _find_run(grey.T)]
    if min(sides) < 2:
        return 1
    cells = pixels[:: min(sides), :: min(sides)].reshape(-1, 3)
    few = len(np.unique(cells, axis=0)) < _MIN_BLOCK_COLORS  # such as pixel art
    return 1 if few else min(sides)


def _find_run(rows: Pixels) -> int:
    """Find the least distance between columns with changes; 1 if they do not fill that grid."""
    places = np.flatnonzero((rows[:, 1:] != rows[:, :-1]).any(axis=0)) + 1
    if len(places) < 8:
        return 1
    gap = int(np.diff(places).min())
    return gap if len(places) * gap > 0.7 * rows.shape[1] else 1


def _make_fingerprint(overview: Image.Image) -> int:
    """Make a bit for each channel of each cell: whether the cell to its right is lighter."""
    small = overview.resize((_HASH_SIDE + 1, _HASH_SIDE), Image.Resampling.BOX)
    cells = np.asarray(small, np.int16)
    bits = (cells[:, 1:] > cells[:, :-1]).ravel()
    return int.from_bytes(np.packbits(bits).tobytes(), "big")


def measure_text_contrasts(data: bytes, boxes: Sequence[Rectangle]) -> list[float] | None:
    """Measure the WCAG 2 contrast between each rectangle's lightest and darkest parts.

    Returns:
        contrast ratios from 1, if nothing is drawn, to 21. The ratio is 21 if a rectangle is too
        small to be measured. Returns None if the picture does not open.
    """
    pixels = open_pixels(data)
    if pixels is None:
        return None
    return [_measure_text_contrast(pixels, box) for box in boxes]


def _measure_text_contrast(pixels: Pixels, box: Rectangle) -> float:
    left, top, width, height = box
    part = pixels[
        max(0, int(top)) : max(0, int(top + height)), max(0, int(left)) : max(0, int(left + width))
    ]
    if part.shape[0] < 4 or part.shape[1] < 4:
        return 21.0
    light = _to_luminance(part)
    # Letters have edges all over; a background that fades from light to dark has none.
    if float((np.abs(np.diff(part.mean(axis=2), axis=1)) > _EDGE_STEP).mean()) < _MIN_EDGES:
        return 1.0
    low, high = np.percentile(light, (1, 99))
    return float((high + 0.05) / (low + 0.05))


def _to_luminance(pixels: Pixels) -> npt.NDArray[np.float64]:
    """Return the relative luminance of pixels, as WCAG 2 defines it."""
    levels = np.arange(256) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear[pixels] @ np.array([0.2126, 0.7152, 0.0722]))


def measure_shown_share(card: bytes, picture: bytes) -> float | None:
    """Measure how much of a picture's colours are on a card: all or most if it is shown.

    A card crops a picture to its frame and may darken it. If the picture is not shown, at most the
    colours that the card has anyway are found.

    Returns:
        the share of the picture's area whose colours are there, or None if a file does not open.
    """
    card_pixels, picture_pixels = open_pixels(card), open_pixels(picture)
    if card_pixels is None or picture_pixels is None:
        return None
    on_card, of_picture = _count_colors(card_pixels), _count_colors(picture_pixels)
    common = of_picture >= _COMMON_SHARE
    matches = common & (on_card >= _THERE_SHARE)
    return float(of_picture[matches].sum() / max(1e-9, float(of_picture[common].sum())))


def _count_colors(pixels: Pixels) -> npt.NDArray[np.float64]:
    """Count quantized colours, as shares of all pixels."""
    step = max(1, int((pixels.shape[0] * pixels.shape[1] / 250_000) ** 0.5))
    steps = pixels[::step, ::step].reshape(-1, 3).astype(np.int32) * _SHADES // 256
    keys = (steps[:, 0] * _SHADES + steps[:, 1]) * _SHADES + steps[:, 2]
    return np.bincount(keys, minlength=_SHADES**3) / len(keys)
