"""The palettes of cards, and the strength of the dark layer under text on a picture."""

from dataclasses import dataclass

from toolkit.capabilities._card._scene import Color

# Share of the scrim's own colour under the text of a `cover`; at this share white text passes
# WCAG AA even over a white picture.
SCRIM_ALPHA = 0.78


def _parse_hex(code: str) -> Color:
    return int(code[0:2], 16), int(code[2:4], 16), int(code[4:6], 16)


@dataclass(frozen=True, slots=True)
class Inks:
    """The text colours for one kind of background."""

    title: Color
    muted: Color
    accent: Color


@dataclass(frozen=True, slots=True)
class Theme:
    """One palette: the background's top and bottom colours, its text colours, and ornament colours.

    `scrim` is the dark layer between a picture and text on it, and `scrim_inks` the text's colours.
    """

    ground: tuple[Color, Color]
    panel: Color
    inks: Inks
    art: tuple[Color, Color, Color, Color]
    scrim: Color
    scrim_inks: Inks


def _build_theme(page: str, art: str) -> Theme:
    """Build a theme from two lists of hexadecimal colours.

    `page` has two of the background, the panel's and three of text; `art` has four of ornaments,
    the scrim's and the accent on it.
    """
    top, bottom, panel, title, muted, accent = map(_parse_hex, page.split())
    first, second, third, fourth, scrim, glow = map(_parse_hex, art.split())
    over_picture = Inks(_parse_hex("FFFFFF"), _parse_hex("EDEDF2"), glow)
    inks = Inks(title, muted, accent)
    return Theme((top, bottom), panel, inks, (first, second, third, fourth), scrim, over_picture)


PALETTES: dict[str, Theme] = {
    "dawn": _build_theme(
        "FFF9F3 FFEDE1 FFD9C2 2B1A1F 6B4A4A B0351F", "F2784B F9BC74 B0351F 6D2E46 24121A FFC59A"
    ),
    "paper": _build_theme(
        "FCFCFA F2F1EB E6E3D8 1C1C1A 55544E 1F5FBF", "1F5FBF F2B134 E4572E 2A2A28 141416 FFD98A"
    ),
    "mint": _build_theme(
        "F4FCF8 E0F4EB C6EADA 0F2A24 3F5F57 0B6E57", "0B6E57 3DB896 F4C95D 17434B 0A201C A8F0D4"
    ),
    "lilac": _build_theme(
        "FBF8FF EFE8FC DDD0F7 22153D 564A73 6A35C9", "6A35C9 A97BF0 F28DB2 2D1B5E 180E30 DCC7FF"
    ),
    "midnight": _build_theme(
        "0E1430 191F4A 232A63 F5F6FF BCC3E8 8FB4FF", "5B7CFA 9DBBFF F59EB9 F7C948 0A0E24 B9CFFF"
    ),
    "ember": _build_theme(
        "1B1210 2C1A15 40261D FFF4EC DCC3B5 FF9A5C", "FF7A3D FFBE8A D7263D 8A3420 1B0D09 FFC49E"
    ),
    "forest": _build_theme(
        "0D1F1A 153228 1F4638 F1FBF5 B7D4C6 7FE0AE", "2FA877 8FE6BA F2C14E 0F6B52 081712 A9F5CD"
    ),
}
