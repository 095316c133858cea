"""Measures of a card's picture: the contrast of its texts, and how much of a picture is on it.

Import it inside functions, because it loads numpy and Pillow.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from toolkit.media.picture_measures import open_pixels

Pixels = npt.NDArray[np.uint8]
Rectangle = tuple[float, float, float, float]  # left, top, width, height

_SHADES = 8  # steps of each channel in which colours are compared
_COMMON_SHARE = 0.01  # colours that are rarer in a picture are ignored
_THERE_SHARE = 0.0005
_EDGE_STEP, _MIN_EDGES = 8, 0.005


def measure_text_contrasts(data: bytes, boxes: Sequence[Rectangle]) -> list[float] | None:
    """Measure the WCAG 2 contrast between each rectangle's lightest and darkest parts.

    Returns:
        contrast ratios from 1, for one colour, to 21. The ratio is 21 if a rectangle is too small
        to be measured. Returns None if the picture does not open.
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
