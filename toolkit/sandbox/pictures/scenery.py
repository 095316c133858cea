"""The objects of scenes: stars, clouds, water, mountains, trees, turbines and buildings."""

import math
import random
from dataclasses import replace

from toolkit.sandbox.pictures.canvas import Palette, SceneCanvas, mix_colors

_WHITE = (244, 246, 248)
_DARK = (12, 18, 30)


def shade_layer(palette: Palette, share: float) -> Palette:
    """Return the palette of a layer: pale when far (0), dark when near (1)."""
    return replace(
        palette, near=mix_colors(mix_colors(palette.far, palette.sky[2], 0.3), palette.near, share)
    )


def draw_stars(canvas: SceneCanvas, chance: random.Random, number: int) -> None:
    """Draw small lights scattered over the upper sky."""
    for _ in range(number):
        size = chance.choice((0.0008, 0.0011, 0.0016, 0.0024))
        tone = chance.randint(190, 255)
        canvas.draw_disc(chance.random(), chance.random() ** 1.3 * 0.62, size, (tone, tone, 250))


def draw_clouds(canvas: SceneCanvas, chance: random.Random, palette: Palette) -> None:
    """Draw long soft clouds."""
    for _ in range(chance.randint(3, 5)):
        x, y = chance.uniform(-0.1, 0.9), chance.uniform(0.08, 0.36)
        length, height = chance.uniform(0.2, 0.5), chance.uniform(0.012, 0.03)
        top = [
            (
                x + length * k / 12,
                y - height * abs(math.sin(k * 1.3 + x * 9)) * math.sin(math.pi * k / 12),
            )
            for k in range(13)
        ]
        bottom = [(x + length, y + height * 0.5), (x, y + height * 0.5)]
        canvas.draw_veil([*top, *bottom], mix_colors(_WHITE, palette.light, 0.5), 0.6, 0.008)


def draw_water(
    canvas: SceneCanvas, chance: random.Random, palette: Palette, horizon: float, detail: int
) -> None:
    """Draw water that mirrors the sky, with glints that widen towards the viewer."""
    deep = mix_colors(mix_colors(palette.sky[0], (18, 84, 110), 0.5), palette.near, 0.25)
    canvas.draw_reflection(horizon, 0.34, deep)
    glint = mix_colors(palette.light, palette.sky[2], 0.4)
    for _ in range(90 * detail):
        share = chance.random() ** 0.7
        y = horizon + 0.006 + share * (1 - horizon)
        length = (0.01 + 0.07 * share) * chance.uniform(0.4, 1.0)
        x = chance.random()
        color = mix_colors(deep, glint, chance.uniform(0.15, 0.6) * (1 - 0.55 * share))
        bow = 0.0012 + 0.003 * share
        canvas.draw_line(
            [(x, y), (x + length / 2, y - bow), (x + length, y)], color, 0.0012 + 0.002 * share
        )


def draw_peaks(canvas: SceneCanvas, chance: random.Random, palette: Palette) -> None:
    """Draw two rows of snowy mountains with a lit and a shaded side."""
    for row in range(2):
        base = 0.7 + 0.06 * row
        color = mix_colors(palette.far, palette.near, 0.15 + 0.3 * row)
        for place in range(4 - row):
            x = (place + chance.uniform(0.2, 0.8)) / (4 - row)
            high = chance.uniform(0.26, 0.42) - 0.08 * row
            _draw_peak(canvas, chance, palette, (x, base, high), color)


def _draw_peak(
    canvas: SceneCanvas,
    chance: random.Random,
    palette: Palette,
    peak: tuple[float, float, float],
    color: tuple[int, int, int],
) -> None:
    x, base, high = peak
    wide = high * chance.uniform(0.7, 0.95)
    top = base - high
    fold = x + wide * chance.uniform(0.02, 0.14)
    canvas.draw_polygon(
        [(x - wide, base), (x, top), (x + wide, base)], mix_colors(color, palette.light, 0.18)
    )
    canvas.draw_polygon(
        [(x, top), (x + wide, base), (fold, base)], mix_colors(color, palette.near, 0.3)
    )
    low = 0.3
    jag = [
        (x + wide * low * side, top + high * low * lift)
        for side, lift in (
            (-1, 1),
            (-0.6, 0.8),
            (-0.3, 1.15),
            (0.0, 0.85),
            (0.4, 1.2),
            (0.7, 0.9),
            (1, 1),
        )
    ]
    canvas.draw_polygon([(x, top), *jag], mix_colors(_WHITE, palette.sky[1], 0.12))
    shaded = [(x, top), (x + (fold - x) * 0.4, top + high * 0.25), *jag[4:]]
    canvas.draw_polygon(shaded, mix_colors(_WHITE, palette.sky[1], 0.38))


def draw_trees(
    canvas: SceneCanvas,
    chance: random.Random,
    palette: Palette,
    ground: float,
    number: int,
    tall: float,
) -> None:
    """Draw a row of conifers on a strip of ground."""
    color = palette.near
    for place in range(number):
        x = (place + chance.uniform(0.1, 0.9)) / number
        high = tall * chance.uniform(0.6, 1.1)
        foot = ground + chance.uniform(-0.01, 0.012)
        shade = mix_colors(color, palette.light, chance.uniform(0.0, 0.1))
        for tier in range(4):
            top = foot - high * (1 - tier * 0.2)
            wide = high * (0.09 + 0.055 * tier)
            canvas.draw_polygon(
                [(x, top), (x - wide, top + high * 0.34), (x + wide, top + high * 0.34)], shade
            )
    canvas.draw_polygon([(0, ground - 0.008), (1, ground - 0.008), (1, 1), (0, 1)], color)


def draw_turbine(
    canvas: SceneCanvas, chance: random.Random, x: float, foot: float, high: float, palette: Palette
) -> None:
    """Draw a wind or tidal turbine: a slim mast and three blades."""
    color = mix_colors(_WHITE, palette.sky[1], 0.14)
    ratio = canvas.h / canvas.w
    hub = (x, foot - high)
    mast = [(x - 0.0045, foot), (x - 0.002, hub[1]), (x + 0.002, hub[1]), (x + 0.0045, foot)]
    canvas.draw_polygon(mast, mix_colors(color, palette.near, 0.2))
    turn = chance.uniform(0, math.tau)
    for blade in range(3):
        angle = turn + blade * math.tau / 3
        tip = (
            hub[0] + math.cos(angle) * high * 0.52 * ratio,
            hub[1] + math.sin(angle) * high * 0.52,
        )
        side = (
            hub[0] + math.cos(angle + 0.22) * high * 0.17 * ratio,
            hub[1] + math.sin(angle + 0.22) * high * 0.17,
        )
        canvas.draw_polygon([hub, side, tip], color)
    canvas.draw_disc(hub[0], hub[1], 0.006, color)


def draw_skyline(
    canvas: SceneCanvas, chance: random.Random, palette: Palette, ground: float, *, lit: bool
) -> None:
    """Draw a row of buildings, some windows lit."""
    x = -0.02
    while x < 1.0:
        wide, high = chance.uniform(0.045, 0.1), chance.uniform(0.12, 0.42)
        tone = mix_colors(palette.near, palette.accent, chance.uniform(0.0, 0.14))
        top = ground - high
        canvas.draw_polygon([(x, top), (x + wide, top), (x + wide, 1.0), (x, 1.0)], tone)
        canvas.draw_polygon(
            [(x + wide * 0.72, top), (x + wide, top), (x + wide, 1.0), (x + wide * 0.72, 1.0)],
            mix_colors(tone, _DARK, 0.22),
        )
        if chance.random() < 0.25:
            canvas.draw_line([(x + wide / 2, top), (x + wide / 2, top - 0.05)], tone, 0.003)
        _draw_windows(canvas, chance, palette, (x, top, wide, ground + 0.1), lit)
        x += wide * chance.uniform(0.92, 1.1)


def _draw_windows(
    canvas: SceneCanvas,
    chance: random.Random,
    palette: Palette,
    box: tuple[float, float, float, float],
    lit: bool,
) -> None:
    x, top, wide, bottom = box
    columns = max(2, int(wide / 0.016))
    glow = mix_colors((255, 214, 130), palette.light, 0.3)
    pane = mix_colors(palette.near, palette.sky[1], 0.35)
    y = top + 0.018
    while y < bottom:
        for column in range(columns):
            left = x + wide * (column + 0.28) / columns
            if chance.random() < 0.5:
                tone = glow if lit and chance.random() < 0.62 else pane
                right = left + wide * 0.44 / columns
                canvas.draw_polygon(
                    [(left, y), (right, y), (right, y + 0.011), (left, y + 0.011)], tone
                )
        y += 0.024
