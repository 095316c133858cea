"""Colours for a picture, from the prompt's time of day, its colour words and its hash."""

import random
import re
from dataclasses import dataclass

Color = tuple[int, int, int]

_COLOR_WORDS: dict[str, Color] = {
    "red": (196, 60, 58), "crimson": (170, 36, 62), "orange": (236, 138, 60),
    "amber": (240, 170, 66), "gold": (232, 184, 84), "golden": (232, 184, 84),
    "yellow": (240, 206, 92), "green": (70, 140, 96), "emerald": (34, 140, 108),
    "teal": (36, 136, 146), "turquoise": (64, 178, 178), "cyan": (84, 186, 208),
    "blue": (58, 112, 186), "navy": (32, 56, 108), "indigo": (74, 72, 158),
    "purple": (126, 82, 166), "violet": (138, 98, 188), "pink": (226, 132, 160),
    "magenta": (190, 70, 140), "brown": (134, 96, 70), "black": (36, 38, 46),
    "white": (236, 238, 240), "grey": (136, 142, 150), "gray": (136, 142, 150),
}  # fmt: skip

# Three colours of sky from the top down, the light's colour, and the tint of far land.
_SKIES: dict[str, tuple[tuple[Color, Color, Color, Color, Color], ...]] = {
    "night": (
        ((10, 16, 42), (28, 38, 82), (70, 74, 126), (240, 238, 218), (52, 58, 104)),
        ((8, 20, 38), (18, 48, 76), (52, 92, 118), (232, 240, 236), (40, 70, 96)),
    ),
    "dusk": (
        ((48, 44, 98), (176, 88, 122), (250, 178, 120), (255, 224, 170), (128, 84, 122)),
        ((30, 52, 104), (130, 100, 150), (248, 168, 134), (255, 214, 168), (104, 86, 134)),
    ),
    "dawn": (
        ((96, 142, 190), (216, 190, 200), (255, 222, 182), (255, 242, 206), (150, 150, 178)),
        ((120, 150, 204), (236, 186, 188), (255, 228, 196), (255, 246, 220), (168, 148, 172)),
    ),
    "day": (
        ((64, 138, 206), (142, 196, 228), (226, 240, 240), (255, 250, 224), (128, 164, 188)),
        ((52, 122, 178), (136, 190, 206), (244, 236, 212), (255, 246, 214), (126, 158, 170)),
        ((84, 160, 200), (166, 212, 218), (250, 240, 220), (255, 250, 230), (138, 172, 176)),
    ),
}
_TIME_WORDS = {
    "night": r"night|midnight|star|moon|aurora|space|galaxy|telescope|cosmos|dark",
    "dusk": r"sunset|dusk|evening|twilight|volcano|lava|jazz|warm",
    "dawn": r"sunrise|dawn|morning|mist|pastel|soft|bread|tea",
}


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours that a picture is drawn in."""

    time: str
    sky: tuple[Color, Color, Color]
    light: Color
    far: Color
    accent: Color
    near: Color


def mix_colors(first: Color, second: Color, share: float) -> Color:
    """Mix two colours: `share` 0 gives the first, 1 the second."""
    blended = [round(a + (b - a) * share) for a, b in zip(first, second, strict=True)]
    return blended[0], blended[1], blended[2]


def choose_palette(prompt: str, chance: random.Random) -> Palette:
    """Choose the palette for a prompt."""
    text = prompt.lower()
    accents = [_COLOR_WORDS[word] for word in re.findall(r"[a-z]+", text) if word in _COLOR_WORDS]
    time = next((t for t, words in _TIME_WORDS.items() if re.search(rf"\b(?:{words})", text)), None)
    time = time or chance.choice(("day", "day", "dusk", "dawn"))
    top, middle, low, light, far = chance.choice(_SKIES[time])
    accent = accents[0] if accents else chance.choice(tuple(_COLOR_WORDS.values())[:20])
    if accents:
        top, middle, far = (
            mix_colors(top, accent, 0.35),
            mix_colors(middle, accent, 0.28),
            mix_colors(far, accent, 0.3),
        )
    near = mix_colors(far, (14, 22, 34), 0.78)
    return Palette(time, (top, middle, low), light, far, accent, near)
