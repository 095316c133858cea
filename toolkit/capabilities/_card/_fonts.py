"""Font files, which characters they cover and how wide a line is; used by layout and painters."""

import functools
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import ImageFont, features

from toolkit.capabilities._card._text import is_ignorable, split_clusters

REPLACEMENT = "\ufffd"
# Of the em, in DejaVu Sans: where its tallest accents and deepest tails end.
ASCENT = 0.93
DESCENT = 0.24


@dataclass(frozen=True)
class Fonts:
    """Two chains of font files; each character is drawn by the first file that has it.

    Attributes:
        regular: paths in order of preference, the first of them for ordinary text.
        bold: the same for titles and labels.
        shaping: whether Pillow can join and order letters (libraqm). Otherwise a warning says that
            scripts written from right to left are drawn letter by letter.

    >>> Fonts.load_bundled().find_missing("Tide 日")
    ('日',)
    """

    regular: tuple[str, ...]
    bold: tuple[str, ...]
    shaping: bool = True

    @classmethod
    @functools.cache
    def load_bundled(cls) -> "Fonts":
        """Load DejaVu Sans as it comes with matplotlib; never system fonts.

        Raises:
            RuntimeError: a font file is missing or unreadable: a fault of the installation.

        >>> len(Fonts.load_bundled().regular)
        2
        """
        folder = _find_bundled_folder()
        regular, bold = str(folder / "DejaVuSans.ttf"), str(folder / "DejaVuSans-Bold.ttf")
        for path in (regular, bold):
            load_coverage(path)
        return cls((regular, bold), (bold, regular), bool(features.check("raqm")))

    def find_missing(self, text: str, bold: bool = False) -> tuple[str, ...]:
        """Return the visible characters that no file of the chain has, each once, in order."""
        chain = self._get_chain(bold)
        lost = (
            char
            for char in dict.fromkeys(text)
            if not is_ignorable(char)
            and not any(ord(char) in load_coverage(path) for path in chain)
        )
        return tuple(lost)

    def to_drawable(self, text: str, bold: bool = False) -> str:
        """Return the text without characters that no font has, or U+FFFD if nothing is left."""
        lost = frozenset(self.find_missing(text, bold))
        if not lost:
            return text
        drawable = "".join(_drop_missing(cluster, lost) for cluster in split_clusters(text))
        # Only plain spaces are joined; a no-break space keeps its meaning.
        return " ".join(part for part in drawable.split(" ") if part) or REPLACEMENT

    def split_runs(self, text: str, bold: bool = False) -> list[tuple[str, str]]:
        """Split a line into runs of one font file each, in reading order: its path and the text."""
        chain = self._get_chain(bold)
        if all(ord(char) in load_coverage(chain[0]) for char in text):
            return [(chain[0], text)]
        runs: list[tuple[str, str]] = []
        for cluster in split_clusters(text):
            last, before = runs[-1] if runs else (chain[0], "")
            # Spaces and signs stay with the run before them, so that shaping sees whole phrases.
            order = (last, *chain) if not cluster[0].isalnum() else chain
            path = next((p for p in order if _covers(p, cluster)), chain[0])
            if runs and path == last:
                runs[-1] = (path, before + cluster)
            else:
                runs.append((path, cluster))
        return runs

    def place_runs(
        self, text: str, size: int, bold: bool, rtl: bool
    ) -> Iterator[tuple[ImageFont.FreeTypeFont, str, float, float]]:
        """Yield each run of a line with its font, the offset of its left edge and its width in
        pixels.
        """
        measured = []
        for path, part in self.split_runs(text, bold):
            font = _load_font_file(path, size, self.shaping)
            length = font.getlength(part, direction=self.get_direction(rtl))
            measured.append((font, part, length))
        offset = 0.0
        for font, part, width in reversed(measured) if rtl else measured:
            yield font, part, offset, width
            offset += width

    def measure_width(self, text: str, size: int, bold: bool = False, rtl: bool = False) -> float:
        """Measure the advance width of a line in pixels.

        >>> fonts = Fonts.load_bundled()
        >>> fonts.measure_width("wide", 40) > fonts.measure_width("wide", 20)
        True
        """
        return sum(part[3] for part in self.place_runs(text, size, bold, rtl))

    def get_direction(self, rtl: bool) -> str | None:
        """Return the text direction for Pillow, or None if Pillow cannot join and order letters."""
        if not self.shaping:
            return None
        return "rtl" if rtl else "ltr"

    def _get_chain(self, bold: bool) -> tuple[str, ...]:
        return self.bold if bold else self.regular


def _find_bundled_folder() -> Path:
    # Only located, not imported: importing matplotlib takes longer than drawing a card.
    spec = importlib.util.find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise RuntimeError("matplotlib is not installed, and cards need its fonts")
    return Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf"


@functools.lru_cache(maxsize=32)
def load_coverage(path: str) -> frozenset[int]:
    """Return the code points a font file has glyphs for.

    Args:
        path: a TrueType or OpenType file, or a collection, of which the first font counts.

    Raises:
        RuntimeError: the file is missing or no font.
    """
    from fontTools.ttLib import TTFont, TTLibError  # only cards need it, and it is slow to import

    try:
        with TTFont(path, fontNumber=0, lazy=True) as font:
            return frozenset(font.getBestCmap() or ())
    except (OSError, TTLibError) as error:
        raise RuntimeError(f"the font file {Path(path).name} cannot be read") from error


@functools.lru_cache(maxsize=256)
def _load_font_file(path: str, size: int, shaping: bool) -> ImageFont.FreeTypeFont:
    engine = ImageFont.Layout.RAQM if shaping else ImageFont.Layout.BASIC
    return ImageFont.truetype(path, size, layout_engine=engine)


def _covers(path: str, cluster: str) -> bool:
    return all(ord(char) in load_coverage(path) or is_ignorable(char) for char in cluster)


def _drop_missing(cluster: str, lost: frozenset[str]) -> str:
    # A base without a glyph takes its marks and joined parts along: alone they would be noise.
    if cluster[0] in lost:
        return ""
    return "".join(char for char in cluster if char not in lost)
