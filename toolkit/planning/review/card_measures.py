"""Measures of a card's picture: how its texts stand out, and how much of a picture is on it.

Import it where it is needed: it loads numpy and Pillow.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from toolkit.planning.review.picture_measures import open_pixels

Pixels = npt.NDArray[np.uint8]
Rectangle = tuple[float, float, float, float]  # left, top, width, height

_SHADES = 8  # steps of each channel that colours are compared by
_COMMON_SHARE = 0.01  # colours that are rarer in a picture do not count
_THERE_SHARE = 0.0005
_EDGE_STEP, _MIN_EDGES = 8, 0.005
_MIN_GLYPH = 7  # pixels: smaller ones cannot be told apart


def measure_text_contrasts(data: bytes, boxes: Sequence[Rectangle]) -> list[float] | None:
    """Measure how far each rectangle's lightest and darkest parts are apart, as WCAG 2 counts.

    Returns:
        ratios from 1, for one colour, to 21; 21 where a rectangle is too small to be measured; none
        if the picture does not open.
    """
    pixels = open_pixels(data)
    if pixels is None:
        return None
    return [_measure_contrast(pixels, box) for box in boxes]


def _measure_contrast(pixels: Pixels, box: Rectangle) -> float:
    left, top, width, height = box
    part = pixels[
        max(0, int(top)) : max(0, int(top + height)), max(0, int(left)) : max(0, int(left + width))
    ]
    if part.shape[0] < 4 or part.shape[1] < 4:
        return 21.0
    light = _to_luminance(part)
    # Letters have edges all over, which a ground that fades from light to dark has not.
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
    """Measure how much of a picture's colours are on a card: all or most where it is shown.

    A card cuts a picture to its frame and may darken it; of a picture that is not there, at best
    the colours are that the card has anyway.

    Returns:
        the share of the picture by area whose colours are there; none if one does not open.
    """
    shown, wanted = open_pixels(card), open_pixels(picture)
    if shown is None or wanted is None:
        return None
    on_card, of_picture = _count_colors(shown), _count_colors(wanted)
    common = of_picture >= _COMMON_SHARE
    there = common & (on_card >= _THERE_SHARE)
    return float(of_picture[there].sum() / max(1e-9, float(of_picture[common].sum())))


def is_bare(card: bytes, picture: bytes) -> bool:
    """Tell whether a card is of few plain colours, as none can be that shows a rich picture."""
    shown, wanted = open_pixels(card), open_pixels(picture)
    if shown is None or wanted is None:
        return False
    return _measure_plain_share(shown) > 0.9 and _measure_plain_share(wanted) < 0.5


def _measure_plain_share(pixels: Pixels) -> float:
    """Measure the share of pixels that are of the eight most frequent colours."""
    values = pixels.reshape(-1, 3).astype(np.uint32)
    keys = (values[:, 0] << 16) | (values[:, 1] << 8) | values[:, 2]
    counts = np.sort(np.unique(keys, return_counts=True)[1])
    return float(counts[-8:].sum() / len(keys))


def _count_colors(pixels: Pixels) -> npt.NDArray[np.float64]:
    """Count colours in steps, as shares of all pixels."""
    step = max(1, int((pixels.shape[0] * pixels.shape[1] / 250_000) ** 0.5))
    steps = pixels[::step, ::step].reshape(-1, 3).astype(np.int32) * _SHADES // 256
    keys = (steps[:, 0] * _SHADES + steps[:, 1]) * _SHADES + steps[:, 2]
    return np.bincount(keys, minlength=_SHADES**3) / len(keys)


def count_empty_boxes(data: bytes, boxes: Sequence[Rectangle]) -> int:
    """Count the glyphs in rectangles of text that are empty boxes: what fonts draw for the unknown.

    A glyph is a run of columns with ink. Letters are open at some side, or their sides are no
    straight lines; signs of dense scripts may be boxes, so leave those texts out.
    """
    pixels = open_pixels(data)
    if pixels is None:
        return 0
    found = 0
    for left, top, width, height in boxes:
        part = pixels[
            max(0, int(top)) : max(0, int(top + height)),
            max(0, int(left)) : max(0, int(left + width)),
        ]
        if part.shape[0] >= _MIN_GLYPH and part.shape[1] >= _MIN_GLYPH:
            found += _count_boxes_of_text(part)
    return found


def _count_boxes_of_text(part: Pixels) -> int:
    grey = part.mean(axis=2)
    ground = float(np.median(grey))
    away = np.abs(grey - ground)
    if float(away.max()) < 40:
        return 0
    ink = away > 0.4 * float(away.max())
    found = 0
    for top, bottom in _find_runs(ink.any(axis=1)):
        line = ink[top:bottom]
        for left, right in _find_runs(line.any(axis=0)):
            rows = np.flatnonzero(line[:, left:right].any(axis=1))
            found += _is_empty_box(line[rows[0] : rows[-1] + 1, left:right])
    return found


def _find_runs(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Find the runs of what is true, as starts and ends."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(start), int(end)) for start, end in zip(changes[::2], changes[1::2], strict=True)]


def _is_empty_box(glyph: npt.NDArray[np.bool_]) -> bool:
    """Tell whether a glyph is a rectangle of straight lines, higher than wide, with air inside."""
    height, width = glyph.shape
    if min(height, width) < _MIN_GLYPH or not 1.05 < height / width < 2.6:
        return False
    sides = (glyph[0], glyph[-1], glyph[:, 0], glyph[:, -1])
    is_closed = all(float(side.mean()) > 0.97 for side in sides)
    return is_closed and float(glyph[2:-2, 2:-2].mean()) < 0.6
