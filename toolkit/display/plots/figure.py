"""A figure that displays itself; import only for drawing, because matplotlib loads slowly.

Never use `pyplot`: its figures are global, and calls from a notebook's threads would mix them up.
"""

import io
from functools import lru_cache

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

MAX_PIXELS = 4_000  # of the longer side of a PNG; larger pictures get fewer dots per inch
MISSING_GLYPH = "\N{WHITE SQUARE}"


def escape_mathtext(text: str) -> str:
    """Escape a text so that matplotlib draws it literally and does not warn of missing glyphs.

    Matplotlib reads text between dollar signs as a formula. A character without a glyph becomes
    a box, because a name may be in any script, and fonts differ between machines.

    >>> escape_mathtext("$a$ and \U000f0000")
    '\\\\$a\\\\$ and □'
    """
    if not text.isascii():
        glyphs = _load_glyphs(tuple(FontProperties().get_family()))
        text = "".join(c if ord(c) in glyphs else MISSING_GLYPH for c in text)
    return text.replace("$", r"\$")


@lru_cache(maxsize=4)
def _load_glyphs(families: tuple[str, ...]) -> frozenset[int]:
    """Load the characters that the chosen fonts have in both normal and bold."""

    def glyphs(weight: str) -> set[int]:
        fonts = (findfont(FontProperties(family=name, weight=weight)) for name in families)
        return {code for path in fonts for code in get_font(path).get_charmap()}

    return frozenset(glyphs("normal") & glyphs("bold"))


class Chart(Figure):
    """A figure that displays itself in a notebook, with any backend."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        dpi = min(100.0, MAX_PIXELS / max(self.get_size_inches()))
        self.savefig(file, format="png", dpi=dpi)
        return file.getvalue()
