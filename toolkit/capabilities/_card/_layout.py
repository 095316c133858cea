"""From a card to a scene: checks, text preparation and one layout pass; called by the painters."""

from dataclasses import dataclass

from toolkit.capabilities._card._fit import Paragraph
from toolkit.capabilities._card._fonts import Fonts
from toolkit.capabilities._card._picture import open_picture
from toolkit.capabilities._card._scene import (
    LARGEST_SIDE,
    SMALLEST_SIDE,
    Card,
    CardError,
    Disc,
    Scene,
)
from toolkit.capabilities._card._stack import stack
from toolkit.capabilities._card._templates import BY_NAME, Canvas
from toolkit.capabilities._card._text import is_rtl, tidy
from toolkit.capabilities._card._themes import PALETTES

# Far more than any card shows; it bounds the work that a hostile text can cause.
_MOST_CHARACTERS = 20_000
_MOST_BULLETS = 40
_BOLD_ROLES = frozenset({"kicker", "title"})
_CROWDED = 260
_NAMED_GLYPHS = 20


def compose(card: Card, fonts: Fonts) -> Scene:
    """Lay out a card as a scene.

    Args:
        card: what to show.
        fonts: what measures and will draw.

    Returns:
        The scene both painters draw, with warnings about anything not shown as asked.

    Raises:
        CardError: an unknown template or theme, a side outside 200 to 4096 pixels, an empty
            title or a picture that cannot be used.

    Example:
        >>> scene = compose(Card(title="Tides"), Fonts.bundled())
        >>> [box.role for box in scene.texts]
        ['title']
    """
    _check(card)
    words = _read(card, fonts)
    title = words.texts["title"]
    written = sum(len(p.text) for role in ("body", "bullets") for p in words.texts[role])
    canvas = Canvas(
        card.width,
        card.height,
        PALETTES[card.theme],
        card.title,
        None if card.image is None else open_picture(card.image),
        title[0].rtl,
        crowded=written > _CROWDED,
        lonely=not any(words.texts[role] for role in ("subtitle", "body", "bullets")),
    )
    template = BY_NAME[card.template]
    column = template.column(canvas)
    stacked = stack(words.texts, column, fonts)
    markers = tuple(Disc(x, y, r, column.inks.accent) for x, y, r in stacked.markers)
    return Scene(
        " ".join(tidy(card.title)),
        card.width,
        card.height,
        (*template.layers(canvas, stacked), *markers),
        stacked.boxes,
        (*words.warnings, *stacked.warnings),
        words.missing,
    )


@dataclass(frozen=True, slots=True)
class _Words:
    texts: dict[str, tuple[Paragraph, ...]]
    warnings: tuple[str, ...]
    missing: tuple[str, ...]


def _check(card: Card) -> None:
    if card.template not in BY_NAME:
        raise CardError(f"there is no template {card.template!r}; there are: {', '.join(BY_NAME)}")
    if card.theme not in PALETTES:
        raise CardError(f"there is no theme {card.theme!r}; there are: {', '.join(PALETTES)}")
    for name, side in (("width", card.width), ("height", card.height)):
        if not SMALLEST_SIDE <= side <= LARGEST_SIDE:
            raise CardError(
                f"the {name} is {side} pixels; it must be {SMALLEST_SIDE} to {LARGEST_SIDE}"
            )
    if not tidy(card.title):
        raise CardError("the title is empty")


def _read(card: Card, fonts: Fonts) -> _Words:
    """Prepare all texts as drawable paragraphs, and note what could not be taken over."""
    raw = {
        "kicker": (card.kicker,),
        "title": (card.title,),
        "subtitle": (card.subtitle,),
        "body": (card.body,),
        "bullets": card.bullets[:_MOST_BULLETS],
        "footer": (card.footer,),
    }
    warnings = []
    if len(card.bullets) > _MOST_BULLETS:
        warnings.append(f"only the first {_MOST_BULLETS} bullets were considered")
    texts: dict[str, tuple[Paragraph, ...]] = {}
    missing: dict[str, None] = {}
    base = is_rtl(card.title)
    for role, sources in raw.items():
        if any(len(source) > _MOST_CHARACTERS for source in sources):
            warnings.append(f"only the first {_MOST_CHARACTERS} characters of {role} were read")
        paragraphs: list[str] = []
        for source in sources:
            lines = tidy(source[:_MOST_CHARACTERS])
            # Only the body has paragraphs; elsewhere a line break is just a space.
            paragraphs += lines if role == "body" else filter(None, [" ".join(lines)])
        bold = role in _BOLD_ROLES
        missing.update(dict.fromkeys(c for p in paragraphs for c in fonts.missing(p, bold)))
        texts[role] = tuple(Paragraph(fonts.drawable(p, bold), is_rtl(p, base)) for p in paragraphs)
    warnings += _glyph_warnings(tuple(missing))
    if not fonts.shaping and any(p.rtl for role in texts.values() for p in role):
        warnings.append(
            "text written from right to left may look wrong: Pillow has no libraqm here"
        )
    return _Words(texts, tuple(warnings), tuple(missing))


def _glyph_warnings(missing: tuple[str, ...]) -> list[str]:
    if not missing:
        return []
    named = "".join(missing[:_NAMED_GLYPHS]) + ("…" if len(missing) > _NAMED_GLYPHS else "")
    count = "1 character has" if len(missing) == 1 else f"{len(missing)} characters have"
    return [f"{count} no glyph in the fonts available: {named}"]
