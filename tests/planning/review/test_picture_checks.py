"""Checks of pictures: good pictures of many kinds pass, and empty pictures do not."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.planning.review import pictures
from tests.planning.review.evidence import build_evidence
from tests.planning.sample_capabilities import DRAWING
from toolkit.planning.review.evidence import Evidence, Inspection, ReviewIssue
from toolkit.planning.review.node_checks import check_node
from toolkit.planning.review.picture_checks import check_variety
from toolkit.plugins import Blob
from toolkit.sandbox.pictures.drawing import draw_picture

SIZE = (640, 512)
NEAREST, BICUBIC = Image.Resampling.NEAREST, Image.Resampling.BICUBIC
encode = pictures.encode_picture


def build_picture(
    data: bytes, prompt: str, size: tuple[int, int], media_type: str = "image/png", **options: Any
) -> Evidence:
    """Build the evidence of a picture."""
    shape = {"width": size[0], "height": size[1]}
    blob = Blob(data, media_type)
    return build_evidence(DRAWING, {"prompt": prompt, **shape}, blob, **shape, **options)


def find_issues(
    data: bytes, prompt: str = "a scene", media_type: str = "image/png"
) -> list[ReviewIssue]:
    """Find the issues of a picture."""
    return check_node(Inspection(build_picture(data, prompt, SIZE, media_type), "a picture"))


def paint_landscape() -> Image.Image:
    """Paint a picture as fine as a photograph."""
    return pictures.paint_nature(np.random.default_rng(1), SIZE)


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
    "another size": (lambda: paint_landscape().crop((8, 0, *SIZE)), "picture_size"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "JPEG"])
@pytest.mark.parametrize("name", SPOILED)
def test_blocks_a_spoiled_picture(name: str, kind: str) -> None:
    """Given a spoiled picture, then the check of its defect blocks it."""
    make, check = SPOILED[name]
    image = make()
    if kind == "JPEG" and image.mode == "RGBA":
        pytest.skip("JPEG has no transparency")
    if kind != "PNG" and name == "blown up to blocks":
        pytest.skip("lossy compression smears blocks")
    issues = find_issues(encode(image, kind), media_type=f"image/{kind.lower()}")
    assert check in {issue.check for issue in issues if issue.is_blocking}


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
def test_blocks_an_invalid_file(data: bytes, media_type: str) -> None:
    """Given a truncated file or a file of another type, then it is blocked."""
    assert any(issue.is_blocking for issue in find_issues(data, media_type=media_type))


def test_passes_good_pictures() -> None:
    """Given 130 pictures of 13 kinds as PNG, JPEG and WebP, then at most 1 of them is blocked."""
    blocked: list[tuple[int, str]] = []
    kinds = ("PNG", "JPEG", "WEBP")
    for seed in range(130):
        image = pictures.paint_good(seed, (320, 288))
        kind = "PNG" if image.mode == "RGBA" else kinds[seed // 13 % 3]
        prompt = pictures.name_good(seed)
        evidence = build_picture(encode(image, kind), prompt, image.size, f"image/{kind.lower()}")
        issues = check_node(Inspection(evidence, "a picture"))
        blocked += [(seed, f"{prompt}: {issue.message}") for issue in issues if issue.is_blocking]
    assert len({seed for seed, _ in blocked}) <= 1, blocked


@pytest.mark.parametrize(
    "prompt",
    ["wind turbines on hills", "a city at night", "a coral reef", "dunes", "tea", "a lighthouse"],
)
def test_passes_pictures_of_the_sandbox(prompt: str) -> None:
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
def test_passes_a_requested_style(prompt: str, make: Callable[[], Image.Image]) -> None:
    """Given a coarse or soft picture, when the prompt requests this style, then it passes."""
    assert find_issues(encode(make()), prompt) == []


def test_recommends_another_seed() -> None:
    """Given random pixels, then the issue recommends another seed."""
    issue = find_issues(encode(pictures.make_noise(1, SIZE)))[0]
    assert issue.changes == {"seed": 1}
    assert "noise" in issue.message


def test_finds_a_repeated_picture() -> None:
    """Given three pictures of which two are the same, then the later node gets the issue."""
    first, second = paint_landscape(), pictures.paint_poster(np.random.default_rng(4), SIZE)
    items = [
        build_picture(encode(image, kind), "a", SIZE, f"image/{kind.lower()}", node_id=name)
        for name, image, kind in (("a", first, "PNG"), ("b", second, "PNG"), ("c", first, "JPEG"))
    ]
    issues = check_variety(items, attempt=0, max_bits=4)
    assert [issue.node_id for issue in issues] == ["c"]
    assert issues[0].changes


def test_rejects_a_decompression_bomb() -> None:
    """Given a small file that unpacks to gigabytes, then it is rejected before it unpacks."""
    bomb = bytearray(encode(Image.new("1", (8, 8))))
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2
    started = time.thread_time()
    assert "picture_file" in {issue.check for issue in find_issues(bytes(bomb))}
    assert time.thread_time() - started < 0.5
