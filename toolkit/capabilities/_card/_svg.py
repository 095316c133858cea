"""The painter that turns a scene into a self-contained SVG file."""

import base64
import hashlib
import io
from collections.abc import Callable
from xml.sax.saxutils import escape, quoteattr

from toolkit.capabilities._card._fonts import Fonts
from toolkit.capabilities._card._layout import compose
from toolkit.capabilities._card._scene import (
    Box,
    Card,
    Color,
    Disc,
    Fade,
    Group,
    Layer,
    Picture,
    Polygon,
    Rendered,
    RoundRect,
    Scene,
    Shape,
    TextBox,
)

_JPEG_QUALITY = 90


def render_svg(card: Card, fonts: Fonts | None = None) -> Rendered:
    """Draw a card as an SVG file with the same boxes as `render_png`; same card, same bytes.

    The file refers to nothing outside it. Letters are text, so a viewer without DejaVu Sans shows
    its own sans serif, squeezed or stretched to the widths that were measured.

    Args:
        card: what to show.
        fonts: font files to measure with instead of the bundled DejaVu Sans.

    Raises:
        CardError: the card cannot be drawn as asked (name, size, title or picture).
        RuntimeError: the bundled fonts are not installed.

    Example:
        >>> render_svg(Card(title="A < B")).data.count(b"A &lt; B")
        2
    """
    chosen = fonts or Fonts.bundled()
    scene = compose(card, chosen)
    return Rendered(
        _Writer(scene, chosen).document().encode(),
        "image/svg+xml",
        scene.width,
        scene.height,
        scene.warnings,
        scene.missing_glyphs,
        scene.texts,
    )


class _Writer:
    """Builds the document; clips and gradients are collected on the way."""

    def __init__(self, scene: Scene, fonts: Fonts) -> None:
        self._scene = scene
        names = [*fonts.families, "DejaVu Sans", "Bitstream Vera Sans", "Verdana"]
        quoted = [f"'{name}'" for name in dict.fromkeys(names) if "'" not in name]
        self._family = ", ".join([*quoted, "sans-serif"])
        self._definitions: list[str] = []
        # Ids are unlike those of other cards, since a page may hold several of them inline.
        content = repr((scene.title, scene.width, scene.height, scene.texts))
        self._prefix = "c" + hashlib.sha256(content.encode()).hexdigest()[:10]

    def document(self) -> str:
        scene = self._scene
        layers = [self._layer(layer) for layer in scene.layers]
        texts = [self._text(box) for box in scene.texts]
        label = self._prefix + "t"
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{scene.width}" '
            f'height="{scene.height}" viewBox="0 0 {scene.width} {scene.height}" role="img" '
            f'aria-labelledby="{label}">',
            f'<title id="{label}">{escape(scene.title)}</title>',
            *([f"<defs>{''.join(self._definitions)}</defs>"] if self._definitions else []),
            *layers,
            f"<g font-family={quoteattr(self._family)}>",
            *texts,
            "</g>",
            "</svg>\n",
        ]
        return "\n".join(parts)

    def _layer(self, layer: Layer) -> str:
        if isinstance(layer, Group):
            inside = "".join(self._shape(shape) for shape in layer.shapes)
            return f'<g clip-path="url(#{self._clip(layer.clip, layer.radius)})">{inside}</g>'
        if isinstance(layer, Picture):
            return self._picture(layer)
        return self._shape(layer)

    def _picture(self, picture: Picture) -> str:
        buffer = io.BytesIO()
        picture.image.save(buffer, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
        data = base64.b64encode(buffer.getvalue()).decode()
        clip = self._clip(picture.box, picture.radius)
        return (
            f'<image {_place(picture.box)} preserveAspectRatio="none" '
            f'clip-path="url(#{clip})" href="data:image/jpeg;base64,{data}"/>'
        )

    def _shape(self, shape: Shape) -> str:
        if isinstance(shape, Fade):
            return f'<rect {_place(shape.box)} fill="url(#{self._gradient(shape)})"/>'
        paint = f'fill="{_hex(shape.color)}"' + _opacity("fill-opacity", shape.alpha)
        if isinstance(shape, RoundRect):
            return f'<rect {_place(shape.box)} rx="{_num(shape.radius)}" {paint}/>'
        if isinstance(shape, Polygon):
            points = " ".join(f"{_num(x)},{_num(y)}" for x, y in shape.points)
            return f'<polygon points="{points}" {paint}/>'
        return _disc(shape, paint)

    def _clip(self, box: Box, radius: float) -> str:
        return self._define(
            lambda name: (
                f'<clipPath id="{name}"><rect {_place(box)} rx="{_num(radius)}"/></clipPath>'
            )
        )

    def _gradient(self, fade: Fade) -> str:
        stops = "".join(
            f'<stop offset="{_num(offset)}" stop-color="{_hex(color)}"'
            + _opacity("stop-opacity", alpha)
            + "/>"
            for offset, color, alpha in fade.stops
        )
        return self._define(
            lambda name: (
                f'<linearGradient id="{name}" x1="0" y1="0" x2="0" y2="1">{stops}</linearGradient>'
            )
        )

    def _define(self, build: Callable[[str], str]) -> str:
        name = f"{self._prefix}{len(self._definitions)}"
        self._definitions.append(build(name))
        return name

    def _text(self, box: TextBox) -> str:
        weight = ' font-weight="700"' if box.bold else ""
        common = f'font-size="{box.font_size}"{weight} fill="{_hex(box.color)}"'
        lines = []
        for line in box.lines:
            # A line that reads leftwards starts at its right edge.
            x = line.x + line.width if line.rtl else line.x
            way = ' direction="rtl"' if line.rtl else ""
            lines.append(
                f'<text x="{_num(x)}" y="{_num(line.baseline)}"{way} xml:space="preserve" '
                f'textLength="{_num(line.width)}" lengthAdjust="spacingAndGlyphs">'
                f"{escape(line.text)}</text>"
            )
        return f"<g {common}>{''.join(lines)}</g>"


def _disc(disc: Disc, paint: str) -> str:
    centre = f'cx="{_num(disc.cx)}" cy="{_num(disc.cy)}"'
    if disc.hole <= 0:
        return f'<circle {centre} r="{_num(disc.radius)}" {paint}/>'
    wide = disc.radius - disc.hole
    return (
        f'<circle {centre} r="{_num(disc.radius - wide / 2)}" fill="none" '
        f'stroke="{_hex(disc.color)}" stroke-width="{_num(wide)}"'
        + _opacity("stroke-opacity", disc.alpha)
        + "/>"
    )


def _place(box: Box) -> str:
    return f'x="{_num(box.x)}" y="{_num(box.y)}" width="{_num(box.w)}" height="{_num(box.h)}"'


def _num(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _hex(color: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)


def _opacity(name: str, alpha: float) -> str:
    return "" if alpha >= 1 else f' {name}="{_num(alpha)}"'
