"""Checks of cards: their input against the reported texts and the visible texts."""

import html
import re
import unicodedata
from collections.abc import Iterator

from pydantic import BaseModel, TypeAdapter, ValidationError

from toolkit.media.svg_measures import SVG, read_svg_texts
from toolkit.planning.review.evidence import (
    Evidence,
    Inspection,
    NodeCheck,
    ReviewIssue,
    block_result,
)

_ROLES = ("title", "subtitle", "kicker", "footer", "body")
_WORD = re.compile(r"[^\W_]+")
_DENSE = re.compile(r"[\u0e00-\u0eff\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_SMALL_TYPE = 0.0195  # of the shorter side: the smallest that the layout sets
_REPLACED = frozenset("\ufffd□▯")
_MAX_LOST_SHARE = 0.02  # of the letters, without a glyph
# Of the words of each input text that are on the card; also if the layout says that it cut them.
_MIN_TEXT_SHARE, _MIN_CUT_SHARE = 0.75, 0.25
_MAX_FOREIGN_WORDS = 0.5  # share of the words of a text that are in no input
_MIN_SOURCE_SHARE = 0.4  # of a body's words that are in its sources
# Shares of the card's shorter side: the distance of a text outside, and the size of type.
_MAX_OUTSIDE, _MIN_TYPE = 0.005, 0.012
_LEGIBLE_PX = 11  # pixels of type on a large card
_MAX_OVERLAP = 0.12  # share of a text that lies upon another
_MIN_CONTRAST = 1.8  # ratio of a text and its background
_MIN_PICTURE_SHARE = 0.45  # of a picture's colours on the card


class DrawnText(BaseModel):
    """A text on a card: its place, size and font size in pixels, as the renderer reports them."""

    role: str
    text: str
    x: float
    y: float
    width: float
    height: float
    font_size: float


_DRAWN = TypeAdapter(list[DrawnText])


def check_layout(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a card has the requested format, text on it, and no warnings."""
    item = look.item
    output = item.output or {}
    if "text_boxes" not in item.capability.output_model.model_fields:
        return
    file_format = item.node.input.get("format")
    if item.blob is not None and file_format == "svg" and item.blob.media_type != SVG:
        yield block_result(item, 0.7, f"The card is {item.blob.media_type}, not SVG as requested.")
    elif item.blob is not None and file_format == "png" and item.blob.media_type == SVG:
        yield block_result(item, 0.7, "The card is SVG, not PNG as requested.")
    if not output.get("text_boxes"):
        message = "The layout has no text on it."
        yield ReviewIssue(item.node.id, "output_completeness", 0.9, message, is_blocking=True)
    warned = output.get("warnings")
    if isinstance(warned, list) and warned:
        message = f"The layout gave {len(warned)} warning(s)."
        weight = min(0.3, 0.1 * len(warned))
        yield ReviewIssue(item.node.id, "technical_success", weight, message)


def check_glyphs(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that the characters of a card can be drawn; a few lost ones only lower the score."""
    item = look.item
    output = item.output or {}
    lacked = _read_strings(output.get("missing_glyphs"))
    drawn = "".join(box.text for box in _read_drawn(item))
    text = "".join(text for _, text in _list_input_texts(item)) or drawn
    letters = [char for char in text if _is_letter(char)]
    # A text by an earlier node is not in the input, and is drawn without the lost letters.
    lost = max(sum(char in lacked for char in letters), sum(map(_is_letter, lacked)))
    replaced = sum(map(_is_replaced, drawn))
    share = (lost + replaced) / max(1, len(letters))
    if share > _MAX_LOST_SHARE:
        message = f"{share:.0%} of the letters have no glyph here."
        yield block_result(item, 0.8, message)
    elif lacked:
        message = f"{len(lacked)} character(s) have no glyph here."
        weight = min(0.4, 0.05 * len(lacked))
        yield ReviewIssue(item.node.id, "technical_success", weight, message)


def check_card_texts(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a card shows the texts of its input, and few words that were not given."""
    item = look.item
    drawn, output = _read_drawn(item), item.output or {}
    if not drawn or output.get("missing_glyphs"):
        return
    card_words = set(_split_words(" ".join(box.text for box in drawn)))
    warned = " ".join(_read_strings(output.get("warnings")))
    is_cut = bool(warned) or any(_ends_cut(box.text) for box in drawn)
    for role, text in _list_input_texts(item):
        if role in warned and role != "title":
            continue  # there was no room for it, and another layout would have none either
        words = _split_words(text)
        share = sum(word in card_words for word in words) / len(words) if words else 1.0
        if share < (_MIN_CUT_SHARE if is_cut else _MIN_TEXT_SHARE):
            message = f"Only {share:.0%} of the given {role} is on the card."
            yield ReviewIssue(item.node.id, "output_completeness", 0.9, message, is_blocking=True)
    yield from _check_source(item, drawn)
    input_words = {word for _, text in _list_input_texts(item) for word in _split_words(text)}
    input_words.update(_split_words(item.upstream_text or ""))
    # The input does not always include the text of the body.
    boxes = [box for box in drawn if box.role != "body" or "body" in item.node.input]
    for box in boxes:
        words = _split_words(box.text)
        foreign = [word for word in words if word not in input_words]
        if len(foreign) > max(1, _MAX_FOREIGN_WORDS * len(words)):
            message = (
                f"{len(foreign)} of {len(words)} words of the {box.role} were not given, such as "
                f"`{foreign[0]}`."
            )
            yield ReviewIssue(item.node.id, "objective_alignment", 0.8, message, is_blocking=True)
            return


def _check_source(item: Evidence, drawn: list[DrawnText]) -> Iterator[ReviewIssue]:
    """Check that the words of the card's body come from the node that wrote it."""
    if "body" in item.node.input or not item.upstream_text:
        return
    body = _split_words(" ".join(box.text for box in drawn if box.role == "body"))
    source = set(_split_words(item.upstream_text))
    share = sum(word in source for word in body) / len(body) if body else 1.0
    if share < _MIN_SOURCE_SHARE:
        message = f"Only {share:.0%} of the card's body is from its source text."
        yield ReviewIssue(item.node.id, "objective_alignment", 0.8, message, is_blocking=True)


def check_places(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that texts stand inside of a card, apart from each other and large enough."""
    item = look.item
    drawn, size = _read_drawn(item), item.size
    if size is None:
        return
    for box in drawn:
        out = max(
            -box.x, -box.y, box.x + box.width - size[0], box.y + box.height - size[1]
        )  # fmt: skip
        if out > _MAX_OUTSIDE * min(size):
            message = f"The {box.role} extends beyond the card by {out:.0f} pixels."
            yield block_result(item, 0.8, message)
        # Small type is hard to read on any card, but type shrinks with a small card.
        small = min(_LEGIBLE_PX, _SMALL_TYPE * min(size))
        if box.font_size < max(small, _MIN_TYPE * min(size)):
            message = (
                f"The {box.role} is {box.font_size:.0f} pixels high on a card of "
                f"{size[0]} × {size[1]}."
            )
            yield block_result(item, 0.7, message)
    for place, box in enumerate(drawn):
        for second in drawn[place + 1 :]:
            share = _measure_overlap(box, second)
            if share > _MAX_OVERLAP:
                message = f"The {box.role} overlaps {share:.0%} of the {second.role}."
                yield block_result(item, 0.8, message)
                return


def check_contrast(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that each text is on the card and stands out from its background."""
    item, blob = look.item, look.item.blob
    drawn = _read_drawn(item)
    if blob is None or not drawn:
        return
    if blob.media_type == SVG:
        contrasts = _measure_svg_contrasts(blob.data, drawn)
    else:
        from toolkit.media.picture_measures import measure_text_contrasts

        boxes = [(box.x, box.y, box.width, box.height) for box in drawn]
        contrasts = measure_text_contrasts(blob.data, boxes) or []
    for box, contrast in zip(drawn, contrasts, strict=False):
        if contrast < _MIN_CONTRAST:
            message = f"The {box.role} cannot be seen: its contrast is {contrast:.1f} to 1."
            yield block_result(item, 0.8, message)


def _measure_svg_contrasts(data: bytes, drawn: list[DrawnText]) -> list[float]:
    """Measure the contrast of each text in an SVG: 1 for a missing text, 21 for an unknown one."""
    texts = read_svg_texts(data)
    content = " ".join(_split_words(html.unescape(" ".join(text.text for text in texts))))
    contrasts = []
    for box in drawn:
        words = _split_words(box.text)
        lines = [
            t
            for t in texts
            if (line_words := _split_words(t.text)) and set(line_words) <= set(words)
        ]
        is_there = not words or all(word in content for word in words)
        contrasts.append(min((t.contrast for t in lines), default=21.0) if is_there else 1.0)
    return contrasts


def check_card_picture(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a card shows the picture that it was given."""
    item, blob = look.item, look.item.blob
    if "text_boxes" not in item.capability.output_model.model_fields or blob is None:
        return
    if blob.media_type == SVG:
        if item.pictures and b"<image" not in blob.data:
            yield block_result(item, 0.8, "The given picture is not on the card.")
        return
    from toolkit.media.picture_measures import measure_shown_share

    for picture in item.pictures.values():
        if item.node.input.get("template") == "cover":
            continue  # it lies in the shade there
        share = measure_shown_share(blob.data, picture.data)
        if share is not None and share < _MIN_PICTURE_SHARE:
            message = f"The picture is not on the card: only {share:.0%} of its colours are."
            yield block_result(item, 0.8, message)


CARD_CHECKS: tuple[NodeCheck, ...] = (
    check_layout, check_glyphs, check_card_texts, check_places, check_contrast, check_card_picture,
)  # fmt: skip


def _read_drawn(item: Evidence) -> list[DrawnText]:
    """Read the texts that a card's output reports; none for other or invalid outputs."""
    if "text_boxes" not in item.capability.output_model.model_fields:
        return []
    try:
        return _DRAWN.validate_python((item.output or {}).get("text_boxes"))
    except ValidationError:
        return []  # the check of the output's schema reports this


def _read_strings(value: object) -> list[str]:
    return [part for part in value if isinstance(part, str)] if isinstance(value, list) else []


def _list_input_texts(item: Evidence) -> list[tuple[str, str]]:
    """List the texts that a card's input gives, with their roles; empty for other capabilities."""
    if "text_boxes" not in item.capability.output_model.model_fields:
        return []
    fields = item.node.input
    texts = [(role, text) for role in _ROLES if isinstance(text := fields.get(role), str)]
    texts += [("bullets", text) for text in _read_strings(fields.get("bullets"))]
    return [(role, text) for role, text in texts if text.strip()]


def _split_words(text: str) -> list[str]:
    """Split a text into lower-case words; in scripts without spaces, into single characters."""
    folded = unicodedata.normalize("NFKC", text.casefold())
    if _DENSE.search(folded):
        return [char for char in folded if char.isalnum()]
    return _WORD.findall(folded)


def _is_replaced(char: str) -> bool:
    """Check whether a character stands for a lost one, or Unicode gives it no meaning."""
    return char in _REPLACED or unicodedata.category(char) in ("Co", "Cn")


def _is_letter(char: str) -> bool:
    return unicodedata.category(char[:1] or " ")[0] in "LN"


def _ends_cut(text: str) -> bool:
    return text.rstrip().endswith(("…", "..."))


def _measure_overlap(first: DrawnText, second: DrawnText) -> float:
    """Measure the share of the smaller of two texts that lies upon the other."""
    wide = min(first.x + first.width, second.x + second.width) - max(first.x, second.x)
    tall = min(first.y + first.height, second.y + second.height) - max(first.y, second.y)
    smaller = min(first.width * first.height, second.width * second.height)
    return max(0.0, wide) * max(0.0, tall) / smaller if smaller > 0 else 0.0
