"""Measures of SVG pictures, without drawing them."""

import html
import re
from dataclasses import dataclass

SVG = "image/svg+xml"
_SVG_TAG = re.compile(rb"<svg\b[^>]{0,2000}>")
_SVG_SIDE = re.compile(rb"\s(width|height)=[\"']([\d.]+)(?:px)?[\"']", re.I)


def read_svg_size(data: bytes) -> tuple[int, int] | None:
    """Read the size of an SVG picture; return None if it is incomplete or names no size."""
    if b"</svg>" not in data[-64:]:
        return None
    tag = _SVG_TAG.search(data)
    sides = dict(_SVG_SIDE.findall(tag.group())) if tag else {}
    try:
        return round(float(sides[b"width"])), round(float(sides[b"height"]))
    except (KeyError, ValueError):
        return None


_MAX_TEXTS = 500
_ELEMENT = re.compile(r"<(/?)([a-z]+)\b([^<>]{0,20000}?)(/?)>([^<]{0,2000})", re.I)
_ATTRIBUTE = re.compile(r"\s([\w-]+)=[\"']([^\"']*)[\"']")
_HEX = re.compile(r"#([0-9a-f]{6})$", re.I)
_SHAPES = frozenset({"circle", "ellipse", "image", "path", "polygon", "use"})


@dataclass(frozen=True, slots=True)
class SvgText:
    """A text of an SVG picture.

    Attributes:
        contrast: WCAG 2 contrast to the plain rectangle behind the text; 21 if that is unknown.
    """

    text: str
    contrast: float


def read_svg_texts(data: bytes) -> list[SvgText]:
    """Read the texts of an SVG picture, with their contrasts if these are known.

    >>> read_svg_texts(b'<svg><rect width="9" height="9" fill="#ffffff"/>'
    ...                b'<text x="1" y="5" fill="#ffffff">Tea</text></svg>')
    [SvgText(text='Tea', contrast=1.0)]
    """
    texts: list[SvgText] = []
    grounds: list[tuple[dict[str, str], str]] = []
    fills: list[str] = []
    for closes, name, inside, is_single, text in _ELEMENT.findall(data.decode(errors="replace")):
        attributes = dict(_ATTRIBUTE.findall(inside))
        if name == "g":
            if closes:
                fills = fills[:-1]
            elif not is_single:
                fills = [*fills, attributes.get("fill", fills[-1] if fills else "")]
        elif name == "rect":
            is_plain = "opacity" not in inside and _HEX.match(attributes.get("fill", ""))
            grounds.append((attributes, attributes["fill"] if is_plain else ""))
        elif name in _SHAPES:
            grounds.append(({}, ""))
        elif name in ("text", "tspan") and not closes and text.strip() and len(texts) < _MAX_TEXTS:
            fill = attributes.get("fill", fills[-1] if fills else "#000000")
            ground = next(
                (color for box, color in reversed(grounds) if _lies_on(attributes, box)), ""
            )
            texts.append(SvgText(html.unescape(text), compare_colors(fill, ground)))
    return texts


def _lies_on(text: dict[str, str], box: dict[str, str]) -> bool:
    """Return whether a text begins on a rectangle; True for other shapes."""
    if not box:
        return True
    try:
        x, y = float(text["x"]), float(text["y"])
        x0, y0 = float(box.get("x", 0)), float(box.get("y", 0))
        return x0 <= x <= x0 + float(box["width"]) and y0 <= y <= y0 + float(box["height"])
    except (KeyError, ValueError):
        return True


def compare_colors(color: str, other_color: str) -> float:
    """Return the WCAG 2 contrast of two colours such as `#ffcc00`; 21 for other notations.

    >>> compare_colors("#000000", "#ffffff"), compare_colors("#777777", "#777777")
    (21.0, 1.0)
    """
    matches = [_HEX.match(color), _HEX.match(other_color)]
    lights = sorted(_measure_light(match.group(1)) for match in matches if match)
    return round((lights[1] + 0.05) / (lights[0] + 0.05), 2) if len(lights) == 2 else 21.0


def _measure_light(color: str) -> float:
    levels = [int(color[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in levels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
