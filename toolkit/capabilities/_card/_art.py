"""Ornaments for cards without a picture: the same title always gives the same ornament."""

import hashlib
import math
from collections.abc import Callable, Iterator

from toolkit.capabilities._card._scene import (
    Box,
    ClippedGroup,
    Color,
    Disc,
    Polygon,
    RoundRect,
    Shape,
)
from toolkit.capabilities._card._themes import Theme

_ARC_STEPS = 24


class _Dice:
    """An endless source of pseudo-random numbers, the same for the same text."""

    def __init__(self, seed: str) -> None:
        self._bytes = self._generate_bytes(seed)

    @staticmethod
    def _generate_bytes(seed: str) -> Iterator[int]:
        block = seed.encode("utf-8", "replace")
        while True:
            block = hashlib.sha256(block).digest()
            yield from block

    def pick_below(self, count: int) -> int:
        return next(self._bytes) % count

    def pick_between(self, low: float, high: float) -> float:
        return low + (high - low) * next(self._bytes) / 255


def draw_ornament(box: Box, radius: float, theme: Theme, seed: str) -> ClippedGroup:
    """Draw a panel filled with shapes in the theme's art colours; the text `seed` chooses them.

    >>> from toolkit.capabilities._card._themes import PALETTES
    >>> box, theme = Box(0, 0, 90, 60), PALETTES["dawn"]
    >>> draw_ornament(box, 8, theme, "a") == draw_ornament(box, 8, theme, "a")
    True
    """
    dice = _Dice(seed)
    draw = _ORNAMENT_KINDS[dice.pick_below(len(_ORNAMENT_KINDS))]
    panel = RoundRect(box, 0, theme.panel)
    return ClippedGroup(box, radius, (panel, *draw(box, theme, dice)))


def draw_rings(cx: float, cy: float, radius: float, theme: Theme) -> tuple[Shape, ...]:
    """Draw circles within circles around a point, for a corner."""
    first, second, third, fourth = theme.art
    colors = (theme.panel, second, first, third, fourth)
    shares = (1.0, 0.8, 0.6, 0.4, 0.2)
    return tuple(
        Disc(cx, cy, radius * share, color) for share, color in zip(shares, colors, strict=True)
    )


def draw_quotation_mark(box: Box, color: Color) -> tuple[Shape, ...]:
    """Draw an opening quotation mark of two drops with tails."""
    radius = min(box.w / 4.6, box.h / 3.2)
    drops: list[Shape] = []
    for x in (box.x, box.x + 2.45 * radius):
        cy = box.bottom - radius
        drops.append(Disc(x + radius, cy, radius, color))
        # The tail lies between two quarter arcs that start at the drop's left edge.
        hub = (x + 2.1 * radius, cy)
        outer = _build_arc(hub, 2.1 * radius, 180, 90)
        inner = _build_arc((hub[0], cy), 1.45 * radius, 180, 90)
        drops.append(Polygon((*outer, *reversed(inner)), color))
    return tuple(drops)


def _draw_tiles(box: Box, theme: Theme, dice: _Dice) -> Iterator[Shape]:
    """Draw a grid of squares, each with a quarter disc, a half disc, a ring or a dot."""
    side = max(min(box.w, box.h) / 3, max(box.w, box.h) / 7)
    columns, rows = math.ceil(box.w / side), math.ceil(box.h / side)
    # Centred, so that the edges cut off equal parts.
    x, y = box.x + (box.w - columns * side) / 2, box.y + (box.h - rows * side) / 2
    for row in range(rows):
        for column in range(columns):
            square = Box(x + column * side, y + row * side, side, side)
            yield from _draw_tile(square, theme, dice)


def _draw_tile(square: Box, theme: Theme, dice: _Dice) -> Iterator[Shape]:
    ground = dice.pick_below(4)
    color = theme.art[(ground + 1 + dice.pick_below(3)) % 4]
    # One square in three keeps the panel's own colour, so that the pattern can breathe.
    if dice.pick_below(3):
        # Half a pixel over, or hairlines of the panel would show between neighbours.
        wide = Box(square.x - 0.5, square.y - 0.5, square.w + 1, square.h + 1)
        yield RoundRect(wide, 0, theme.art[ground])
    middle = (square.x + square.w / 2, square.y + square.h / 2)
    kind, turn = dice.pick_below(5), dice.pick_below(4)
    if kind <= 1:
        corner = (square.x + square.w * (turn in {1, 2}), square.y + square.h * (turn in {2, 3}))
        yield _build_sector(corner, square.w, turn * 90, 90, color)
    elif kind == 2:
        yield _build_sector(middle, square.w / 2, turn * 90, 180, color)
    elif kind == 3:
        yield Disc(*middle, square.w * 0.38, color, hole=square.w * 0.18)
    else:
        yield Disc(*middle, square.w * 0.22, color)


def _build_sector(
    centre: tuple[float, float], radius: float, start: int, sweep: int, color: Color
) -> Polygon:
    return Polygon((centre, *_build_arc(centre, radius, start, sweep)), color)


def _build_arc(
    centre: tuple[float, float], radius: float, start: int, sweep: int
) -> list[tuple[float, float]]:
    angles = (math.radians(start + sweep * step / _ARC_STEPS) for step in range(_ARC_STEPS + 1))
    return [(centre[0] + radius * math.cos(a), centre[1] + radius * math.sin(a)) for a in angles]


def _draw_waves(box: Box, theme: Theme, dice: _Dice) -> Iterator[Shape]:
    """Draw layered hills under a disc."""
    sun = min(box.w, box.h) * 0.17
    x = box.x + box.w * dice.pick_between(0.3, 0.7)
    yield Disc(x, box.y + box.h * 0.28, sun, theme.art[1])
    steps = 48
    for number, color in enumerate((theme.art[1], theme.art[0], theme.art[2], theme.art[3])):
        level = box.y + box.h * (0.42 + 0.15 * number)
        swing, phase = box.h * dice.pick_between(0.04, 0.09), dice.pick_between(0, 2 * math.pi)
        length = dice.pick_between(0.8, 1.6) * 2 * math.pi
        crest = [
            (box.x + box.w * s / steps, level + swing * math.sin(phase + length * s / steps))
            for s in range(steps + 1)
        ]
        yield Polygon(((box.x, box.bottom), *crest, (box.right, box.bottom)), color)


_Draw = Callable[[Box, Theme, _Dice], Iterator[Shape]]
_ORNAMENT_KINDS: tuple[_Draw, ...] = (_draw_tiles, _draw_waves)
