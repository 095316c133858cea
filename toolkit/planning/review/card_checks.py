"""Checks of cards, by what their layout reports of its texts."""

from collections.abc import Iterator

from toolkit.planning.review.evidence import Inspection, NodeCheck
from toolkit.planning.review.issues import ReviewIssue


def check_layout(look: Inspection) -> Iterator[ReviewIssue]:
    """Check a layout's own report: its text boxes, its warnings, its missing glyphs."""
    item = look.item
    output = item.output or {}
    if "text_boxes" not in item.capability.output_model.model_fields:
        return
    name = item.node.id
    if not output.get("text_boxes"):
        message = "The layout has no text on it."
        yield ReviewIssue(name, "output_completeness", 0.9, message, is_blocking=True)
    warned, lacked = output.get("warnings"), output.get("missing_glyphs")
    if isinstance(warned, list) and warned:
        message = f"The layout gave {len(warned)} warning(s)."
        yield ReviewIssue(name, "technical_success", min(0.3, 0.1 * len(warned)), message)
    if isinstance(lacked, list) and lacked:
        message = f"{len(lacked)} character(s) have no glyph here."
        yield ReviewIssue(name, "technical_success", min(0.4, 0.05 * len(lacked)), message)


CARD_CHECKS: tuple[NodeCheck, ...] = (check_layout,)
