"""Pictures drawn for a prompt: sky, light, layered land or sea, and the scene's own objects."""

import io
import math
import random
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from zlib import crc32

from toolkit.sandbox.pictures import scenery
from toolkit.sandbox.pictures.canvas import SceneCanvas
from toolkit.sandbox.pictures.palette import Palette, choose_palette, mix_colors

if TYPE_CHECKING:
    from PIL.Image import Image

_SCENES = (
    ("reef", r"reef|coral|underwater|octopus|fish"),
    ("city", r"city|cities|urban|street|skyline|tower|building|town|office|data|machine|network"),
    ("sea", r"sea|ocean|tid(?:e|al)|coast|beach|wave|island|harbou?r|lighthouse|boat|"
            r"ship|penguin|mangrove|water|bay|lagoon|compass|bridge"),
    ("mountain", r"mountain|alp|peak|glacier|volcano|snow|ice|aurora|canyon|rock|telescope"),
    ("forest", r"forest|tree|wood|jungle|rainforest|leaf|leaves|photosynthesis|pine|garden"),
    ("hills", r"field|meadow|hill|farm|wind|turbine|solar|bee|flower|grass|tea|coffee|vineyard|"
              r"bicycle|bread|wheat|energy|power"),
    ("desert", r"desert|dune|sand|silk road|camel|pyramid|mars"),
)  # fmt: skip


def draw_picture(
    prompt: str, *, width: int = 1024, height: int = 1024, steps: int = 25, seed: int = 0
) -> bytes:
    """Draw a PNG that depends on the arguments alone."""
    chance = random.Random(f"{seed}|{prompt.strip().lower()}")  # noqa: S311 - not for secrets
    palette = choose_palette(prompt, chance)
    canvas = SceneCanvas(width, height)
    detail = max(2, min(7, 2 + steps // 6))  # more steps, more layers
    text = prompt.lower()
    _draw_sky(canvas, palette, chance, text)
    scene = next((s for s, words in _SCENES if re.search(rf"\b(?:{words})", text)), "abstract")
    _SCENE_DRAWERS[scene](canvas, palette, chance, detail, text)
    return _encode_png(canvas.render_image(), prompt)


def _encode_png(image: "Image", prompt: str) -> bytes:
    from PIL.PngImagePlugin import PngInfo

    note = PngInfo()
    note.add_text("Software", "sandbox picture drawn by rule, not by a model")
    note.add_text("Comment", f"prompt {crc32(prompt.encode()):08x}")
    buffer = io.BytesIO()
    image.save(buffer, "PNG", pnginfo=note, compress_level=6)
    return buffer.getvalue()


def _draw_sky(canvas: SceneCanvas, palette: Palette, chance: random.Random, text: str) -> None:
    canvas.draw_gradient(palette.sky, 0.0, 0.75)
    x, y = chance.uniform(0.2, 0.8), chance.uniform(0.16, 0.34)
    if palette.time in ("dusk", "dawn"):
        y = chance.uniform(0.36, 0.48)
    if palette.time == "night":
        scenery.draw_stars(canvas, chance, 220)
    radius = chance.uniform(0.045, 0.075)
    canvas.draw_glow(x, y, radius * 7, palette.light, 0.62 if palette.time != "night" else 0.34)
    canvas.draw_disc(x, y, radius, palette.light)
    if "aurora" in text:
        scenery.draw_aurora(canvas, chance)
    elif palette.time != "night":
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
    """Draw layers of land, paler with distance, each smoother than the one before it."""
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


def _draw_sea(
    canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int, text: str
) -> None:
    horizon = chance.uniform(0.5, 0.56)
    _draw_ridges(canvas, palette, chance, 2, top=horizon - 0.05, bottom=horizon - 0.015, rough=0.03)
    scenery.draw_water(canvas, chance, palette, horizon, detail)
    turning = re.search(r"tid|turbine|energy|power|wind", text) is not None
    if turning:
        for place in (0.18, 0.36, 0.54):
            scenery.draw_turbine(canvas, chance, place, horizon + 0.03, 0.26, palette)
    if re.search(r"bridge", text):
        scenery.draw_bridge(canvas, palette, horizon)
    if re.search(r"boat|ship|sail|sea|compass|harbou?r", text):
        scenery.draw_boat(canvas, chance, horizon, palette)
    if "lighthouse" in text or (re.search(r"coast|harbou?r|night", text) and not turning):
        scenery.draw_lighthouse(canvas, palette)


def _draw_mountain(
    canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int, text: str
) -> None:
    if "volcano" in text or "lava" in text:
        scenery.draw_volcano(canvas, chance, palette)
    else:
        scenery.draw_peaks(canvas, chance, palette, snow=True)
    _draw_ridges(canvas, palette, chance, detail, top=0.62, bottom=0.92, rough=0.05)
    scenery.draw_trees(canvas, chance, palette, 0.93, 26, 0.13)


def _draw_forest(
    canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int, _text: str
) -> None:
    green = canvas.tint_palette(palette, (44, 104, 74))
    _draw_ridges(canvas, green, chance, 2, top=0.5, bottom=0.6, rough=0.06)
    for layer in range(detail):
        share = (layer + 1) / detail
        shade = scenery.shade_layer(green, share)
        scenery.draw_trees(
            canvas, chance, shade, 0.62 + 0.36 * share, 34 - 2 * layer, 0.12 + 0.16 * share
        )


def _draw_hills(
    canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int, text: str
) -> None:
    green = canvas.tint_palette(palette, (84, 140, 84))
    _draw_ridges(canvas, green, chance, detail, top=0.52, bottom=0.86, rough=0.055)
    if re.search(r"wind|turbine|energy|power", text) and "solar" not in text:
        for place, size in ((0.16, 0.34), (0.38, 0.26), (0.66, 0.4), (0.86, 0.28)):
            scenery.draw_turbine(canvas, chance, place, 0.72, size, palette)
    if "solar" in text:
        scenery.draw_panels(canvas, palette)
    if re.search(r"bee|flower|garden|meadow|tea|coffee|field|wheat|bread", text):
        scenery.draw_flowers(canvas, chance, palette, 40 * detail)


def _draw_reef(
    canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int, _text: str
) -> None:
    night = palette.time == "night"
    surface = mix_colors((130, 220, 220), palette.sky[0], 0.7 if night else 0.15)
    deep = (8, 30, 66) if night else (12, 74, 116)
    canvas.draw_gradient((surface, mix_colors(surface, deep, 0.55), deep), 0.0, 1.0)
    scenery.draw_light_shafts(canvas, chance)
    for layer in range(3):
        line = make_ridge_line(chance, 0.7 + 0.08 * layer, 0.05, 4)
        tone = mix_colors(mix_colors(surface, deep, 0.6), (16, 34, 58), 0.2 + 0.25 * layer)
        canvas.draw_land(line, tone, lighter=mix_colors(tone, surface, 0.2))
    scenery.draw_fish(canvas, chance, palette, 4 * detail)
    scenery.draw_coral(canvas, chance, palette)


def _draw_city(
    canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int, _text: str
) -> None:
    for layer in range(max(3, detail - 1)):
        share = (layer + 1) / max(3, detail - 1)
        shade = scenery.shade_layer(palette, share)
        scenery.draw_skyline(canvas, chance, shade, 0.56 + 0.34 * share, lit=palette.time != "day")


def _draw_desert(
    canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int, _text: str
) -> None:
    sand = canvas.tint_palette(palette, (206, 156, 100))
    _draw_ridges(canvas, sand, chance, detail, top=0.56, bottom=0.9, rough=0.07)


def _draw_abstract(
    canvas: SceneCanvas, palette: Palette, chance: random.Random, detail: int, _text: str
) -> None:
    for ring in range(detail):
        share = (ring + 1) / detail
        color = mix_colors(palette.accent, palette.sky[ring % 3], chance.uniform(0.2, 0.7))
        x, y = chance.uniform(0.1, 0.9), chance.uniform(0.15, 0.7)
        canvas.draw_disc(x, y, chance.uniform(0.05, 0.2), color, alpha=0.28 + 0.2 * share)
    _draw_ridges(canvas, palette, chance, detail, top=0.5, bottom=0.9, rough=0.09)


_SceneDrawer = Callable[[SceneCanvas, Palette, random.Random, int, str], None]
_SCENE_DRAWERS: dict[str, _SceneDrawer] = {
    "reef": _draw_reef,
    "sea": _draw_sea,
    "mountain": _draw_mountain,
    "forest": _draw_forest,
    "hills": _draw_hills,
    "city": _draw_city,
    "desert": _draw_desert,
    "abstract": _draw_abstract,
}
