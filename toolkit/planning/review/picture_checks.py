"""Checks of pictures: whether they open, their size, and that there is something to see.

Drawings of few lines, night scenes, fog and plain backgrounds are good pictures. The checks look
for defects that no picture made for a person has: one colour, random pixels, an unpainted half, an
enlarged thumbnail.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from toolkit.contract.base import JsonObject
from toolkit.media.svg_measures import SVG
from toolkit.planning.review.evidence import (
    Evidence,
    Inspection,
    NodeCheck,
    ReviewIssue,
    block_result,
    vary_seed,
)

# Words of a request for a soft or a coarse picture.
_SOFT = re.compile(
    r"gradient|blur|bokeh|ombr|haz[ey]|\bfog|mist|glow|\bsoft|wallpaper|verlauf|unsch|weich|nebel|"
    r"dégrad|\bflou|brume|degradad|difumin|niebla|sfum|sfoc|nebbia|névoa|グラデ|ぼか|霧|渐变|漸變|"
    r"模糊|雾|تدرج|ضباب",
    re.I,
)
_COARSE = re.compile(
    r"pixel|píxel|8.?bit|mosa|voxel|lego|ピクセル|ドット|モザイク|像素|马赛克|بكسل|فسيفساء", re.I
)

# Shares are from 0 to 1, and contrast is in levels of brightness from 0 to 255.
_MIN_VISIBLE_SHARE = 0.005  # of pixels that are not transparent
_MIN_CONTRAST = 7.0  # between the lightest and the darkest part
_MAX_NOISE = 0.7  # unlikeness of neighbouring pixels, from 0 to 1
_MAX_DEAD_SHARE = 0.35  # of one colour, beginning at an edge
_MIN_BLOCK = 4  # pixels of the side of a block of one colour
# Of pictures whose detail is checked: turns from light to dark, contrast, and the loss of the
# sharpest parts, in levels, when the size is halved.
_MIN_TURNS, _MIN_DETAILED_CONTRAST, _MIN_FINEST_DETAIL = 1.8, 30.0, 2.5
_MAX_SAME_BITS = 4  # of 192, in which the fingerprints of equal pictures differ


def check_picture_file(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a picture opens, and that its type is supported and is the declared type."""
    item, blob = look.item, look.item.blob
    if blob is None:
        return
    if blob.media_type == SVG:
        if item.size is None:
            yield block_result(item, 1.0, "The image does not open.")
        return
    if item.picture is None:
        yield block_result(item, 1.0, "The image does not open.")
        return
    media_type = f"image/{item.picture.kind.lower()}"
    if media_type not in {"image/png", "image/jpeg", "image/webp"}:
        yield block_result(item, 0.8, f"The image is {media_type}, which few programs show.")
    elif media_type != blob.media_type:
        yield block_result(
            item, 0.8, f"The image is {media_type}, not {blob.media_type} as declared."
        )


def check_picture_size(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a picture has the requested size."""
    size, expected = look.item.size, _find_expected_size(look.item)
    if size is not None and expected is not None and size != expected:
        message = f"The image is {size[0]} × {size[1]}, not {expected[0]} × {expected[1]}."
        changes: JsonObject = {"width": expected[0], "height": expected[1]}
        yield block_result(look.item, 0.7, message, changes)


def check_blank(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a picture shows something: it is neither transparent nor of one colour."""
    item = look.item
    if (picture := item.picture) is None:
        return
    changes = vary_seed(item, look.attempt)
    if picture.visible_share < _MIN_VISIBLE_SHARE:
        message = f"The image is transparent: {picture.visible_share:.1%} of it can be seen."
        yield block_result(item, 0.9, message, changes)
    elif picture.contrast < _MIN_CONTRAST:
        message = f"The image is blank: its parts differ by {picture.contrast:.0f} of 255 levels."
        yield block_result(item, 0.9, message, changes)


def check_picture_noise(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a picture is not made of random pixels."""
    item = look.item
    picture = item.picture
    if picture is not None and not _is_layout(item) and picture.noise > _MAX_NOISE:
        message = f"The image is noise: neighbouring pixels have {1 - picture.noise:.0%} in common."
        yield block_result(item, 0.9, message, vary_seed(item, look.attempt))


def check_dead_area(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that no large part of a picture was left unpainted."""
    item = look.item
    picture = item.picture
    if picture is not None and not _is_layout(item) and picture.dead_share > _MAX_DEAD_SHARE:
        message = f"{picture.dead_share:.0%} of the image is one colour with a hard edge."
        yield block_result(item, 0.7, message, vary_seed(item, look.attempt))


def check_detail(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that the detail of a picture fits its size: it is no enlarged thumbnail."""
    item = look.item
    picture = item.picture
    if picture is None or _is_layout(item):
        return
    text = " ".join(value for value in item.node.input.values() if isinstance(value, str))
    changes = vary_seed(item, look.attempt)
    is_soft = (
        picture.finest_detail < _MIN_FINEST_DETAIL
        and picture.turns > _MIN_TURNS
        and picture.contrast > _MIN_DETAILED_CONTRAST
    )
    if picture.block >= _MIN_BLOCK and not _COARSE.search(text):
        message = f"The image is made of blocks of {picture.block} × {picture.block} pixels."
        yield block_result(item, 0.7, message, changes)
    elif is_soft and not _SOFT.search(text):
        message = (
            "The image was enlarged: at half the size it loses only "
            f"{picture.finest_detail:.0f} of 255 levels where it is sharpest."
        )
        yield block_result(item, 0.7, message, changes)


PICTURE_CHECKS: tuple[NodeCheck, ...] = (
    check_picture_file, check_picture_size, check_blank, check_picture_noise, check_dead_area,
    check_detail,
)  # fmt: skip


def check_variety(items: Sequence[Evidence], *, attempt: int) -> list[ReviewIssue]:
    """Check that no two generated pictures look the same.

    Args:
        attempt: number of earlier reviews.
    """
    marks: list[tuple[Evidence, int]] = []
    issues: list[ReviewIssue] = []
    for item in items:
        if item.status != "completed" or _is_layout(item) or item.picture is None:
            continue
        if item.capability.operation is None or item.picture.contrast < 1:
            continue
        mark = item.picture.fingerprint
        twin = next((o for o, other in marks if (mark ^ other).bit_count() <= _MAX_SAME_BITS), None)
        if twin is not None:
            message = f"The image looks the same as that of `{twin.node.id}`."
            changes = vary_seed(item, attempt + len(marks))
            issues.append(replace(block_result(item, 0.7, message, changes), check="variety"))
        marks.append((item, mark))
    return issues


def _is_layout(item: Evidence) -> bool:
    """Check whether a picture is a card, which may have plain panels and soft backgrounds."""
    return "text_boxes" in item.capability.output_model.model_fields


def _find_expected_size(item: Evidence) -> tuple[int, int] | None:
    """Return the requested image size, or the capability's default size; None without either."""
    fields = item.capability.input_model.model_fields
    sides = [
        item.node.input.get(side, fields[side].default if side in fields else None)
        for side in ("width", "height")
    ]
    width, height = sides
    return (width, height) if isinstance(width, int) and isinstance(height, int) else None
