"""Measures of SVG pictures, without drawing them."""

import re

_SVG_TAG = re.compile(rb"<svg\b[^>]{0,2000}>")
_SVG_SIDE = re.compile(rb"\s(width|height)=[\"']([\d.]+)(?:px)?[\"']", re.I)


def read_svg_size(data: bytes) -> tuple[int, int] | None:
    """Read the size of a complete SVG picture; none if it is incomplete or does not say."""
    if b"</svg>" not in data[-64:]:
        return None
    tag = _SVG_TAG.search(data)
    sides = dict(_SVG_SIDE.findall(tag.group())) if tag else {}
    try:
        return round(float(sides[b"width"])), round(float(sides[b"height"]))
    except (KeyError, ValueError):
        return None
