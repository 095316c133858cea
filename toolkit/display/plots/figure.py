"""A figure that shows itself; matplotlib is slow to import, so only for drawing.

Never by `pyplot`: its figures are global, and calls from a notebook's threads would mix them up.
"""

import io
from functools import lru_cache

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

MAX_PIXELS = 4_000  # of a side of a PNG; beyond it, one is drawn coarser
MISSING_GLYPH = "\N{WHITE SQUARE}"


def escape_mathtext(text: str) -> str:
    """Spell a text so that matplotlib draws it as it is, and does not warn of what it lacks.

    It would read what stands between dollar signs as a formula. What its fonts have no glyph for
    is a box either way: a name may be in any script, whichever fonts the machine has.

    >>> escape_mathtext("$a$ and \U000f0000")
    '\\\\$a\\\\$ and □'
    """
    if not text.isascii():
        known = _load_glyphs(tuple(FontProperties().get_family()))
        text = "".join(c if ord(c) in known else MISSING_GLYPH for c in text)
    return text.replace("$", r"\$")


@lru_cache(maxsize=4)
def _load_glyphs(families: tuple[str, ...]) -> frozenset[int]:
    """Load the characters that the chosen fonts have, in bold too."""

    def glyphs(weight: str) -> set[int]:
        fonts = (findfont(FontProperties(family=name, weight=weight)) for name in families)
        return {code for path in fonts for code in get_font(path).get_charmap()}

    return frozenset(glyphs("normal") & glyphs("bold"))


class Chart(Figure):
    """A figure that shows itself in a notebook, whichever backend is chosen."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        dpi = min(100.0, MAX_PIXELS / max(self.get_size_inches()))
        self.savefig(file, format="png", dpi=dpi)
        return file.getvalue()
