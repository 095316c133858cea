"""A figure that shows itself; matplotlib is slow to import, so only for drawing.

Never by `pyplot`: its figures are global, and calls from a notebook's threads would mix them up.
"""

import io

from matplotlib.figure import Figure

MOST_PIXELS = 4_000  # of a side of a PNG; beyond it, one is drawn coarser


class Chart(Figure):
    """A figure that shows itself in a notebook, whichever backend is chosen."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        dpi = min(100.0, MOST_PIXELS / max(self.get_size_inches()))
        self.savefig(file, format="png", dpi=dpi)
        return file.getvalue()
