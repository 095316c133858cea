"""Wrapping of the texts of a card, at the largest font size that fits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolkit.capabilities._card._fonts import ASCENT, DESCENT, Fonts
from toolkit.capabilities._card._text import split_clusters, split_pieces

ELLIPSIS = "…"
# Space between paragraphs, as a share of the distance of two lines.
_PARAGRAPH_GAP = 0.4


@dataclass(frozen=True, slots=True)
class TextStyle:
    """The style of one kind of text, such as the title: font sizes in pixels, line height in ems.

    `max_size` and `min_size` bound the font size, and `balanced` asks for lines of equal length.
    """

    bold: bool
    max_size: int
    min_size: int
    leading: float
    max_lines: int
    balanced: bool = False
    indent: float = 0.0


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph whose characters the fonts can draw, and its direction."""

    text: str
    rtl: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A wrapped line and the number of the paragraph it belongs to."""

    text: str
    width: float
    rtl: bool
    paragraph: int


@dataclass(frozen=True, slots=True)
class FittedText:
    """The wrapped lines of a text, their font size, and whether some of the text was left out."""

    style: TextStyle
    size: int
    rows: tuple[Row, ...]
    shortened: bool

    @property
    def height(self) -> float:
        """The height from the top of the first line to the foot of the last, in pixels."""
        last = self.rows[-1].paragraph
        return _measure_height(self.style, self.size, len(self.rows), last)

    def compute_baselines(self) -> list[float]:
        """Return the baseline of every row, in pixels from the top of the block of text."""
        step = self.style.leading * self.size
        gap = _PARAGRAPH_GAP * step
        top = ASCENT * self.size
        return [top + n * step + row.paragraph * gap for n, row in enumerate(self.rows)]


@dataclass(frozen=True, slots=True)
class _WrapResult:
    rows: tuple[Row, ...]
    is_complete: bool  # nothing is left over
    is_broken: bool  # a word was cut


def fit_paragraphs(
    paragraphs: Sequence[Paragraph], style: TextStyle, width: float, height: float, fonts: Fonts
) -> FittedText | None:
    """Wrap paragraphs at the largest font size that fits; cut them only at the smallest size.

    Args:
        paragraphs: non-empty paragraphs, at least one.

    Returns:
        The wrapped text, or None if not even one line has room.

    >>> style = TextStyle(True, 60, 20, 1.2, 3)
    >>> fit_paragraphs([Paragraph("Tides", False)], style, 400, 100, Fonts.load_bundled()).size
    60
    """
    smallest = style.min_size
    if _measure_height(style, smallest, 1, 0) > height:
        return None

    def wrap(size: int, width: float = width) -> _WrapResult:
        return _wrap_all(paragraphs, style, size, width, height, fonts)

    size = _find_largest_size(
        style, lambda s: (tried := wrap(s)).is_complete and not tried.is_broken
    )
    # Shrinking comes before cutting words; only words too long even at the smallest size are cut.
    size = size or _find_largest_size(style, lambda s: wrap(s).is_complete)
    if size is None:
        rows = _shorten_rows(wrap(smallest).rows, style, width, smallest, fonts)
        return FittedText(style, smallest, rows, shortened=True)
    wrapped = wrap(size)
    if style.balanced and not wrapped.is_broken:
        wrapped = _balance_rows(wrapped, wrap, size, width)
    return FittedText(style, size, wrapped.rows, shortened=False)


def _find_largest_size(style: TextStyle, fits: Callable[[int], bool]) -> int | None:
    low, high = style.min_size, max(style.min_size, style.max_size)
    if not fits(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _measure_height(style: TextStyle, size: int, rows: int, gaps: int) -> float:
    step = style.leading * size
    return (ASCENT + DESCENT) * size + (rows - 1) * step + gaps * _PARAGRAPH_GAP * step


def _wrap_all(
    paragraphs: Sequence[Paragraph],
    style: TextStyle,
    size: int,
    width: float,
    height: float,
    fonts: Fonts,
) -> _WrapResult:
    rows: list[Row] = []
    is_broken = False
    inner = width - style.indent * size
    for number, paragraph in enumerate(paragraphs):
        room = _count_rows_left(style, size, height, len(rows), number)
        wrap = _LineWrapper(fonts, size, style.bold, paragraph.rtl, inner, room)
        is_complete = wrap.wrap_text(paragraph.text)
        rows += [Row(text, wrap.measure(text), paragraph.rtl, number) for text in wrap.lines]
        is_broken = is_broken or wrap.is_broken
        if not is_complete:
            return _WrapResult(tuple(rows), False, is_broken)
    return _WrapResult(tuple(rows), True, is_broken)


def _count_rows_left(style: TextStyle, size: int, height: float, row_count: int, gaps: int) -> int:
    step = style.leading * size
    free = height - (ASCENT + DESCENT) * size - gaps * _PARAGRAPH_GAP * step
    # The small share of a pixel keeps a box of exactly n lines from losing one to rounding.
    rows = int((free + 0.01) // step) + 1
    return max(0, min(rows, style.max_lines) - row_count)


class _LineWrapper:
    """Wraps one paragraph into lines, as many as there is room for."""

    def __init__(
        self, fonts: Fonts, size: int, bold: bool, rtl: bool, width: float, room: int
    ) -> None:
        self._fonts, self._size, self._bold, self._rtl = fonts, size, bold, rtl
        self._width, self._room = width, room
        self.lines: list[str] = []
        self.is_broken = False

    def measure(self, text: str) -> float:
        return self._fonts.measure_width(text, self._size, self._bold, self._rtl)

    def wrap_text(self, text: str) -> bool:
        """Fill `lines` with a paragraph, and return whether all of it fitted."""
        line = ""
        for piece in split_pieces(text):
            candidate = f"{line} {piece.text}" if line and piece.spaced else line + piece.text
            if self._fits(candidate):
                line = candidate
                continue
            if line:
                self.lines.append(line)
            line = piece.text if self._fits(piece.text) else self._cut_word(piece.text)
            if len(self.lines) >= self._room:
                del self.lines[self._room :]
                return False
        if len(self.lines) >= self._room:
            return False
        self.lines.append(line)
        return True

    def _fits(self, text: str) -> bool:
        return self.measure(text) <= self._width

    def _cut_word(self, word: str) -> str:
        """Fill `lines` with a word too long for a line; return its rest, for the next line."""
        self.is_broken = True
        clusters = split_clusters(word)
        while len(self.lines) < self._room:
            count = self._find_longest_start(clusters)
            if count == len(clusters):
                break
            self.lines.append("".join(clusters[:count]))
            clusters = clusters[count:]
        return "".join(clusters)

    def _find_longest_start(self, parts: list[str]) -> int:
        low, high = 1, 8
        while high < len(parts) and self._fits("".join(parts[:high])):
            low, high = high, high * 2
        high = min(high, len(parts))
        while low < high:
            middle = (low + high + 1) // 2
            if self._fits("".join(parts[:middle])):
                low = middle
            else:
                high = middle - 1
        return low


def _balance_rows(
    wrapped: _WrapResult, wrap: Callable[[int, float], _WrapResult], size: int, width: float
) -> _WrapResult:
    """Wrap again at the narrowest width with as many rows, so that they are about equally long."""
    low, high = width / 2, width
    best = wrapped
    while high - low > size / 2:
        middle = (low + high) / 2
        tried = wrap(size, middle)
        if tried.is_complete and not tried.is_broken and len(tried.rows) == len(wrapped.rows):
            best, high = tried, middle
        else:
            low = middle
    return best


def _shorten_rows(
    rows: tuple[Row, ...], style: TextStyle, width: float, size: int, fonts: Fonts
) -> tuple[Row, ...]:
    last = rows[-1]
    inner = width - style.indent * size

    def measure(text: str) -> float:
        return fonts.measure_width(text, size, style.bold, last.rtl)

    text = last.text
    while measure(text.rstrip(" ,.;:-–—…") + ELLIPSIS) > inner:
        head, _, _ = text.rpartition(" ")
        text = head or "".join(split_clusters(text)[:-1])
        if not text:
            break
    line = text.rstrip(" ,.;:-–—…") + ELLIPSIS
    return (*rows[:-1], replace(last, text=line, width=measure(line)))
