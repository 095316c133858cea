"""Social cards as PNG or SVG, laid out once and drawn alike; used by `composition.layout`."""

from toolkit.capabilities._card._fonts import Fonts
from toolkit.capabilities._card._layout import compose_scene
from toolkit.capabilities._card._png import paint_png
from toolkit.capabilities._card._scene import Card, CardError, Scene
from toolkit.capabilities._card._svg import write_svg

__all__ = ["Card", "CardError", "render_card"]


def render_card(card: Card, *, svg: bool = False) -> tuple[Scene, bytes]:
    """Draw a card, and return its scene and its file; the same card gives the same bytes.

    Raises:
        CardError: the card cannot be drawn as asked: its title is empty, or its picture is bad.
        RuntimeError: the bundled fonts are not installed.

    >>> render_card(Card(title="A < B"), svg=True)[1].count(b"A &lt; B")
    2
    """
    fonts = Fonts.load_bundled()
    scene = compose_scene(card, fonts)
    return scene, write_svg(scene) if svg else paint_png(scene, fonts)
