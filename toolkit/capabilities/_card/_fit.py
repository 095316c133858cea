"""Wrapping paragraphs and finding the largest font size that fits; used by the text stack."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolkit.capabilities._card._fonts import ASCENT, DESCENT, Fonts
from toolkit.capabilities._card._text import clusters, pieces

ELLIPSIS = "…"
# Space between paragraphs, as a share of the distance of two lines.
_PARAGRAPH_GAP = 0.4


@dataclass(frozen=True, slots=True)
class Style:
    """The setting of a role: its sizes in pixels, its leading in ems and its most lines."""

    bold: bool
    largest: int
    smallest: int
    leading: float
    most_lines: int
    balanced: bool = False
    indent: float = 0.0


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One drawable paragraph and its direction."""

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
class Fitted:
    """Rows at the size found, and whether some of the text had to go."""

    style: Style
    size: int
    rows: tuple[Row, ...]
    shortened: bool

    @property
    def height(self) -> float:
        """From the top of the first line to the foot of the last, in pixels."""
        last = self.rows[-1].paragraph
        return _height(self.style, self.size, len(self.rows), last)

    def baselines(self) -> list[float]:
        """Return the baseline of every row, in pixels from the top."""
        step = self.style.leading * self.size
        gap = _PARAGRAPH_GAP * step
        top = ASCENT * self.size
        return [top + n * step + row.paragraph * gap for n, row in enumerate(self.rows)]


@dataclass(frozen=True, slots=True)
class _Wrapped:
    rows: tuple[Row, ...]
    whole: bool  # nothing is left over
    broken: bool  # a word was cut


def fit(
    paragraphs: Sequence[Paragraph], style: Style, width: float, height: float, fonts: Fonts
) -> Fitted | None:
    """Set paragraphs as large as they fit, shortened with an ellipsis only at the smallest size.

    Args:
        paragraphs: at least one, none empty.
        style: sizes and leading.
        width: of the box, in pixels.
        height: of the box, in pixels.
        fonts: what measures and draws.

    Returns:
        The rows, or None where not even one line has room.

    Example:
        >>> style = Style(True, 60, 20, 1.2, 3)
        >>> fit([Paragraph("Tides", False)], style, 400, 100, Fonts.bundled()).size
        60
    """
    smallest = style.smallest
    if _height(style, smallest, 1, 0) > height:
        return None

    def attempt(size: int) -> _Wrapped:
        return _wrap_all(paragraphs, style, size, width, height, fonts)

    size = _largest(style, lambda s: (tried := attempt(s)).whole and not tried.broken)
    # Shrinking comes before cutting words; only words too long even at the smallest size are cut.
    size = size or _largest(style, lambda s: attempt(s).whole)
    if size is None:
        rows = _shorten(attempt(smallest).rows, style, width, smallest, fonts)
        return Fitted(style, smallest, rows, shortened=True)
    wrapped = attempt(size)
    if style.balanced and not wrapped.broken:
        wrapped = _balance(paragraphs, style, size, width, height, fonts, len(wrapped.rows))
    return Fitted(style, size, wrapped.rows, shortened=False)


def _largest(style: Style, fits: Callable[[int], bool]) -> int | None:
    low, high = style.smallest, max(style.smallest, style.largest)
    if not fits(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _height(style: Style, size: int, rows: int, gaps: int) -> float:
    step = style.leading * size
    return (ASCENT + DESCENT) * size + (rows - 1) * step + gaps * _PARAGRAPH_GAP * step


def _wrap_all(
    paragraphs: Sequence[Paragraph],
    style: Style,
    size: int,
    width: float,
    height: float,
    fonts: Fonts,
) -> _Wrapped:
    rows: list[Row] = []
    broken = False
    inner = width - style.indent * size
    for number, paragraph in enumerate(paragraphs):
        room = _rows_left(style, size, height, len(rows), number)
        wrap = _Wrap(fonts, size, style.bold, paragraph.rtl, inner, room)
        done = wrap.run(paragraph.text)
        rows += [Row(text, wrap.measure(text), paragraph.rtl, number) for text in wrap.lines]
        broken = broken or wrap.broken
        if not done:
            return _Wrapped(tuple(rows), False, broken)
    return _Wrapped(tuple(rows), True, broken)


def _rows_left(style: Style, size: int, height: float, used: int, gaps: int) -> int:
    step = style.leading * size
    free = height - (ASCENT + DESCENT) * size - gaps * _PARAGRAPH_GAP * step
    # The small share of a pixel keeps a box of exactly n lines from losing one to rounding.
    rows = int((free + 0.01) // step) + 1
    return max(0, min(rows, style.most_lines) - used)


class _Wrap:
    """One paragraph filling lines, as many as there is room for."""

    def __init__(
        self, fonts: Fonts, size: int, bold: bool, rtl: bool, width: float, room: int
    ) -> None:
        self._fonts, self._size, self._bold, self._rtl = fonts, size, bold, rtl
        self._width, self._room = width, room
        self.lines: list[str] = []
        self.broken = False

    def measure(self, text: str) -> float:
        return self._fonts.width(text, self._size, self._bold, self._rtl)

    def run(self, text: str) -> bool:
        """Fill lines with a paragraph, and tell whether all of it found room."""
        held = ""
        for piece in pieces(text):
            longer = f"{held} {piece.text}" if held and piece.spaced else held + piece.text
            if self._fits(longer):
                held = longer
                continue
            if held:
                self.lines.append(held)
            held = piece.text if self._fits(piece.text) else self._cut(piece.text)
            if len(self.lines) >= self._room:
                del self.lines[self._room :]
                return False
        if len(self.lines) >= self._room:
            return False
        self.lines.append(held)
        return True

    def _fits(self, text: str) -> bool:
        return self.measure(text) <= self._width

    def _cut(self, word: str) -> str:
        """Fill lines with a word too long for one; returns what stands on the last."""
        self.broken = True
        rest = clusters(word)
        while len(self.lines) < self._room:
            count = self._longest_start(rest)
            if count == len(rest):
                break
            self.lines.append("".join(rest[:count]))
            rest = rest[count:]
        return "".join(rest)

    def _longest_start(self, parts: list[str]) -> int:
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


def _balance(
    paragraphs: Sequence[Paragraph],
    style: Style,
    size: int,
    width: float,
    height: float,
    fonts: Fonts,
    rows: int,
) -> _Wrapped:
    """Find the narrowest setting with the same number of rows: lines of about the same length."""
    low, high = width / 2, width
    best = _wrap_all(paragraphs, style, size, width, height, fonts)
    while high - low > size / 2:
        middle = (low + high) / 2
        tried = _wrap_all(paragraphs, style, size, middle, height, fonts)
        if tried.whole and not tried.broken and len(tried.rows) == rows:
            best, high = tried, middle
        else:
            low = middle
    return best


def _shorten(
    rows: tuple[Row, ...], style: Style, width: float, size: int, fonts: Fonts
) -> tuple[Row, ...]:
    last = rows[-1]
    inner = width - style.indent * size

    def measure(text: str) -> float:
        return fonts.width(text, size, style.bold, last.rtl)

    text = last.text
    while measure(text.rstrip(" ,.;:-–—…") + ELLIPSIS) > inner:
        head, _, _ = text.rpartition(" ")
        text = head or "".join(clusters(text)[:-1])
        if not text:
            break
    ended = text.rstrip(" ,.;:-–—…") + ELLIPSIS
    return (*rows[:-1], replace(last, text=ended, width=measure(ended)))
