"""The texts of a card set one above the other in a column; used by the layout for all templates."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from toolkit.capabilities._card._fit import FittedText, Paragraph, TextStyle, fit_paragraphs
from toolkit.capabilities._card._fonts import ASCENT, DESCENT, Fonts
from toolkit.capabilities._card._scene import Box, Disc, Line, TextBox
from toolkit.capabilities._card._themes import Inks

# Distances in pixels on a card of scale 1 (1200 by 630).
_GAP_BEFORE = {"title": 16.0, "subtitle": 20.0, "body": 26.0, "bullets": 24.0}
_GAP_FOOTER = 28.0
# The indent of bullet text, and the height of the middle of its marker, in ems.
_INDENT = 1.05
_MARKER_RISE = 0.36


@dataclass(frozen=True, slots=True)
class TextColumn:
    """The place where a template wants its text, and how it is set.

    Attributes:
        box: rectangle that contains all text, in pixels.
        scale: scale of the card; 1 for 1200 by 630 pixels.
        inks: text colours for the background of the column.
        rtl: whether text without a direction of its own reads from right to left.
        lead: free space above the first line, for an ornament, in pixels.
        anchor: share of the free height above the text, from 0 to 1; 0.45 by default.
    """

    box: Box
    scale: float
    styles: Mapping[str, TextStyle]
    inks: Inks
    rtl: bool
    lead: float = 0.0
    anchor: float = 0.45


@dataclass(frozen=True, slots=True)
class TextStack:
    """The placed texts of a card, with the markers of bullets and with warnings.

    `block` is the box around all texts but the footer, with the free space above them.
    """

    boxes: tuple[TextBox, ...]
    block: Box
    markers: tuple[Disc, ...]
    warnings: tuple[str, ...]


@dataclass(slots=True)
class _StackPass:
    """One pass that fits the texts of a column from top to bottom, and counts the free height."""

    column: TextColumn
    fonts: Fonts
    free: float
    fitted: dict[str, FittedText] = field(default_factory=dict)
    shortened: list[str] = field(default_factory=list)
    omitted: list[str] = field(default_factory=list)

    def place_role(self, role: str, paragraphs: tuple[Paragraph, ...], cap: float) -> None:
        if not paragraphs:
            return
        gap = _GAP_BEFORE.get(role, 0.0) * self.column.scale if self.fitted else 0.0
        style = self._choose_style(role)
        room = min(cap, self.free - gap)
        fit = fit_paragraphs(paragraphs, style, self.column.box.w, room, self.fonts)
        if fit is None:
            self.omitted.append(role)
            return
        if fit.shortened:
            self.shortened.append(role)
        self.fitted[role] = fit
        self.free -= gap + fit.height

    def _choose_style(self, role: str) -> TextStyle:
        style = self.column.styles[role]
        title = self.fitted.get("title")
        if title is None or role == "title":
            return style
        # Text below the title stays clearly smaller than it.
        above = self.fitted["subtitle"].size if "subtitle" in self.fitted else title.size * 0.62
        return replace(style, max_size=max(style.min_size, min(style.max_size, int(above))))


def stack_texts(
    texts: Mapping[str, tuple[Paragraph, ...]], column: TextColumn, fonts: Fonts
) -> TextStack:
    """Place all texts in a column, each as large as its share of the height allows.

    Args:
        texts: drawable paragraphs by role; roles without text are absent or empty.

    Returns:
        Text boxes that neither overlap nor leave the column, with warnings for texts that had to
        be shortened or left out.
    """
    footer = _fit_footer(texts.get("footer", ()), column, fonts)
    footer_space = footer.height + _GAP_FOOTER * column.scale if footer else 0.0
    free = column.box.h - footer_space - column.lead
    setting = _place_roles(texts, column, fonts, free, {})
    if setting.shortened and setting.free > 0:
        # Room that the roles below did not use goes to shortened roles.
        setting = _place_roles(
            texts, column, fonts, free, dict.fromkeys(setting.shortened, setting.free)
        )
    if texts.get("footer") and footer is None:
        setting.omitted.append("footer")
    elif footer and footer.shortened:
        setting.shortened.append("footer")
    boxes, markers, block = _position_roles(setting, column)
    if footer:
        low = column.box.bottom - footer.height
        boxes += _build_boxes("footer", footer, column, low)
    warnings = [f"{role} was shortened to fit" for role in setting.shortened]
    warnings += [f"{role} was left out: there is no room for it" for role in setting.omitted]
    return TextStack(tuple(boxes), block, tuple(markers), tuple(warnings))


def _place_roles(
    texts: Mapping[str, tuple[Paragraph, ...]],
    column: TextColumn,
    fonts: Fonts,
    free: float,
    bonus: Mapping[str, float],
) -> _StackPass:
    setting = _StackPass(column, fonts, free)
    body, bullets = texts.get("body", ()), texts.get("bullets", ())
    has_body = bool(body or bullets)
    title_share = 1.0 if not (has_body or texts.get("subtitle")) else (0.44 if has_body else 0.7)

    def put(role: str, share: float) -> None:
        setting.place_role(role, texts.get(role, ()), setting.free * share + bonus.get(role, 0.0))

    put("kicker", 0.3)
    put("title", title_share)
    put("subtitle", 0.36 if has_body else 1.0)
    if body and bullets:
        # Bullets are measured first, so that the body gets all that they leave.
        trial = _StackPass(column, fonts, setting.free, dict(setting.fitted))
        trial.place_role("bullets", bullets, trial.free * 0.55)
        put("body", max(0.45, trial.free / max(setting.free, 1.0)))
    else:
        put("body", 1.0)
    put("bullets", 1.0)
    return setting


def _fit_footer(
    paragraphs: tuple[Paragraph, ...], column: TextColumn, fonts: Fonts
) -> FittedText | None:
    if not paragraphs:
        return None
    return fit_paragraphs(
        paragraphs, column.styles["footer"], column.box.w, column.box.h * 0.3, fonts
    )


def _position_roles(
    setting: _StackPass, column: TextColumn
) -> tuple[list[TextBox], list[Disc], Box]:
    top = column.box.y + max(0.0, setting.free) * column.anchor
    boxes: list[TextBox] = []
    markers: list[Disc] = []
    y = top + column.lead
    for role, fitted in setting.fitted.items():
        y += _GAP_BEFORE.get(role, 0.0) * column.scale if boxes else 0.0
        role_boxes = _build_boxes(role, fitted, column, y)
        if role == "bullets":
            markers += [_place_marker(box, column) for box in role_boxes]
        boxes += role_boxes
        y += fitted.height
    return boxes, markers, Box(column.box.x, top, column.box.w, y - top)


def _build_boxes(role: str, fitted: FittedText, column: TextColumn, top: float) -> list[TextBox]:
    """Build one box for a role, or one for each bullet."""
    if role != "bullets":
        return [_build_box(role, fitted, column, top, range(len(fitted.rows)))]
    items: dict[int, list[int]] = {}
    for number, row in enumerate(fitted.rows):
        items.setdefault(row.paragraph, []).append(number)
    return [_build_box("bullet", fitted, column, top, rows) for rows in items.values()]


def _build_box(
    role: str, fitted: FittedText, column: TextColumn, top: float, numbers: range | list[int]
) -> TextBox:
    baselines = fitted.compute_baselines()
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
        _choose_ink(role, column.inks),
    )


def _choose_ink(role: str, inks: Inks) -> tuple[int, int, int]:
    if role == "kicker":
        return inks.accent
    return inks.title if role in {"title", "bullet"} else inks.muted


def _place_marker(box: TextBox, column: TextColumn) -> Disc:
    first, em = box.lines[0], box.font_size
    inset = 0.32 * em
    x = column.box.right - inset if first.rtl else column.box.x + inset
    return Disc(x, first.baseline - _MARKER_RISE * em, 0.17 * em, column.inks.accent)


def build_styles(
    scale: float, title: tuple[int, int] = (76, 34), title_lines: int = 5
) -> dict[str, TextStyle]:
    """Build the usual style of each kind of text at a scale.

    Args:
        scale: scale of the card; 1 for 1200 by 630 pixels.
        title: largest and smallest size of the title at scale 1, in pixels.
        title_lines: maximum number of lines of the title.

    >>> build_styles(0.5)["title"].max_size
    38
    """

    def style(
        bold: bool, sizes: tuple[int, int], leading: float, max_lines: int, balanced: bool = False
    ) -> TextStyle:
        small = max(7, round(sizes[1] * scale))
        return TextStyle(
            bold, max(small, round(sizes[0] * scale)), small, leading, max_lines, balanced
        )

    return {
        "kicker": style(True, (23, 14), 1.2, 1),
        "title": style(True, title, 1.17, title_lines, balanced=True),
        "subtitle": style(False, (34, 20), 1.32, 5),
        "body": style(False, (27, 17), 1.45, 60),
        "bullets": replace(style(False, (28, 17), 1.34, 60), indent=_INDENT),
        "footer": style(False, (20, 13), 1.2, 1),
    }
