"""The card to draw and the scene that was laid out; shared by the layout and both painters."""

from dataclasses import dataclass

from PIL import Image

Color = tuple[int, int, int]


class CardError(ValueError):
    """A card that cannot be drawn: an empty title or a bad picture."""


@dataclass(frozen=True, slots=True)
class Card:
    """The content of a card; all text is plain and only the title is required.

    Attributes:
        title: the headline (the quotation itself in the template `quote`).
        subtitle: a line under the title (the speaker in `quote`).
        body: running text; line breaks start new paragraphs.
        bullets: short points, drawn with markers.
        footer: one line at the foot, such as a site or a date.
        kicker: a small label above the title.
        image: the bytes of a PNG, JPEG or WebP picture of at most 40 megapixels.
        template: a name in `TEMPLATES_BY_NAME`.
        theme: a name in `PALETTES`.
        width: width in pixels, 200 to 4096.
        height: height in pixels, 200 to 4096.

    >>> Card(title="Tides explained", kicker="Science", theme="mint").width
    1200
    """

    title: str
    subtitle: str = ""
    body: str = ""
    bullets: tuple[str, ...] = ()
    footer: str = ""
    kicker: str = ""
    image: bytes | None = None
    template: str = "classic"
    theme: str = "dawn"
    width: int = 1200
    height: int = 630


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels, from its top left corner."""

    x: float
    y: float
    w: float
    h: float

    @property
    def right(self) -> float:
        """The x of the right edge."""
        return self.x + self.w

    @property
    def bottom(self) -> float:
        """The y of the lower edge."""
        return self.y + self.h

    def mirror(self, width: float) -> "Box":
        """Return the box mirrored left to right on a canvas of that width."""
        return Box(width - self.right, self.y, self.w, self.h)


@dataclass(frozen=True, slots=True)
class Line:
    """One drawn line: its left edge, its baseline and its advance width in pixels."""

    text: str
    x: float
    baseline: float
    width: float
    rtl: bool


@dataclass(frozen=True, slots=True)
class TextBox:
    """The lines of one kind of text (its role), such as the title, and the box around them."""

    role: str
    lines: tuple[Line, ...]
    x: float
    y: float
    w: float
    h: float
    font_size: int
    bold: bool
    color: Color

    @property
    def text(self) -> str:
        """The drawn words, lines parted by line feeds."""
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True, slots=True)
class RoundRect:
    """A filled rectangle with round corners."""

    box: Box
    radius: float
    color: Color
    alpha: float = 1.0


@dataclass(frozen=True, slots=True)
class Disc:
    """A filled circle, or a ring when it has a hole."""

    cx: float
    cy: float
    radius: float
    color: Color
    alpha: float = 1.0
    hole: float = 0.0


@dataclass(frozen=True, slots=True)
class Polygon:
    """A filled outline; curves are given as many short sides."""

    points: tuple[tuple[float, float], ...]
    color: Color
    alpha: float = 1.0


@dataclass(frozen=True, slots=True)
class Fade:
    """A rectangle whose colour runs from top to bottom through (offset, colour, alpha) stops."""

    box: Box
    stops: tuple[tuple[float, Color, float], ...]


Solid = RoundRect | Disc | Polygon
Shape = Solid | Fade


@dataclass(frozen=True, slots=True)
class ClippedGroup:
    """Shapes that show only inside a box with round corners."""

    clip: Box
    radius: float
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class PictureLayer:
    """A picture already cut to its whole-pixel box, shown with round corners."""

    box: Box
    radius: float
    image: Image.Image


Layer = Shape | ClippedGroup | PictureLayer


@dataclass(frozen=True, slots=True)
class Scene:
    """A card laid out: layers from back to front, then the text over all of them."""

    title: str
    width: int
    height: int
    layers: tuple[Layer, ...]
    texts: tuple[TextBox, ...]
    warnings: tuple[str, ...]
    missing_glyphs: tuple[str, ...]
