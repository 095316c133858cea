"""The checks of pictures: good ones of many kinds pass, and nothing that is none."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.planning.review import pictures
from tests.planning.review.evidence import build_evidence
from tests.planning.sample_capabilities import DRAWING
from toolkit.planning.review.evidence import Evidence, Inspection
from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.node_checks import check_node
from toolkit.planning.review.picture_checks import check_variety
from toolkit.plugins import Blob
from toolkit.sandbox.pictures.drawing import draw_picture

SIZE = (640, 512)
NEAREST, BICUBIC = Image.Resampling.NEAREST, Image.Resampling.BICUBIC
encode = pictures.encode_picture


def build_picture(
    data: bytes, prompt: str, size: tuple[int, int], media_type: str = "image/png", **more: Any
) -> Evidence:
    """Build the evidence that a picture is."""
    shape = {"width": size[0], "height": size[1]}
    blob = Blob(data, media_type)
    return build_evidence(DRAWING, {"prompt": prompt, **shape}, blob, **shape, **more)


def find_issues(
    data: bytes, prompt: str = "a scene", media_type: str = "image/png"
) -> list[ReviewIssue]:
    """Find what is wrong with a picture."""
    return check_node(Inspection(build_picture(data, prompt, SIZE, media_type), "a picture"))


def paint_landscape() -> Image.Image:
    """Paint a picture as fine as a photograph."""
    return pictures.paint_nature(np.random.default_rng(1), SIZE)


def paint_vectors() -> Image.Image:
    """Paint a picture of shapes in plain colours."""
    return pictures.paint_poster(np.random.default_rng(4), SIZE)


def shift_size(image: Image.Image, by: int) -> Image.Image:
    """Cut a picture to another size."""
    return image.crop((0, 0, image.width - by, image.height))


SPOILED: dict[str, tuple[Callable[[], Image.Image], str]] = {
    "one colour": (lambda: pictures.make_blank(SIZE, (128, 130, 200)), "blank"),
    "one colour under noise": (lambda: pictures.make_blank(SIZE, (9, 9, 9), 4), "blank"),
    "all transparent": (lambda: Image.new("RGBA", SIZE, (200, 30, 30, 0)), "blank"),
    "hardly opaque": (lambda: Image.new("RGBA", SIZE, (200, 30, 30, 6)), "blank"),
    "random pixels": (lambda: pictures.make_noise(1, SIZE), "picture_noise"),
    "random greys": (lambda: pictures.make_noise(2, SIZE, grey=True), "picture_noise"),
    "random small blocks": (lambda: pictures.make_noise(3, SIZE, 3), "picture_noise"),
    "random large blocks": (lambda: pictures.make_noise(4, SIZE, 16), "picture_noise"),
    "grey below": (lambda: pictures.make_half_flat(paint_landscape(), (128,) * 3, 0.5, 0),
                   "dead_area"),
    "black at a side": (lambda: pictures.make_half_flat(paint_landscape(), (0,) * 3, 0.6, 1),
                        "dead_area"),
    "green above": (lambda: pictures.make_half_flat(paint_landscape(), (0, 130, 0), 0.45, 2),
                    "dead_area"),
    "a drawing that ends half way": (
        lambda: pictures.make_half_flat(
            pictures.paint_confetti(np.random.default_rng(5), SIZE), (128,) * 3, 0.5, 0),
        "dead_area"),
    "16 pixels blown up": (lambda: pictures.make_enlarged(paint_landscape(), 16, BICUBIC),
                           "detail"),
    "40 pixels blown up": (lambda: pictures.make_enlarged(paint_landscape(), 40, BICUBIC),
                           "detail"),
    "tiles blown up": (
        lambda: pictures.make_enlarged(
            pictures.paint_pattern(np.random.default_rng(5), SIZE), 28, BICUBIC),
        "detail"),
    "blown up to blocks": (lambda: pictures.make_enlarged(paint_landscape(), 64, NEAREST),
                           "detail"),
    "another size": (lambda: shift_size(paint_landscape(), 8), "picture_size"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "JPEG"])
@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_picture_is_found(name: str, kind: str) -> None:
    """Given a picture that shows nothing, then the check that it is for blocks it."""
    make, check = SPOILED[name]
    image = make()
    if kind == "JPEG" and (image.mode == "RGBA" or name in {"blown up to blocks"}):
        pytest.skip("JPEG has no transparency, and smears blocks")
    if kind == "WEBP" and name == "blown up to blocks":
        pytest.skip("it smears them, too")
    found = find_issues(encode(image, kind), media_type=f"image/{kind.lower()}")
    assert check in {issue.check for issue in found if issue.is_blocking}


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (encode(paint_landscape())[:-400], "image/png"),
        (encode(paint_landscape(), "JPEG")[:-4000], "image/jpeg"),
        (encode(paint_landscape(), "GIF"), "image/gif"),
        (encode(paint_landscape(), "JPEG"), "image/png"),
        (b"<html>504 Gateway Timeout</html>", "image/png"),
        (b"", "image/png"),
    ],
)
def test_a_file_that_is_no_picture_is_found(data: bytes, media_type: str) -> None:
    """Given a file cut off or of another type, then it is blocked."""
    assert any(issue.is_blocking for issue in find_issues(data, media_type=media_type))


def test_few_good_pictures_are_blocked() -> None:
    """Given 130 pictures of 13 kinds as PNG, JPEG and WebP, then at most 1 of them is blocked."""
    blocked: list[tuple[int, str]] = []
    kinds = ("PNG", "JPEG", "WEBP")
    for seed in range(130):
        image = pictures.paint_good(seed, (320, 288))
        kind = "PNG" if image.mode == "RGBA" else kinds[seed // 13 % 3]
        prompt = pictures.name_good(seed)
        made = build_picture(encode(image, kind), prompt, image.size, f"image/{kind.lower()}")
        found = check_node(Inspection(made, "a picture"))
        blocked += [(seed, f"{prompt}: {issue.message}") for issue in found if issue.is_blocking]
    assert len({seed for seed, _ in blocked}) <= 1, blocked


@pytest.mark.parametrize(
    "prompt",
    ["wind turbines on hills", "a city at night", "a coral reef", "dunes", "an alpine lake", "tea",
     "a volcano at dusk", "a lighthouse", "abstract shapes", "aurora"],
)  # fmt: skip
def test_the_sandbox_draws(prompt: str) -> None:
    """Given pictures of the simulated vendors, then they pass."""
    for seed in range(3):
        data = draw_picture(prompt, width=SIZE[0], height=SIZE[1], seed=seed)
        assert find_issues(data, prompt) == []


@pytest.mark.parametrize(
    ("prompt", "make"),
    [
        ("8-bit pixel art of a lake", SPOILED["blown up to blocks"][0]),
        ("a soft gradient in blue", SPOILED["16 pixels blown up"][0]),
    ],
)
def test_what_was_asked_for_is_right(prompt: str, make: Callable[[], Image.Image]) -> None:
    """Given a coarse or soft picture, when that was asked for, then it passes."""
    assert find_issues(encode(make()), prompt) == []


def test_a_spoiled_picture_gets_another_seed() -> None:
    """Given random pixels, then the recommended change makes another picture."""
    issue = find_issues(encode(pictures.make_noise(1, SIZE)))[0]
    assert issue.changes == {"seed": 1}
    assert "noise" in issue.message


def test_three_pictures_are_three() -> None:
    """Given three pictures of which one is there twice, then the second of them is blamed."""
    first, other = paint_landscape(), paint_vectors()
    items = [
        build_picture(encode(image, kind), "a", SIZE, f"image/{kind.lower()}", node_id=name)
        for name, image, kind in (("a", first, "PNG"), ("b", other, "PNG"), ("c", first, "JPEG"))
    ]
    issues = check_variety(items, attempt=0, max_bits=4)
    assert [issue.node_id for issue in issues] == ["c"]
    assert issues[0].changes


def test_a_bomb_is_not_unpacked() -> None:
    """Given a small file that unpacks to gigabytes, then it does not open, and at once."""
    bomb = bytearray(encode(Image.new("1", (8, 8))))
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2
    started = time.thread_time()
    assert "picture_file" in {issue.check for issue in find_issues(bytes(bomb))}
    assert time.thread_time() - started < 0.5
