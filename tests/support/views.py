"""The views of an object that a notebook requests."""

from typing import Any


def render_views(thing: Any) -> str:
    """Render an object in every form that a cell may show it in."""
    bundle = thing._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle  # without its metadata
    return "\n".join(map(str, data.values()))
