"""The templates: where text, picture and ornaments go on a canvas; called by the layout."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from PIL import Image

from toolkit.capabilities._card._art import draw_ornament, draw_quotation_mark, draw_rings
from toolkit.capabilities._card._picture import cut_picture
from toolkit.capabilities._card._scene import Box, Disc, Fade, Layer, PictureLayer, RoundRect
from toolkit.capabilities._card._stack import TextColumn, TextStack, build_styles
from toolkit.capabilities._card._themes import SCRIM_ALPHA, Theme

# Below this ratio of width to height, pictures go above the text instead of next to it.
_UPRIGHT_RATIO = 1.15


@dataclass(frozen=True, slots=True)
class CardCanvas:
    """The facts that a template needs of a card before its text is set.

    Attributes:
        seed: title, which seeds the ornaments.
        picture: opened picture, or None for an ornament in its place.
        rtl: whether the card reads from right to left, which mirrors it.
        crowded: whether there is so much text that pictures should be smaller.
        lonely: whether the title is the only text and may be larger.
    """

    width: int
    height: int
    theme: Theme
    seed: str
    picture: Image.Image | None
    rtl: bool
    crowded: bool
    lonely: bool

    @property
    def scale(self) -> float:
        """The factor for sizes, relative to a card of 1200 by 630 pixels."""
        area = math.sqrt(self.width * self.height / (1200 * 630))
        return min(area, self.width / 800, self.height / 420)

    @property
    def margin(self) -> tuple[float, float]:
        """Free space at the sides, and above and below, in pixels."""
        side = round(self.width * 0.065)
        return side, min(side, round(self.height * 0.115))

    @property
    def upright(self) -> bool:
        """True if the card is so narrow that pictures go above the text, not next to it."""
        return self.width / self.height < _UPRIGHT_RATIO

    @property
    def inner(self) -> Box:
        """The canvas within its margins."""
        side, edge = self.margin
        return Box(side, edge, self.width - 2 * side, self.height - 2 * edge)

    def place(self, box: Box) -> Box:
        """Round a box to whole pixels, and mirror it if the card reads from right to left."""
        x, y = round(box.x), round(box.y)
        pixel_box = Box(x, y, round(box.right) - x, round(box.bottom) - y)
        return pixel_box.mirror(self.width) if self.rtl else pixel_box

    def find_text_box(self, art: Box, x: float, row_gap: float, column_gap: float) -> Box:
        """Find the box for text below or next to the art, at these distances in pixels."""
        inner = self.inner
        if self.upright:
            top = art.bottom + row_gap
            return Box(x, top, inner.right - x, inner.bottom - top)
        return Box(x, inner.y, art.x - column_gap - x, inner.h)

    def build_column(
        self,
        box: Box,
        title: tuple[int, int],
        lead: float = 0.0,
        anchor: float = 0.45,
        title_lines: int = 5,
    ) -> TextColumn:
        """Build the text column of this card in a box, which is mirrored as by `place`.

        A title that is the only text may be larger than `title`, its largest and smallest size.
        """
        largest = round(title[0] * 1.3) if self.lonely else title[0]
        return TextColumn(
            self.place(box),
            self.scale,
            build_styles(self.scale, (largest, title[1]), title_lines),
            self.theme.inks,
            self.rtl,
            lead,
            anchor,
        )

    def build_art(self, box: Box, radius: float) -> Layer:
        """Build the picture, or else an ornament, in a box, which is mirrored as by `place`."""
        placed = self.place(box)
        if self.picture is None:
            return draw_ornament(placed, radius, self.theme, self.seed)
        return PictureLayer(placed, radius, cut_picture(self.picture, placed, self.theme.panel))

    def build_ground(self) -> Fade:
        """Build the background of the whole card."""
        top, bottom = self.theme.ground
        return Fade(Box(0, 0, self.width, self.height), ((0.0, top, 1.0), (1.0, bottom, 1.0)))


@dataclass(frozen=True, slots=True)
class CardTemplate:
    """A template: functions that place the text column and build the layers behind the text."""

    build_column: Callable[[CardCanvas], TextColumn]
    build_layers: Callable[[CardCanvas, TextStack], tuple[Layer, ...]]


def _place_classic_art(canvas: CardCanvas) -> Box:
    inner = canvas.inner
    if canvas.upright:
        return Box(inner.x, inner.y, inner.w, inner.h * (0.26 if canvas.crowded else 0.38))
    share = 0.26 if canvas.crowded else 0.34
    wide = min(canvas.width * share, inner.h * 1.1)
    return Box(inner.right - wide, inner.y, wide, inner.h)


def _build_classic_column(canvas: CardCanvas) -> TextColumn:
    unit = canvas.scale
    x = canvas.inner.x + 36 * unit
    box = canvas.find_text_box(_place_classic_art(canvas), x, 44 * unit, 52 * unit)
    return canvas.build_column(box, (72, 32))


def _build_classic_layers(canvas: CardCanvas, stack: TextStack) -> tuple[Layer, ...]:
    unit, block = canvas.scale, stack.block
    wide = max(3.0, 9 * unit)
    bar = Box(canvas.inner.x, 0, wide, 0)
    x = bar.mirror(canvas.width).x if canvas.rtl else bar.x
    side = RoundRect(Box(x, block.y, wide, block.h), wide / 2, canvas.theme.inks.accent)
    return canvas.build_ground(), canvas.build_art(_place_classic_art(canvas), 30 * unit), side


def _place_split_art(canvas: CardCanvas) -> Box:
    if canvas.upright:
        return Box(0, 0, canvas.width, canvas.height * (0.28 if canvas.crowded else 0.44))
    wide = min(canvas.width * (0.36 if canvas.crowded else 0.44), canvas.height * 1.3)
    return Box(canvas.width - wide, 0, wide, canvas.height)


def _build_split_column(canvas: CardCanvas) -> TextColumn:
    inner, unit = canvas.inner, canvas.scale
    box = canvas.find_text_box(_place_split_art(canvas), inner.x, inner.y, 56 * unit)
    return canvas.build_column(box, (66, 31), lead=36 * unit, title_lines=6)


def _build_split_layers(canvas: CardCanvas, stack: TextStack) -> tuple[Layer, ...]:
    unit = canvas.scale
    wide, tall = 76 * unit, max(3.0, 9 * unit)
    x = stack.block.right - wide if canvas.rtl else stack.block.x
    bar = RoundRect(Box(x, stack.block.y, wide, tall), tall / 2, canvas.theme.inks.accent)
    return canvas.build_ground(), canvas.build_art(_place_split_art(canvas), 0), bar


def _build_cover_column(canvas: CardCanvas) -> TextColumn:
    inner = canvas.inner
    wide = inner.w if canvas.upright else inner.w * 0.88
    column = canvas.build_column(Box(inner.x, inner.y, wide, inner.h), (80, 34), anchor=1.0)
    return replace(column, inks=canvas.theme.scrim_inks)


def _build_cover_layers(canvas: CardCanvas, stack: TextStack) -> tuple[Layer, ...]:
    dusk, tall = canvas.theme.scrim, canvas.height
    # Under all text the scrim has its full strength; above it, it thins out.
    full = max(0.0, (stack.block.y - 14 * canvas.scale) / tall)
    thin = max(0.0, full - 0.34)
    stops = [(0.0, dusk, 0.06), (thin, dusk, 0.06), (full, dusk, SCRIM_ALPHA)]
    if full == 0.0:
        stops = [(0.0, dusk, SCRIM_ALPHA)]
    stops.append((1.0, dusk, 0.9))
    box = Box(0, 0, canvas.width, tall)
    return canvas.build_art(box, 0), Fade(box, tuple(stops))


def _place_quote_art(canvas: CardCanvas) -> Box:
    """Return the square around the round picture, or around the visible part of the rings."""
    inner = canvas.inner
    side = min(canvas.width * 0.27, canvas.height * (0.27 if canvas.upright else 0.56))
    if canvas.picture is None:
        return Box(canvas.width - side, 0 if canvas.upright else canvas.height - side, side, side)
    top = inner.y if canvas.upright else (canvas.height - side) / 2
    return Box(inner.right - side, top, side, side)


def _build_quote_column(canvas: CardCanvas) -> TextColumn:
    unit = canvas.scale
    box = canvas.find_text_box(_place_quote_art(canvas), canvas.inner.x, 36 * unit, 52 * unit)
    return canvas.build_column(box, (60, 28), lead=84 * unit, title_lines=9)


def _build_quote_layers(canvas: CardCanvas, stack: TextStack) -> tuple[Layer, ...]:
    unit, theme, block = canvas.scale, canvas.theme, stack.block
    art = canvas.place(_place_quote_art(canvas))
    wide = 74 * unit
    x = block.right - wide if canvas.rtl else block.x
    mark = draw_quotation_mark(Box(x, block.y, wide, 58 * unit), theme.inks.accent)
    if canvas.picture is not None:
        halo = Disc(art.x + art.w / 2, art.y + art.h / 2, art.w / 2 + 9 * unit, theme.panel)
        return (
            canvas.build_ground(),
            halo,
            canvas.build_art(_place_quote_art(canvas), art.w / 2),
            *mark,
        )
    cx = 0.0 if canvas.rtl else float(canvas.width)
    cy = 0.0 if canvas.upright else float(canvas.height)
    return canvas.build_ground(), *draw_rings(cx, cy, art.w, theme), *mark


TEMPLATES_BY_NAME: dict[str, CardTemplate] = {
    "classic": CardTemplate(_build_classic_column, _build_classic_layers),
    "split": CardTemplate(_build_split_column, _build_split_layers),
    "cover": CardTemplate(_build_cover_column, _build_cover_layers),
    "quote": CardTemplate(_build_quote_column, _build_quote_layers),
}
