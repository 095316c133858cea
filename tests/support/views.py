"""Views of a thing, asked for as a notebook asks."""

from typing import Any


def render_views(thing: Any) -> str:
    """Render a thing in every way that a cell may show it which ends with it."""
    bundle = thing._repr_mimebundle_()
    shown = bundle[0] if isinstance(bundle, tuple) else bundle  # beside its metadata
    return "\n".join(map(str, shown.values()))
