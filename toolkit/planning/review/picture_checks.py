"""Checks of pictures: whether they open, their size, and that they show something."""

from collections.abc import Iterator
from typing import get_args

from toolkit.contract.base import JsonObject
from toolkit.planning.review import picture_measures
from toolkit.planning.review.evidence import Evidence, Inspection, NodeCheck
from toolkit.planning.review.issues import ReviewIssue


def check_picture(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a picture opens, has the requested size and is not blank."""
    item, blob = look.item, look.item.blob
    if blob is None:
        return
    name = item.node.id
    if blob.media_type == "image/svg+xml":
        size = picture_measures.read_svg_size(blob.data)
        blank = False
    else:
        measured = picture_measures.measure_image(blob.data)
        size = (measured.width, measured.height) if measured else None
        blank = measured is not None and measured.is_blank
    if size is None:
        yield ReviewIssue(
            name, "technical_success", 1.0, "The image does not open.", is_blocking=True
        )
        return
    wanted = _find_expected_size(item)
    if wanted is not None and size != wanted:
        message = f"The image is {size[0]} × {size[1]}, not {wanted[0]} × {wanted[1]}."
        changes: JsonObject = {"width": wanted[0], "height": wanted[1]}
        yield ReviewIssue(
            name, "technical_success", 0.7, message, is_blocking=True, changes=changes
        )
    if blank:
        changes = _vary_input(item, look.attempt)
        message = "The image is blank."
        yield ReviewIssue(
            name, "technical_success", 0.9, message, is_blocking=True, changes=changes
        )


PICTURE_CHECKS: tuple[NodeCheck, ...] = (check_picture,)


def _find_expected_size(item: Evidence) -> tuple[int, int] | None:
    """Return the requested image size, or the capability's default one."""
    fields = item.capability.input_model.model_fields
    sides = [
        item.node.input.get(side, fields[side].default if side in fields else None)
        for side in ("width", "height")
    ]
    width, height = sides
    return (width, height) if isinstance(width, int) and isinstance(height, int) else None


def _vary_input(item: Evidence, attempt: int) -> JsonObject:
    """Return an input change that makes the same request come out differently."""
    fields = item.capability.input_model.model_fields
    if "seed" in fields:
        seed = item.node.input.get("seed")
        return {"seed": attempt + 1 if seed != attempt + 1 else attempt + 2}
    if "template" in fields:
        choices = _list_choices(fields["template"].annotation)
        now = item.node.input.get("template", fields["template"].default)
        others = [choice for choice in choices if choice != now]
        if others:
            return {"template": others[attempt % len(others)]}
    return {}


def _list_choices(annotation: object) -> list[str]:
    found: list[str] = []
    for part in get_args(annotation):
        found += [part] if isinstance(part, str) else _list_choices(part)
    return found
