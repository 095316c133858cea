"""Colours of states by day and by night, and the frame of every SVG of the toolkit.

A picture may appear in an `<img>`, in a page, or in a notebook with another theme than the machine.
Therefore it has a background of its own, so that it is readable anywhere.
"""

import hashlib
import re
from html import escape

# Fill and stroke of each state, which the text names as well; the contrast to text is above 7.
STATE_COLOURS = {
    "planned": ("#f3f1fb", "#6b5fb5"),
    "pending": ("#f5f6f8", "#8a93a3"),
    "queued": ("#eef2fb", "#5a77b8"),
    "running": ("#fff4d6", "#b07d00"),
    "completed": ("#e3f5e7", "#2c7a3f"),
    "failed": ("#fde5e3", "#b3261e"),
    "cancelled": ("#ececec", "#6b6b6b"),
}
DARK_STATE_COLOURS = {
    "planned": ("#2a2740", "#9d92e6"),
    "pending": ("#262a31", "#7d8799"),
    "queued": ("#1f2a42", "#7c9be0"),
    "running": ("#3b3011", "#d9a520"),
    "completed": ("#16331f", "#56b26d"),
    "failed": ("#42191a", "#f0776e"),
    "cancelled": ("#2c2c2c", "#969696"),
}
# Class: attribute, by day, by night.
INK_COLOURS = {
    "page": ("fill", "#ffffff", "#14171c"),
    "name": ("fill", "#111827", "#f3f4f6"),
    "note": ("fill", "#374151", "#d1d5db"),
    "head": ("fill", "#6b7280", "#9ca3af"),
    "edge": ("stroke", "#6b7280", "#9ca3af"),
    "grid": ("stroke", "#e1e4ea", "#2f343d"),
}
_INVALID_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"


def format_coordinate(value: float) -> str:
    """Format a coordinate with at most one decimal, so that equal pictures have equal bytes.

    >>> format_coordinate(2.0), format_coordinate(2.25), format_coordinate(-0.01)
    ('2', '2.2', '0')
    """
    text = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def build_ink_attributes(name: str) -> str:
    """Build the SVG attributes of a class, with its colour for readers without style sheets."""
    attribute, day, _ = INK_COLOURS[name]
    return f'class="{name}" {attribute}="{day}"'


def build_state_attributes(state: str) -> str:
    """Build the SVG attributes of a box in a state; an unknown state looks pending."""
    fill, stroke = STATE_COLOURS.get(state, STATE_COLOURS["pending"])
    name = state if state in STATE_COLOURS else "pending"
    return f'class="{name}" fill="{fill}" stroke="{stroke}"'


def escape_xml(text: str) -> str:
    """Escape a text for an SVG, so that it is neither markup nor the placeholder `$id`.

    Characters that XML cannot express become U+FFFD, the replacement character.

    >>> escape_xml("<b>$id\\x1b")
    '&lt;b&gt;&#36;id\ufffd'
    """
    return escape(_INVALID_XML.sub("\ufffd", text)).replace("$", "&#36;")


def wrap_svg(width: int, height: int, label: str, title: str, body: str) -> str:
    """Wrap elements in an SVG; `$id` in them becomes an id made from the picture's content."""
    svg_id = "tk" + hashlib.sha256(f"{label}\0{body}".encode()).hexdigest()[:12]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{svg_id}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape_xml(label)}" '
        f'font-family="{escape(FONT)}"><title>{escape_xml(title)}</title>'
        f"<style>{_build_style(svg_id)}</style>"
        f'<rect {build_ink_attributes("page")} width="{width}" height="{height}" rx="6"/>'
        f"{body.replace('$id', svg_id)}</svg>"
    )


def read_svg_width(svg: str) -> int:
    """Read the width in pixels of a picture that `wrap_svg` made."""
    _, _, tail = svg.partition(' width="')
    return int(tail.partition('"')[0])


def _build_style(svg_id: str) -> str:
    """Build the style: night if the machine prefers it, unless the notebook sets its theme."""
    day, night = _build_variables(STATE_COLOURS, 1), _build_variables(DARK_STATE_COLOURS, 2)
    uses = "".join(
        f"#{svg_id} .{state}{{fill:var(--{state}-f);stroke:var(--{state}-s)}}"
        for state in STATE_COLOURS
    ) + "".join(
        f"#{svg_id} .{name}{{{attribute}:var(--{name})}}"
        for name, (attribute, *_) in INK_COLOURS.items()
    )
    return (
        f"#{svg_id}{{{day}}}@media(prefers-color-scheme:dark){{#{svg_id}{{{night}}}}}"
        f'[data-jp-theme-light="true"] #{svg_id}{{{day}}}'
        f'[data-jp-theme-light="false"] #{svg_id}{{{night}}}{uses}'
    )


def _build_variables(colours: dict[str, tuple[str, str]], column: int) -> str:
    states = [f"--{s}-f:{fill};--{s}-s:{stroke}" for s, (fill, stroke) in colours.items()]
    return ";".join([*states, *(f"--{name}:{ink[column]}" for name, ink in INK_COLOURS.items())])
