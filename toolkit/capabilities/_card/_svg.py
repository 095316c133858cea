"""The painter that turns a scene into a self-contained SVG file."""

import base64
import hashlib
import io
from collections.abc import Callable
from xml.sax.saxutils import escape

from toolkit.capabilities._card._scene import (
    Box,
    ClippedGroup,
    Color,
    Disc,
    Fade,
    Layer,
    PictureLayer,
    Polygon,
    RoundRect,
    Scene,
    Shape,
    TextBox,
)

_JPEG_QUALITY = 90
_FAMILIES = "'DejaVu Sans', 'Bitstream Vera Sans', 'Verdana', sans-serif"


def write_svg(scene: Scene) -> bytes:
    """Write a scene as an SVG file with the same boxes as `paint_png` draws.

    The file refers to nothing outside it. Letters are text, so a viewer without DejaVu Sans shows
    its own sans serif, squeezed or stretched to the widths that were measured.
    """
    return _SvgWriter(scene).write_document().encode()


class _SvgWriter:
    """Builds the SVG document of a scene, and collects its clips and gradients on the way."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._definitions: list[str] = []
        # Ids differ between cards, because a page may have several cards inline.
        content = repr((scene.title, scene.width, scene.height, scene.texts))
        self._prefix = "c" + hashlib.sha256(content.encode()).hexdigest()[:10]

    def write_document(self) -> str:
        scene = self._scene
        layers = [self._write_layer(layer) for layer in scene.layers]
        texts = [self._write_text(box) for box in scene.texts]
        label = self._prefix + "t"
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{scene.width}" '
            f'height="{scene.height}" viewBox="0 0 {scene.width} {scene.height}" role="img" '
            f'aria-labelledby="{label}">',
            f'<title id="{label}">{escape(scene.title)}</title>',
            *([f"<defs>{''.join(self._definitions)}</defs>"] if self._definitions else []),
            *layers,
            f'<g font-family="{_FAMILIES}">',
            *texts,
            "</g>",
            "</svg>\n",
        ]
        return "\n".join(parts)

    def _write_layer(self, layer: Layer) -> str:
        if isinstance(layer, ClippedGroup):
            inside = "".join(self._write_shape(shape) for shape in layer.shapes)
            return (
                f'<g clip-path="url(#{self._define_clip(layer.clip, layer.radius)})">{inside}</g>'
            )
        if isinstance(layer, PictureLayer):
            return self._write_picture(layer)
        return self._write_shape(layer)

    def _write_picture(self, picture: PictureLayer) -> str:
        buffer = io.BytesIO()
        picture.image.save(buffer, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
        data = base64.b64encode(buffer.getvalue()).decode()
        clip = self._define_clip(picture.box, picture.radius)
        return (
            f'<image {_format_box(picture.box)} preserveAspectRatio="none" '
            f'clip-path="url(#{clip})" href="data:image/jpeg;base64,{data}"/>'
        )

    def _write_shape(self, shape: Shape) -> str:
        if isinstance(shape, Fade):
            return f'<rect {_format_box(shape.box)} fill="url(#{self._define_gradient(shape)})"/>'
        paint = f'fill="{_format_color(shape.color)}"' + _format_opacity(
            "fill-opacity", shape.alpha
        )
        if isinstance(shape, RoundRect):
            return f'<rect {_format_box(shape.box)} rx="{_format_number(shape.radius)}" {paint}/>'
        if isinstance(shape, Polygon):
            points = " ".join(f"{_format_number(x)},{_format_number(y)}" for x, y in shape.points)
            return f'<polygon points="{points}" {paint}/>'
        return _format_disc(shape, paint)

    def _define_clip(self, box: Box, radius: float) -> str:
        return self._define(
            lambda name: (
                f'<clipPath id="{name}"><rect {_format_box(box)} rx="{_format_number(radius)}"/>'
                "</clipPath>"
            )
        )

    def _define_gradient(self, fade: Fade) -> str:
        stops = "".join(
            f'<stop offset="{_format_number(offset)}" stop-color="{_format_color(color)}"'
            + _format_opacity("stop-opacity", alpha)
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

    def _write_text(self, box: TextBox) -> str:
        weight = ' font-weight="700"' if box.bold else ""
        common = f'font-size="{box.font_size}"{weight} fill="{_format_color(box.color)}"'
        lines = []
        for line in box.lines:
            # A line that reads leftwards starts at its right edge.
            x = line.x + line.width if line.rtl else line.x
            way = ' direction="rtl"' if line.rtl else ""
            lines.append(
                f'<text x="{_format_number(x)}" y="{_format_number(line.baseline)}"{way} '
                f'xml:space="preserve" '
                f'textLength="{_format_number(line.width)}" lengthAdjust="spacingAndGlyphs">'
                f"{escape(line.text)}</text>"
            )
        return f"<g {common}>{''.join(lines)}</g>"


def _format_disc(disc: Disc, paint: str) -> str:
    centre = f'cx="{_format_number(disc.cx)}" cy="{_format_number(disc.cy)}"'
    if disc.hole <= 0:
        return f'<circle {centre} r="{_format_number(disc.radius)}" {paint}/>'
    wide = disc.radius - disc.hole
    return (
        f'<circle {centre} r="{_format_number(disc.radius - wide / 2)}" fill="none" '
        f'stroke="{_format_color(disc.color)}" stroke-width="{_format_number(wide)}"'
        + _format_opacity("stroke-opacity", disc.alpha)
        + "/>"
    )


def _format_box(box: Box) -> str:
    names = {"x": box.x, "y": box.y, "width": box.w, "height": box.h}
    return " ".join(f'{name}="{_format_number(value)}"' for name, value in names.items())


def _format_number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _format_color(color: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)


def _format_opacity(name: str, alpha: float) -> str:
    return "" if alpha >= 1 else f' {name}="{_format_number(alpha)}"'
