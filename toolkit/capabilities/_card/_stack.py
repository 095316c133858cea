"""The texts of a card set one above the other in a column; used by the layout for all templates."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from toolkit.capabilities._card._fit import Fitted, Paragraph, Style, fit
from toolkit.capabilities._card._fonts import ASCENT, DESCENT, Fonts
from toolkit.capabilities._card._scene import Box, Line, TextBox
from toolkit.capabilities._card._themes import Inks

# Distances in pixels on a card of scale 1 (1200 by 630).
_GAP_BEFORE = {"title": 16.0, "subtitle": 20.0, "body": 26.0, "bullets": 24.0}
_GAP_FOOTER = 28.0
# The indent of bullet text, and the height of the middle of its marker, in ems.
_INDENT = 1.05
_MARKER_RISE = 0.36


@dataclass(frozen=True, slots=True)
class Column:
    """The place where a template wants its text, and how it is set.

    Attributes:
        box: all text stays inside, in pixels.
        scale: 1 for a card of 1200 by 630.
        styles: by role, already scaled.
        inks: text colours for the ground the column lies on.
        rtl: whether text without a direction of its own reads from right to left.
        lead: space kept free above the first line, for an ornament, in pixels.
        anchor: where the free height goes: 0 below the text, 1 above it.
    """

    box: Box
    scale: float
    styles: Mapping[str, Style]
    inks: Inks
    rtl: bool
    lead: float = 0.0
    anchor: float = 0.45


@dataclass(frozen=True, slots=True)
class Stack:
    """The drawn texts and the box around all but the footer, with the lead at its top."""

    boxes: tuple[TextBox, ...]
    block: Box
    markers: tuple[tuple[float, float, float], ...]  # centre x, centre y, radius
    warnings: tuple[str, ...]


@dataclass(slots=True)
class _Setting:
    """One pass over the roles from top to bottom."""

    column: Column
    fonts: Fonts
    free: float
    fitted: dict[str, Fitted] = field(default_factory=dict)
    shortened: list[str] = field(default_factory=list)
    omitted: list[str] = field(default_factory=list)

    def place(self, role: str, paragraphs: tuple[Paragraph, ...], cap: float) -> None:
        if not paragraphs:
            return
        gap = _GAP_BEFORE.get(role, 0.0) * self.column.scale if self.fitted else 0.0
        style = self._style(role)
        room = min(cap, self.free - gap)
        found = fit(paragraphs, style, self.column.box.w, room, self.fonts)
        if found is None:
            self.omitted.append(role)
            return
        if found.shortened:
            self.shortened.append(role)
        self.fitted[role] = found
        self.free -= gap + found.height

    def _style(self, role: str) -> Style:
        style = self.column.styles[role]
        title = self.fitted.get("title")
        if title is None or role == "title":
            return style
        # Text below the title stays clearly smaller than it.
        above = self.fitted["subtitle"].size if "subtitle" in self.fitted else title.size * 0.62
        return replace(style, largest=max(style.smallest, min(style.largest, int(above))))


def stack(texts: Mapping[str, tuple[Paragraph, ...]], column: Column, fonts: Fonts) -> Stack:
    """Set all texts in a column: each as large as its share of the height allows.

    Args:
        texts: drawable paragraphs by role; roles without text are left out or empty.
        column: where, how large and in which colours.
        fonts: what measures and draws.

    Returns:
        Text boxes that neither overlap nor leave the column, with warnings for what had to be
        shortened or left out.
    """
    footer = _footer(texts.get("footer", ()), column, fonts)
    kept = footer.height + _GAP_FOOTER * column.scale if footer else 0.0
    free = column.box.h - kept - column.lead
    setting = _set(texts, column, fonts, free, {})
    if setting.shortened and setting.free > 0:
        # Room that the roles below did not use goes to those that came out short.
        setting = _set(texts, column, fonts, free, dict.fromkeys(setting.shortened, setting.free))
    if texts.get("footer") and footer is None:
        setting.omitted.append("footer")
    elif footer and footer.shortened:
        setting.shortened.append("footer")
    boxes, markers, block = _position(setting, column, setting.free)
    if footer:
        low = column.box.bottom - footer.height
        boxes += _boxes("footer", footer, column, low)
    warnings = [f"{role} was shortened to fit" for role in setting.shortened]
    warnings += [f"{role} was left out: there is no room for it" for role in setting.omitted]
    return Stack(tuple(boxes), block, tuple(markers), tuple(warnings))


def _set(
    texts: Mapping[str, tuple[Paragraph, ...]],
    column: Column,
    fonts: Fonts,
    free: float,
    bonus: Mapping[str, float],
) -> _Setting:
    setting = _Setting(column, fonts, free)
    body, bullets = texts.get("body", ()), texts.get("bullets", ())
    rest = bool(body or bullets)
    title_share = 1.0 if not (rest or texts.get("subtitle")) else (0.44 if rest else 0.7)

    def put(role: str, share: float) -> None:
        setting.place(role, texts.get(role, ()), setting.free * share + bonus.get(role, 0.0))

    put("kicker", 0.3)
    put("title", title_share)
    put("subtitle", 0.36 if rest else 1.0)
    if body and bullets:
        # Bullets are measured first, so that the body gets all that they leave.
        trial = _Setting(column, fonts, setting.free, dict(setting.fitted))
        trial.place("bullets", bullets, trial.free * 0.55)
        put("body", max(0.45, trial.free / max(setting.free, 1.0)))
    else:
        put("body", 1.0)
    put("bullets", 1.0)
    return setting


def _footer(paragraphs: tuple[Paragraph, ...], column: Column, fonts: Fonts) -> Fitted | None:
    if not paragraphs:
        return None
    return fit(paragraphs, column.styles["footer"], column.box.w, column.box.h * 0.3, fonts)


def _position(
    setting: _Setting, column: Column, spare: float
) -> tuple[list[TextBox], list[tuple[float, float, float]], Box]:
    top = column.box.y + max(0.0, spare) * column.anchor
    boxes: list[TextBox] = []
    markers: list[tuple[float, float, float]] = []
    y = top + column.lead
    for role, fitted in setting.fitted.items():
        y += _GAP_BEFORE.get(role, 0.0) * column.scale if boxes else 0.0
        found = _boxes(role, fitted, column, y)
        if role == "bullets":
            markers += [_marker(box, column) for box in found]
        boxes += found
        y += fitted.height
    return boxes, markers, Box(column.box.x, top, column.box.w, y - top)


def _boxes(role: str, fitted: Fitted, column: Column, top: float) -> list[TextBox]:
    """Build one box for a role, or one for each bullet."""
    if role != "bullets":
        return [_box(role, fitted, column, top, range(len(fitted.rows)))]
    items: dict[int, list[int]] = {}
    for number, row in enumerate(fitted.rows):
        items.setdefault(row.paragraph, []).append(number)
    return [_box("bullet", fitted, column, top, rows) for rows in items.values()]


def _box(
    role: str, fitted: Fitted, column: Column, top: float, numbers: range | list[int]
) -> TextBox:
    baselines = fitted.baselines()
    inset = fitted.style.indent * fitted.size
    lines = []
    for number in numbers:
        row = fitted.rows[number]
        x = column.box.right - inset - row.width if row.rtl else column.box.x + inset
        lines.append(Line(row.text, x, top + baselines[number], row.width, row.rtl))
    left = min(line.x for line in lines)
    y = lines[0].baseline - ASCENT * fitted.size
    return TextBox(
        role,
        tuple(lines),
        left,
        y,
        max(line.x + line.width for line in lines) - left,
        lines[-1].baseline + DESCENT * fitted.size - y,
        fitted.size,
        fitted.style.bold,
        _ink(role, column.inks),
    )


def _ink(role: str, inks: Inks) -> tuple[int, int, int]:
    if role == "kicker":
        return inks.accent
    return inks.title if role in {"title", "bullet"} else inks.muted


def _marker(box: TextBox, column: Column) -> tuple[float, float, float]:
    first = box.lines[0]
    em = box.font_size
    inset = 0.32 * em
    x = column.box.right - inset if first.rtl else column.box.x + inset
    return x, first.baseline - _MARKER_RISE * em, 0.17 * em


def styles(
    scale: float, title: tuple[int, int] = (76, 34), title_lines: int = 5
) -> dict[str, Style]:
    """Build the usual styles by role at a scale.

    Args:
        scale: 1 for a card of 1200 by 630.
        title: largest and smallest size of the title at scale 1, in pixels.
        title_lines: how many lines the title may take.

    Example:
        >>> styles(0.5)["title"].largest
        38
    """

    def style(
        bold: bool, sizes: tuple[int, int], leading: float, most: int, balanced: bool = False
    ) -> Style:
        small = max(7, round(sizes[1] * scale))
        return Style(bold, max(small, round(sizes[0] * scale)), small, leading, most, balanced)

    return {
        "kicker": style(True, (23, 14), 1.2, 1),
        "title": style(True, title, 1.17, title_lines, balanced=True),
        "subtitle": style(False, (34, 20), 1.32, 5),
        "body": style(False, (27, 17), 1.45, 60),
        "bullets": replace(style(False, (28, 17), 1.34, 60), indent=_INDENT),
        "footer": style(False, (20, 13), 1.2, 1),
    }
