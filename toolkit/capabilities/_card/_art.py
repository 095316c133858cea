"""Ornaments drawn where a card has no picture: the same title always gives the same one."""

import hashlib
import math
from collections.abc import Callable, Iterator

from toolkit.capabilities._card._scene import Box, Color, Disc, Group, Polygon, RoundRect, Shape
from toolkit.capabilities._card._themes import Theme

_ARC_STEPS = 24


class _Dice:
    """An endless, repeatable source of choices made from a text."""

    def __init__(self, seed: str) -> None:
        self._bytes = self._stream(seed)

    @staticmethod
    def _stream(seed: str) -> Iterator[int]:
        block = seed.encode("utf-8", "replace")
        while True:
            block = hashlib.sha256(block).digest()
            yield from block

    def below(self, count: int) -> int:
        return next(self._bytes) % count

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * next(self._bytes) / 255


def ornament(box: Box, radius: float, theme: Theme, seed: str) -> Group:
    """Draw a panel filled with shapes in the theme's art colours, chosen by a text.

    Args:
        box: of the panel, in pixels.
        radius: of its corners, in pixels.
        theme: palette.
        seed: usually the title.

    Example:
        >>> from toolkit.capabilities._card._themes import PALETTES
        >>> box, theme = Box(0, 0, 90, 60), PALETTES["dawn"]
        >>> ornament(box, 8, theme, "a") == ornament(box, 8, theme, "a")
        True
    """
    dice = _Dice(seed)
    draw = _KINDS[dice.below(len(_KINDS))]
    panel = RoundRect(box, 0, theme.panel)
    return Group(box, radius, (panel, *draw(box, theme, dice)))


def rings(cx: float, cy: float, radius: float, theme: Theme) -> tuple[Shape, ...]:
    """Draw circles within circles around a point, for a corner.

    Args:
        cx: centre, in pixels.
        cy: centre, in pixels.
        radius: of the outermost, in pixels.
        theme: palette.
    """
    one, two, three, four = theme.art
    colors = (theme.panel, two, one, three, four)
    shares = (1.0, 0.8, 0.6, 0.4, 0.2)
    return tuple(
        Disc(cx, cy, radius * share, color) for share, color in zip(shares, colors, strict=True)
    )


def quotation_mark(box: Box, color: Color) -> tuple[Shape, ...]:
    """Draw an opening quotation mark of two drops with tails.

    Args:
        box: to fill, in pixels.
        color: of the mark.
    """
    radius = min(box.w / 4.6, box.h / 3.2)
    drops: list[Shape] = []
    for left in (box.x, box.x + 2.45 * radius):
        cy = box.bottom - radius
        drops.append(Disc(left + radius, cy, radius, color))
        # The tail lies between two quarter arcs that start at the drop's left edge.
        hub = (left + 2.1 * radius, cy)
        outer = _arc(hub, 2.1 * radius, 180, 90)
        inner = _arc((hub[0], cy), 1.45 * radius, 180, 90)
        drops.append(Polygon((*outer, *reversed(inner)), color))
    return tuple(drops)


def _tiles(box: Box, theme: Theme, dice: _Dice) -> Iterator[Shape]:
    """Draw a grid of squares, each with a quarter disc, a half disc, a ring or a dot."""
    side = max(min(box.w, box.h) / 3, max(box.w, box.h) / 7)
    columns, rows = math.ceil(box.w / side), math.ceil(box.h / side)
    # Centred, so that what is cut off at the edges is cut off evenly.
    left, top = box.x + (box.w - columns * side) / 2, box.y + (box.h - rows * side) / 2
    for row in range(rows):
        for column in range(columns):
            square = Box(left + column * side, top + row * side, side, side)
            yield from _tile(square, theme, dice)


def _tile(square: Box, theme: Theme, dice: _Dice) -> Iterator[Shape]:
    ground = dice.below(4)
    color = theme.art[(ground + 1 + dice.below(3)) % 4]
    # One square in three keeps the panel's own colour, so that the pattern can breathe.
    if dice.below(3):
        # Half a pixel over, or hairlines of the panel would show between neighbours.
        wide = Box(square.x - 0.5, square.y - 0.5, square.w + 1, square.h + 1)
        yield RoundRect(wide, 0, theme.art[ground])
    middle = (square.x + square.w / 2, square.y + square.h / 2)
    kind, turn = dice.below(5), dice.below(4)
    if kind <= 1:
        corner = (square.x + square.w * (turn in {1, 2}), square.y + square.h * (turn in {2, 3}))
        yield _sector(corner, square.w, turn * 90, 90, color)
    elif kind == 2:
        yield _sector(middle, square.w / 2, turn * 90, 180, color)
    elif kind == 3:
        yield Disc(*middle, square.w * 0.38, color, hole=square.w * 0.18)
    else:
        yield Disc(*middle, square.w * 0.22, color)


def _sector(
    centre: tuple[float, float], radius: float, start: int, sweep: int, color: Color
) -> Polygon:
    return Polygon((centre, *_arc(centre, radius, start, sweep)), color)


def _arc(
    centre: tuple[float, float], radius: float, start: int, sweep: int
) -> list[tuple[float, float]]:
    angles = (math.radians(start + sweep * step / _ARC_STEPS) for step in range(_ARC_STEPS + 1))
    return [(centre[0] + radius * math.cos(a), centre[1] + radius * math.sin(a)) for a in angles]


def _bubbles(box: Box, theme: Theme, dice: _Dice) -> Iterator[Shape]:
    """Draw large soft discs that lie over each other, and two thin rings."""
    reach = min(box.w, box.h)
    for number in range(6):
        yield Disc(
            box.x + box.w * dice.between(0.05, 0.95),
            box.y + box.h * dice.between(0.05, 0.95),
            reach * dice.between(0.2, 0.48),
            theme.art[number % 4],
            0.72,
        )
    for number in range(2):
        radius = reach * dice.between(0.22, 0.4)
        x, y = box.x + box.w * dice.between(0.2, 0.8), box.y + box.h * dice.between(0.2, 0.8)
        yield Disc(x, y, radius, theme.art[3 - number], hole=radius * 0.93)


def _sunrise(box: Box, theme: Theme, dice: _Dice) -> Iterator[Shape]:
    """Draw rings rising from a point on the lower edge, with a small disc above."""
    left = bool(dice.below(2))
    cx, cy = box.x + box.w * (0.3 if left else 0.7), box.bottom
    reach = min(math.hypot(box.w, box.h) * 0.62, max(box.w, box.h) * 0.8)
    start = dice.below(4)
    for number in range(6):
        yield Disc(cx, cy, reach * (1 - number * 0.155), theme.art[(start + number) % 4])
    small = min(box.w, box.h) * 0.09
    x = box.x + box.w * (0.8 if left else 0.2)
    yield Disc(x, box.y + small * 2.4, small, theme.art[(start + 1) % 4])


def _waves(box: Box, theme: Theme, dice: _Dice) -> Iterator[Shape]:
    """Draw layered hills under a disc."""
    sun = min(box.w, box.h) * 0.17
    x = box.x + box.w * dice.between(0.3, 0.7)
    yield Disc(x, box.y + box.h * 0.28, sun, theme.art[1])
    steps = 48
    for number, color in enumerate((theme.art[1], theme.art[0], theme.art[2], theme.art[3])):
        level = box.y + box.h * (0.42 + 0.15 * number)
        swing, phase = box.h * dice.between(0.04, 0.09), dice.between(0, 2 * math.pi)
        length = dice.between(0.8, 1.6) * 2 * math.pi
        crest = [
            (box.x + box.w * s / steps, level + swing * math.sin(phase + length * s / steps))
            for s in range(steps + 1)
        ]
        yield Polygon(((box.x, box.bottom), *crest, (box.right, box.bottom)), color)


def _bars(box: Box, theme: Theme, dice: _Dice) -> Iterator[Shape]:
    """Draw upright bars with round ends, from the middle outwards like a sound wave."""
    count = max(5, min(24, round(box.w / max(box.h, 1) * 9)))
    step = box.w / (count + 1)
    for number in range(count):
        bell = math.sin(math.pi * (number + 0.8) / (count + 0.6))
        tall = box.h * (0.16 + 0.62 * bell * dice.between(0.45, 1.0))
        x = box.x + step * (number + 0.5) + step * 0.21
        bar = Box(x, box.y + (box.h - tall) / 2, step * 0.58, tall)
        yield RoundRect(bar, step * 0.29, theme.art[dice.below(4)])


_Draw = Callable[[Box, Theme, _Dice], Iterator[Shape]]
_KINDS: tuple[_Draw, ...] = (_tiles, _bubbles, _sunrise, _waves, _bars)
