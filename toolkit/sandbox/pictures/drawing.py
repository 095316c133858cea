"""Pictures drawn for a prompt: sky, light, layered land or sea, and the scene's own objects."""

import io
import math
import random
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from zlib import crc32

from toolkit.sandbox.pictures import scenery
from toolkit.sandbox.pictures.canvas import Palette, SceneCanvas, choose_palette, mix_colors

if TYPE_CHECKING:
    from PIL.Image import Image


def draw_picture(
    prompt: str, *, width: int = 1024, height: int = 1024, steps: int = 25, seed: int = 0
) -> bytes:
    """Draw a PNG that depends on the arguments alone."""
    chance = random.Random(f"{seed}|{prompt.strip().lower()}")  # noqa: S311 - not for secrets
    palette = choose_palette(prompt, chance)
    canvas = SceneCanvas(width, height)
    detail = max(2, min(7, 2 + steps // 6))  # more steps, more layers
    text = prompt.lower()
    _draw_sky(canvas, palette, chance)
    draw_scene = next(draw for draw, words in _SCENES if re.search(rf"\b(?:{words})", text))
    draw_scene(canvas, palette, chance, detail)
    if re.search(r"\b(?:tid(?:e|al)|turbine|energy|power|wind)", text):
        for place, size in ((0.18, 0.3), (0.38, 0.24), (0.62, 0.34)):
            scenery.draw_turbine(canvas, chance, place, 0.66, size, palette)
    return _encode_png(canvas.render_image(), prompt)


def _encode_png(image: "Image", prompt: str) -> bytes:
    from PIL.PngImagePlugin import PngInfo

    note = PngInfo()
    note.add_text("Software", "sandbox picture drawn by rule, not by a model")
    note.add_text("Comment", f"prompt {crc32(prompt.encode()):08x}")
    buffer = io.BytesIO()
    image.save(buffer, "PNG", pnginfo=note, compress_level=6)
    return buffer.getvalue()


def _draw_sky(canvas: SceneCanvas, palette: Palette, chance: random.Random) -> None:
    canvas.draw_gradient(palette.sky, 0.0, 0.75)
    x, y = chance.uniform(0.2, 0.8), chance.uniform(0.16, 0.34)
    if palette.time in ("dusk", "dawn"):
        y = chance.uniform(0.36, 0.48)
    if palette.time == "night":
        scenery.draw_stars(canvas, chance, 220)
    radius = chance.uniform(0.045, 0.075)
    canvas.draw_glow(x, y, radius * 7, palette.light, 0.62 if palette.time != "night" else 0.34)
    canvas.draw_disc(x, y, radius, palette.light)
    if palette.time != "night":
        scenery.draw_clouds(canvas, chance, palette)


def _draw_ridges(
    canvas: SceneCanvas,
    palette: Palette,
    chance: random.Random,
    layers: int,
    *,
    top: float,
    bottom: float,
    rough: float,
) -> None:
    """Draw layers of land, paler with distance, each smoother than the layer before it."""
    for layer in range(layers):
        share = (layer + 1) / layers
        level = top + (bottom - top) * share
        line = make_ridge_line(chance, level, rough * (1.15 - 0.6 * share), 5)
        color = mix_colors(
            mix_colors(palette.far, palette.sky[2], 0.45 * (1 - share)), palette.near, share**1.4
        )
        canvas.draw_land(
            line, color, lighter=mix_colors(color, palette.light, 0.16 * (1 - share / 2))
        )


def make_ridge_line(
    chance: random.Random, level: float, rough: float, octaves: int
) -> Callable[[float], float]:
    """Make the height of a ridge across the picture: a few sine waves of falling size."""
    waves = [
        (rough / 1.9**k, chance.uniform(0.8, 1.3) * 1.9**k, chance.uniform(0, math.tau))
        for k in range(octaves)
    ]
    return lambda x: level + sum(a * math.sin(f * x * math.tau + p) for a, f, p in waves)


def _draw_sea(canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int) -> None:
    horizon = chance.uniform(0.5, 0.56)
    _draw_ridges(canvas, palette, chance, 2, top=horizon - 0.05, bottom=horizon - 0.015, rough=0.03)
    scenery.draw_water(canvas, chance, palette, horizon, detail)


def _draw_mountain(
    canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int
) -> None:
    scenery.draw_peaks(canvas, chance, palette)
    _draw_ridges(canvas, palette, chance, detail, top=0.62, bottom=0.92, rough=0.05)
    scenery.draw_trees(canvas, chance, palette, 0.93, 26, 0.13)


def _draw_forest(canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int) -> None:
    green = canvas.tint_palette(palette, (44, 104, 74))
    _draw_ridges(canvas, green, chance, 2, top=0.5, bottom=0.6, rough=0.06)
    for layer in range(detail):
        share = (layer + 1) / detail
        shade = scenery.shade_layer(green, share)
        scenery.draw_trees(
            canvas, chance, shade, 0.62 + 0.36 * share, 34 - 2 * layer, 0.12 + 0.16 * share
        )


def _draw_city(canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int) -> None:
    rows = max(3, detail - 1)
    for row in range(rows):
        share = (row + 1) / rows
        shade = scenery.shade_layer(palette, share)
        scenery.draw_skyline(canvas, chance, shade, 0.56 + 0.34 * share, lit=palette.time != "day")


def _draw_hills(canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int) -> None:
    land = canvas.tint_palette(palette, chance.choice(((84, 140, 84), (206, 156, 100))))
    _draw_ridges(canvas, land, chance, detail, top=0.52, bottom=0.88, rough=0.06)


_SCENES = (
    (_draw_city, r"city|cities|urban|street|skyline|tower|building|town|office|data|network"),
    (_draw_sea, r"sea|ocean|tid(?:e|al)|coast|beach|wave|island|harbou?r|lighthouse|boat|ship|reef|"
                r"coral|fish|water|bay|lagoon|bridge"),
    (_draw_mountain, r"mountain|alp|peak|glacier|volcano|snow|ice|aurora|canyon|rock"),
    (_draw_forest, r"forest|tree|wood|jungle|rainforest|leaf|leaves|pine|garden"),
    (_draw_hills, ""),
)  # fmt: skip
