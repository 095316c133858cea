"""The objects of scenes: trees, turbines, boats, towers, stars and more."""

import math
import random
from dataclasses import replace

from toolkit.sandbox.pictures.canvas import SceneCanvas
from toolkit.sandbox.pictures.palette import Palette, mix_colors

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


def draw_aurora(canvas: SceneCanvas, chance: random.Random) -> None:
    """Draw curtains of green and violet light."""
    for color, level in (((70, 230, 160), 0.34), ((120, 240, 190), 0.24), ((150, 110, 220), 0.18)):
        phase, size = chance.uniform(0, math.tau), chance.uniform(0.03, 0.07)
        edge = [(k / 24, level + size * math.sin(k / 24 * 7 + phase)) for k in range(25)]
        crown = [(x, y - 0.2 - 0.05 * math.sin(x * 23 + phase)) for x, y in reversed(edge)]
        canvas.draw_veil([*edge, *crown], color, 0.42, 0.03)


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


def draw_peaks(canvas: SceneCanvas, chance: random.Random, palette: Palette, *, snow: bool) -> None:
    """Draw two rows of pointed mountains with a lit and a shaded side."""
    for row in range(2):
        base = 0.7 + 0.06 * row
        color = mix_colors(palette.far, palette.near, 0.15 + 0.3 * row)
        for place in range(4 - row):
            x = (place + chance.uniform(0.2, 0.8)) / (4 - row)
            high = chance.uniform(0.26, 0.42) - 0.08 * row
            _draw_peak(canvas, chance, palette, (x, base, high), color, snow)


def _draw_peak(
    canvas: SceneCanvas,
    chance: random.Random,
    palette: Palette,
    where: tuple[float, float, float],
    color: tuple[int, int, int],
    snow: bool,
) -> None:
    x, base, high = where
    wide = high * chance.uniform(0.7, 0.95)
    top = base - high
    fold = x + wide * chance.uniform(0.02, 0.14)
    canvas.draw_polygon(
        [(x - wide, base), (x, top), (x + wide, base)], mix_colors(color, palette.light, 0.18)
    )
    canvas.draw_polygon(
        [(x, top), (x + wide, base), (fold, base)], mix_colors(color, palette.near, 0.3)
    )
    if not snow:
        return
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


def draw_volcano(canvas: SceneCanvas, chance: random.Random, palette: Palette) -> None:
    """Draw a broad cone with a glowing mouth, lava and smoke."""
    x, top, base = chance.uniform(0.42, 0.58), 0.32, 0.8
    for puff in range(9):
        shade = mix_colors((150, 132, 140), palette.sky[1], 0.2 + 0.05 * puff)
        canvas.draw_disc(x + 0.018 * puff, top - 0.028 * puff, 0.03 + 0.009 * puff, shade, 0.5)
    canvas.draw_glow(x, top, 0.3, (255, 140, 70), 0.8)
    color = mix_colors(palette.far, _DARK, 0.55)
    left = [(x - 0.46, base), (x - 0.22, 0.6), (x - 0.06, top)]
    right = [(x + 0.06, top), (x + 0.2, 0.58), (x + 0.46, base)]
    canvas.draw_polygon([*left, *right], color)
    canvas.draw_polygon([(x + 0.01, top), *right], mix_colors(color, _DARK, 0.35))
    canvas.draw_polygon([(x - 0.06, top), (x + 0.06, top), (x + 0.03, top + 0.014)], (255, 196, 96))
    for drift, width in ((-0.08, 0.008), (0.03, 0.012), (0.1, 0.006)):
        flow = [(x + drift * k / 8 + 0.008 * math.sin(k * 1.7), top + 0.045 * k) for k in range(9)]
        canvas.draw_line(flow, (244, 112, 52), width)
        canvas.draw_line(flow[:6], (255, 190, 96), width / 3)


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


def draw_panels(canvas: SceneCanvas, palette: Palette) -> None:
    """Draw rows of solar panels in perspective."""
    for row in range(4):
        y, high, wide = 0.66 + 0.085 * row, 0.04 + 0.014 * row, 0.15 + 0.04 * row
        for place in range(-4, 5):
            x = 0.5 + place * (wide + 0.02) - wide / 2
            lean = wide * 0.16
            face = [(x + lean, y), (x + wide + lean, y), (x + wide, y + high), (x, y + high)]
            canvas.draw_polygon(
                face, mix_colors((28, 58, 116), palette.sky[1], 0.12 + 0.05 * (3 - row))
            )
            for k in (1, 2, 3):
                seam = [(x + lean + wide * k / 4, y), (x + wide * k / 4, y + high)]
                canvas.draw_line(seam, (120, 160, 206), 0.0012)
            canvas.draw_line(
                [(x + lean, y), (x + wide + lean, y)], mix_colors(_WHITE, palette.light, 0.3), 0.002
            )


def draw_flowers(canvas: SceneCanvas, chance: random.Random, palette: Palette, number: int) -> None:
    """Draw a meadow in bloom."""
    tones = (palette.accent, (250, 214, 110), (240, 150, 150), _WHITE, (180, 140, 220))
    for place in range(number):
        y = 0.76 + 0.24 * (place / number)
        x, size = chance.random(), 0.003 + 0.011 * (y - 0.74) / 0.26
        stem_color = mix_colors(palette.near, (90, 150, 80), 0.5)
        canvas.draw_line([(x, y), (x + 0.004, y + size * 4)], stem_color, size * 0.3)
        tone = chance.choice(tones)
        for petal in range(5):
            angle = petal * math.tau / 5
            ratio = canvas.h / canvas.w
            canvas.draw_disc(
                x + math.cos(angle) * size * ratio, y + math.sin(angle) * size, size * 0.62, tone
            )
        canvas.draw_disc(x, y, size * 0.5, (120, 84, 40))


def draw_coral(canvas: SceneCanvas, chance: random.Random, palette: Palette) -> None:
    """Draw branching corals along the lower edge."""
    tones = ((238, 120, 110), (246, 170, 120), (206, 110, 168), (250, 206, 140), palette.accent)
    for _ in range(18):
        size = chance.uniform(0.045, 0.085)
        _draw_branch(
            canvas, chance, (chance.random(), 1.0), -math.pi / 2, size, 5, chance.choice(tones)
        )


def draw_light_shafts(canvas: SceneCanvas, chance: random.Random) -> None:
    """Draw sunlight that falls through water."""
    for _ in range(6):
        x, wide, lean = chance.uniform(-0.1, 0.9), chance.uniform(0.03, 0.09), 0.18
        beam = [(x, -0.05), (x + wide, -0.05), (x + wide * 2.4 + lean, 0.9), (x + lean, 0.9)]
        canvas.draw_veil(beam, (214, 246, 240), chance.uniform(0.08, 0.2), 0.02)


def draw_fish(canvas: SceneCanvas, chance: random.Random, palette: Palette, number: int) -> None:
    """Draw a loose school of fish."""
    tones = ((250, 196, 90), (244, 140, 96), (120, 200, 220), palette.accent)
    for _ in range(number):
        x, y, size = (
            chance.uniform(0.05, 0.95),
            chance.uniform(0.2, 0.66),
            chance.uniform(0.01, 0.024),
        )
        way = chance.choice((-1, 1))
        tone = mix_colors(chance.choice(tones), (30, 110, 140), chance.uniform(0.0, 0.4))
        body = [
            (
                x + way * size * math.cos(k * math.tau / 16),
                y + size * 0.5 * math.sin(k * math.tau / 16),
            )
            for k in range(16)
        ]
        back = x - way * size * 0.85
        tail, half = back - way * size * 0.7, size * 0.5
        fin = [(back, y), (tail, y - half), (tail, y + half)]
        canvas.draw_polygon(fin, mix_colors(tone, _DARK, 0.12))
        canvas.draw_polygon(body, tone)
        canvas.draw_disc(x + way * size * 0.55, y - size * 0.1, size * 0.12, _DARK)


def _draw_branch(
    canvas: SceneCanvas,
    chance: random.Random,
    start: tuple[float, float],
    angle: float,
    length: float,
    left: int,
    tone: tuple[int, int, int],
) -> None:
    x = start[0] + math.cos(angle) * length * canvas.h / canvas.w
    y = start[1] + math.sin(angle) * length
    canvas.draw_line([start, (x, y)], tone, 0.0035 * left)
    canvas.draw_disc(x, y, 0.00175 * left, mix_colors(tone, _WHITE, 0.2))
    if left > 1:
        for turn in (-0.45, 0.45):
            spread = angle + turn + chance.uniform(-0.2, 0.2)
            _draw_branch(canvas, chance, (x, y), spread, length * 0.72, left - 1, tone)


def draw_boat(canvas: SceneCanvas, chance: random.Random, horizon: float, palette: Palette) -> None:
    """Draw a small sailing boat."""
    x, y, size = chance.uniform(0.55, 0.8), horizon + 0.1, 0.075
    hull = mix_colors(palette.near, (120, 60, 40), 0.4)
    canvas.draw_polygon(
        [(x - size, y), (x + size, y), (x + size * 0.6, y + 0.024), (x - size * 0.7, y + 0.024)],
        hull,
    )
    canvas.draw_line([(x, y), (x, y - 0.17)], hull, 0.003)
    canvas.draw_polygon(
        [(x + 0.004, y - 0.165), (x + 0.004, y - 0.012), (x + size * 0.9, y - 0.012)], _WHITE
    )
    sail = mix_colors(palette.accent, _WHITE, 0.35)
    canvas.draw_polygon(
        [(x - 0.004, y - 0.15), (x - 0.004, y - 0.012), (x - size * 0.7, y - 0.012)], sail
    )
    for k in range(5):
        ripple = y + 0.03 + 0.012 * k
        half = size * (1 - k * 0.14)
        canvas.draw_line(
            [(x - half, ripple), (x + half, ripple)],
            mix_colors(_WHITE, palette.sky[0], 0.5),
            0.0015,
        )


def draw_lighthouse(canvas: SceneCanvas, palette: Palette) -> None:
    """Draw a tower on a headland, its beam over the sea."""
    x, top, foot = 0.84, 0.34, 0.72
    rock = mix_colors(palette.near, (70, 66, 62), 0.3)
    beam = [(x, top - 0.02), (-0.3, top - 0.17), (-0.3, top + 0.07)]
    canvas.draw_veil(beam, palette.light, 0.45 if palette.time in ("night", "dusk") else 0.16, 0.01)
    cliff = [(0.6, 1.0), (0.66, 0.86), (0.72, 0.8), (0.76, 0.72)]
    shore = [*cliff, (0.9, 0.7), (1.0, 0.74), (1.0, 1.0)]
    canvas.draw_polygon(shore, rock)
    canvas.draw_polygon(
        [(0.76, 0.72), (0.9, 0.7), (1.0, 0.74), (1.0, 0.78), (0.8, 0.76)],
        mix_colors(rock, (90, 130, 80), 0.4),
    )
    for band in range(6):
        upper, lower = top + (foot - top) * band / 6, top + (foot - top) * (band + 1) / 6
        a, b = 0.02 + 0.003 * band, 0.02 + 0.003 * (band + 1)
        tone = _WHITE if band % 2 else (196, 64, 58)
        canvas.draw_polygon(
            [(x - a, upper), (x + a, upper), (x + b, lower), (x - b, lower)],
            mix_colors(tone, palette.sky[1], 0.16),
        )
        side = [(x + a * 0.3, upper), (x + a, upper), (x + b, lower), (x + b * 0.3, lower)]
        canvas.draw_polygon(side, mix_colors(tone, palette.near, 0.36))
    canvas.draw_polygon(
        [(x - 0.027, top), (x + 0.027, top), (x + 0.024, top + 0.014), (x - 0.024, top + 0.014)],
        _DARK,
    )
    canvas.draw_polygon(
        [(x - 0.014, top - 0.042), (x + 0.014, top - 0.042), (x + 0.014, top), (x - 0.014, top)],
        palette.light,
    )
    canvas.draw_polygon(
        [(x - 0.02, top - 0.042), (x, top - 0.072), (x + 0.02, top - 0.042)], (150, 48, 46)
    )
    canvas.draw_glow(x, top - 0.02, 0.13, palette.light, 0.8)


def draw_bridge(canvas: SceneCanvas, palette: Palette, horizon: float) -> None:
    """Draw a suspension bridge across the whole width."""
    color = mix_colors((176, 66, 50), palette.near, 0.3)
    deck = horizon + 0.01
    for tower in (0.28, 0.72):
        canvas.draw_polygon(
            [
                (tower - 0.01, 0.2),
                (tower + 0.01, 0.2),
                (tower + 0.012, deck + 0.08),
                (tower - 0.012, deck + 0.08),
            ],
            color,
        )
    spans = ((-0.16, 0.28), (0.28, 0.72), (0.72, 1.16))
    for left, right in spans:
        cable = []
        for k in range(41):
            x = left + (right - left) * k / 40
            sag = 1 - (2 * k / 40 - 1) ** 2
            cable.append((x, 0.21 + (deck - 0.24) * sag))
        canvas.draw_line(cable, color, 0.005)
        for x, y in cable[::2]:
            canvas.draw_line([(x, y), (x, deck)], mix_colors(color, palette.sky[1], 0.3), 0.0012)
    canvas.draw_polygon([(0, deck), (1, deck), (1, deck + 0.016), (0, deck + 0.016)], color)


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
