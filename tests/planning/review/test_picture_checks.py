"""Checks of pictures: good pictures of many kinds pass, and empty pictures do not."""

import time
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from benchmarks.sets.review.makers import Spec, make
from tests.planning.review.evidence import build_evidence
from tests.planning.sample_capabilities import DRAWING
from toolkit.planning.review.evidence import Evidence, Inspection, ReviewIssue
from toolkit.planning.review.node_checks import check_node
from toolkit.planning.review.picture_checks import check_variety
from toolkit.plugins import Blob
from toolkit.sandbox.pictures.drawing import draw_picture

SIZE = (640, 512)
SHAPE = {"width": SIZE[0], "height": SIZE[1]}


def specify(maker: str, **args: object) -> Spec:
    """Specify a picture by its maker."""
    return {"maker": maker, "args": args}


def build_picture(
    data: bytes, prompt: str = "a scene", media_type: str = "image/png", **options: Any
) -> Evidence:
    """Build the evidence of a picture."""
    blob = Blob(data, media_type)
    return build_evidence(DRAWING, {"prompt": prompt, **SHAPE}, blob, **SHAPE, **options)


def find_issues(
    data: bytes, prompt: str = "a scene", media_type: str = "image/png"
) -> list[ReviewIssue]:
    """Find the issues of a picture."""
    return check_node(Inspection(build_picture(data, prompt, media_type), "a picture"))


STREET = specify("night_street", **SHAPE, seed=1)
HILLS = specify("sandbox_picture", **SHAPE, seed=8, prompt="green hills")
GREY = (128, 128, 128)
SPOILED: dict[str, tuple[Spec, str]] = {
    "one colour": (specify("blank", **SHAPE, color=(128, 130, 200)), "blank"),
    "one colour under noise": (
        specify("faint_noise", **SHAPE, color=(9, 9, 9), sigma=3), "blank"),
    "all transparent": (specify("all_transparent", of=HILLS), "blank"),
    "hardly opaque": (specify("all_transparent", of=HILLS, alpha=6), "blank"),
    "random pixels": (specify("pure_noise", **SHAPE), "picture_noise"),
    "random small blocks": (specify("pure_noise", **SHAPE, coarse=3), "picture_noise"),
    "random large blocks": (specify("pure_noise", **SHAPE, coarse=16), "picture_noise"),
    "grey below": (specify("half_flat", of=HILLS, color=GREY, start=0.5), "dead_area"),
    "black at a side": (
        specify("half_flat", of=HILLS, color=(0, 0, 0), start=0.6, side="right"), "dead_area"),
    "a drawing that ends half way": (
        specify("half_flat", of=STREET, color=GREY, start=0.5), "dead_area"),
    "16 pixels blown up": (specify("upscaled", of=HILLS, tiny=16), "detail"),
    "40 pixels blown up": (specify("upscaled", of=HILLS, tiny=40), "detail"),
    "blown up to blocks": (specify("upscaled", of=HILLS, tiny=64, smooth=False), "detail"),
    "another size": (specify("resized", of=HILLS, width=632, height=512), "picture_size"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["png", "webp", "jpeg"])
@pytest.mark.parametrize("name", SPOILED)
def test_blocks_a_spoiled_picture(name: str, kind: str) -> None:
    """Given a spoiled picture, then the check of its defect blocks it."""
    spec, check = SPOILED[name]
    if kind == "jpeg" and spec["maker"] == "all_transparent":
        pytest.skip("JPEG has no transparency")
    if kind != "png" and name == "blown up to blocks":
        pytest.skip("lossy compression smears blocks")
    made = make(specify("as_file", of=spec, kind=kind))
    issues = find_issues(made.data, media_type=made.media_type)
    assert check in {issue.check for issue in issues if issue.is_blocking}


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (make(HILLS).data[:-400], "image/png"),
        (make(specify("as_file", of=HILLS, kind="jpeg")).data[:-4000], "image/jpeg"),
        (make(specify("as_file", of=HILLS, kind="gif")).data, "image/gif"),
        (make(specify("as_file", of=HILLS, kind="jpeg")).data, "image/png"),
        (b"<html>504 Gateway Timeout</html>", "image/png"),
        (b"", "image/png"),
    ],
)
def test_blocks_an_invalid_file(data: bytes, media_type: str) -> None:
    """Given a truncated file or a file of another type, then it is blocked."""
    assert any(issue.is_blocking for issue in find_issues(data, media_type=media_type))


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
    ("prompt", "name"),
    [
        ("8-bit pixel art of a lake", "blown up to blocks"),
        ("a soft gradient in blue", "16 pixels blown up"),
    ],
)
def test_passes_a_requested_style(prompt: str, name: str) -> None:
    """Given a coarse or soft picture, when the prompt requests this style, then it passes."""
    assert find_issues(make(SPOILED[name][0]).data, prompt) == []


def test_recommends_another_seed() -> None:
    """Given random pixels, then the issue recommends another seed."""
    issue = find_issues(make(SPOILED["random pixels"][0]).data)[0]
    assert issue.changes == {"seed": 1}
    assert "noise" in issue.message


def test_finds_a_repeated_picture() -> None:
    """Given three pictures of which two are the same, then the later node gets the issue."""
    copy = specify("as_file", of=HILLS, kind="jpeg")
    items = [
        build_picture(make(spec).data, media_type=make(spec).media_type, node_id=name)
        for name, spec in (("a", HILLS), ("b", STREET), ("c", copy))
    ]
    issues = check_variety(items, attempt=0)
    assert [issue.node_id for issue in issues] == ["c"]
    assert issues[0].changes


def test_rejects_a_decompression_bomb() -> None:
    """Given a small file that unpacks to gigabytes, then it is rejected before it unpacks."""
    buffer = BytesIO()
    Image.new("1", (8, 8)).save(buffer, "PNG")
    bomb = bytearray(buffer.getvalue())
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2
    started = time.thread_time()
    assert "picture_file" in {issue.check for issue in find_issues(bytes(bomb))}
    assert time.thread_time() - started < 0.5
