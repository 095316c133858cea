"""Social cards as PNG or SVG, laid out once and drawn alike; used by `composition.layout`."""

from toolkit.capabilities._card._fonts import Fonts
from toolkit.capabilities._card._png import render_png
from toolkit.capabilities._card._scene import Card, CardError, Line, RenderedCard, TextBox
from toolkit.capabilities._card._svg import render_svg
from toolkit.capabilities._card._templates import TEMPLATES_BY_NAME
from toolkit.capabilities._card._themes import PALETTES

TEMPLATES: tuple[str, ...] = tuple(TEMPLATES_BY_NAME)
THEMES: tuple[str, ...] = tuple(PALETTES)

__all__ = [
    "TEMPLATES",
    "THEMES",
    "Card",
    "CardError",
    "Fonts",
    "Line",
    "RenderedCard",
    "TextBox",
    "render_png",
    "render_svg",
]
