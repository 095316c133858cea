"""A card drawn from plain values: the work of a worker process for `composition.layout`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.capabilities._text import clean, ends_sentence, shorten, strip_markup

MAX_BODY_CHARACTERS = 320  # of a body from upstream, because nobody reads more on a card
ArtifactBytes = tuple[str, bytes]  # media type and bytes


def prepare_worker() -> None:
    """Import the modules and load the fonts that a first card needs, by drawing a small card."""
    from toolkit.capabilities._card import Card, render_card

    render_card(Card(title="Tea", width=200, height=200))


def draw_card(
    fields: Mapping[str, Any], picture: bytes | None, upstream: Sequence[ArtifactBytes]
) -> tuple[dict[str, object], bytes, str]:
    """Lay a card out and draw it.

    Args:
        upstream: artifacts that its body may have been filled from.

    Returns:
        the members of the capability's output, the file, and the title as drawn.

    Raises:
        ProviderError: `PROVIDER_REJECTED` for a card that cannot be drawn, such as with a picture
            that does not open.
    """
    # Imported here: a caller that only names this function does not need it.
    from toolkit.capabilities._card import Card, CardError, render_card

    card = Card(
        title=clean(fields["title"]),
        subtitle=clean(fields["subtitle"]),
        body=prepare_body(fields["body"], upstream),
        bullets=tuple(clean(bullet) for bullet in fields["bullets"]),
        footer=clean(fields["footer"]),
        kicker=clean(fields["kicker"]),
        image=picture,
        template=fields["template"] or ("split" if picture else "classic"),
        theme=fields["theme"],
        width=fields["width"],
        height=fields["height"],
    )
    try:
        scene, data = render_card(card, svg=fields["format"] == "svg")
    except CardError as error:
        from toolkit.contract.errors import ErrorCode
        from toolkit.plugins import ProviderError

        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED, f"The card was not drawn: {error}"
        ) from None
    facts: dict[str, object] = {
        "media_type": "image/svg+xml" if fields["format"] == "svg" else "image/png",
        "width": scene.width,
        "height": scene.height,
        "size_bytes": len(data),
        "warnings": list(scene.warnings),
        "missing_glyphs": list(scene.missing_glyphs),
        "text_boxes": [
            {
                "role": box.role,
                "text": box.text,
                "x": box.x,
                "y": box.y,
                "width": box.w,
                "height": box.h,
                "font_size": box.font_size,
            }
            for box in scene.texts
        ],
    }
    return facts, data, card.title


def prepare_body(body: str, upstream: Sequence[ArtifactBytes]) -> str:
    """Return the body for the card: the caller's, or the first sentences of upstream texts.

    A body that equals the joined upstream texts, up to its length, was filled from them.
    """
    texts = _find_texts(upstream) if body else []
    if not body or "\n\n".join(text for _, text in texts)[: len(body)] != body:
        return clean(body)
    # Copy that was written for the card is better than the facts that it is based on.
    copies = [text for (media_type, _), text in texts if media_type.startswith("text/")]
    paragraphs = copies or [_pick_summary(data, text) for (_, data), text in texts]
    return shorten(
        _drop_headings(strip_markup(clean("\n\n".join(paragraphs)))), MAX_BODY_CHARACTERS
    )


def _find_texts(upstream: Sequence[ArtifactBytes]) -> list[tuple[ArtifactBytes, str]]:
    """Return the artifacts that have text, each with its text."""
    if not upstream:
        return []
    from toolkit.plugins import Blob, Upstream

    pairs = [(item, Upstream("", "", Blob(item[1], item[0])).text) for item in upstream]
    return [(item, text) for item, text in pairs if text]


def _pick_summary(data: bytes, text: str) -> str:
    """Return the `summary` of a JSON artifact, or its text if it has no summary."""
    value = json.loads(data)
    short = value.get("summary") if isinstance(value, dict) else None
    return short if isinstance(short, str) and short.strip() else text


def _drop_headings(text: str) -> str:
    """Return a text without the headings and greetings before its first sentence."""
    paragraphs = [part.strip() for part in text.split("\n") if part.strip()]
    first = next((n for n, part in enumerate(paragraphs) if ends_sentence(part)), 0)
    return "\n".join(paragraphs[first:])
