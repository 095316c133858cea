"""From a card to a scene: checks, text preparation, one layout pass; called by `render_card`."""

from dataclasses import dataclass

from toolkit.capabilities._card._fit import Paragraph
from toolkit.capabilities._card._fonts import Fonts
from toolkit.capabilities._card._picture import open_picture
from toolkit.capabilities._card._scene import Card, CardError, Scene
from toolkit.capabilities._card._stack import stack_texts
from toolkit.capabilities._card._templates import TEMPLATES_BY_NAME, CardCanvas
from toolkit.capabilities._card._text import is_rtl, tidy
from toolkit.capabilities._card._themes import PALETTES

# Far more than any card shows; it bounds the work that a hostile text can cause.
_MAX_CHARACTERS = 20_000
_MAX_BULLETS = 40
_BOLD_ROLES = frozenset({"kicker", "title"})
_CROWDED_CHARACTERS = 260
_MAX_NAMED_GLYPHS = 20


def compose_scene(card: Card, fonts: Fonts) -> Scene:
    """Lay out a card as a scene.

    Returns:
        The scene both painters draw, with warnings about anything not shown as asked.

    Raises:
        CardError: an empty title or a picture that cannot be used.

    >>> scene = compose_scene(Card(title="Tides"), Fonts.load_bundled())
    >>> [box.role for box in scene.texts]
    ['title']
    """
    if not tidy(card.title):
        raise CardError("the title is empty")
    words = _prepare_texts(card, fonts)
    title = words.texts["title"]
    length = sum(len(p.text) for role in ("body", "bullets") for p in words.texts[role])
    canvas = CardCanvas(
        card.width,
        card.height,
        PALETTES[card.theme],
        card.title,
        None if card.image is None else open_picture(card.image),
        title[0].rtl,
        crowded=length > _CROWDED_CHARACTERS,
        lonely=not any(words.texts[role] for role in ("subtitle", "body", "bullets")),
    )
    template = TEMPLATES_BY_NAME[card.template]
    column = template.build_column(canvas)
    stacked = stack_texts(words.texts, column, fonts)
    return Scene(
        " ".join(tidy(card.title)),
        card.width,
        card.height,
        (*template.build_layers(canvas, stacked), *stacked.markers),
        stacked.boxes,
        (*words.warnings, *stacked.warnings),
        words.missing,
    )


@dataclass(frozen=True, slots=True)
class _PreparedTexts:
    texts: dict[str, tuple[Paragraph, ...]]
    warnings: tuple[str, ...]
    missing: tuple[str, ...]


def _prepare_texts(card: Card, fonts: Fonts) -> _PreparedTexts:
    """Prepare all texts of a card as drawable paragraphs, with warnings about lost parts."""
    raw = {
        "kicker": (card.kicker,),
        "title": (card.title,),
        "subtitle": (card.subtitle,),
        "body": (card.body,),
        "bullets": card.bullets[:_MAX_BULLETS],
        "footer": (card.footer,),
    }
    warnings = []
    if len(card.bullets) > _MAX_BULLETS:
        warnings.append(f"only the first {_MAX_BULLETS} bullets were considered")
    texts: dict[str, tuple[Paragraph, ...]] = {}
    missing: dict[str, None] = {}
    base = is_rtl(card.title)
    for role, sources in raw.items():
        if any(len(source) > _MAX_CHARACTERS for source in sources):
            warnings.append(f"only the first {_MAX_CHARACTERS} characters of {role} were read")
        paragraphs: list[str] = []
        for source in sources:
            lines = tidy(source[:_MAX_CHARACTERS])
            # Only the body has paragraphs; elsewhere a line break is just a space.
            paragraphs += lines if role == "body" else filter(None, [" ".join(lines)])
        bold = role in _BOLD_ROLES
        missing.update(dict.fromkeys(c for p in paragraphs for c in fonts.find_missing(p, bold)))
        texts[role] = tuple(
            Paragraph(fonts.to_drawable(p, bold), is_rtl(p, base)) for p in paragraphs
        )
    warnings += _build_glyph_warnings(tuple(missing))
    if not fonts.shaping and any(p.rtl for role in texts.values() for p in role):
        warnings.append(
            "text written from right to left may look wrong: Pillow has no libraqm here"
        )
    return _PreparedTexts(texts, tuple(warnings), tuple(missing))


def _build_glyph_warnings(missing: tuple[str, ...]) -> list[str]:
    if not missing:
        return []
    glyphs = "".join(missing[:_MAX_NAMED_GLYPHS]) + (
        "…" if len(missing) > _MAX_NAMED_GLYPHS else ""
    )
    count = "1 character has" if len(missing) == 1 else f"{len(missing)} characters have"
    return [f"{count} no glyph in the fonts available: {glyphs}"]
