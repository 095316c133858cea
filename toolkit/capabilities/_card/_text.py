"""Text before it has a size: tidying, grapheme clusters, direction and places to break."""

import re
import unicodedata
from dataclasses import dataclass

_LINE_ENDS = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
_SPACES = re.compile(r"[ \u200b]+")
# Embeddings, overrides and isolates: wrapping would part them from their closing marks, and they
# can make a card say something else than its text.
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NO_BREAK_SPACES = "\u00a0\u202f"
_JOINER = "\u200d"
# More marks than any living orthography stacks; beyond it they would climb into other lines.
_MAX_MARKS = 4
_BREAK_AFTER = frozenset("-‐–—/")
_NOT_AT_START = frozenset(
    "、。，．・：；？！）］｝」』】〉》ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ,.;:!?)]}…"
)
_NOT_AT_END = frozenset("（［｛「『【〈《([{")
# Scripts written without spaces, where a line may end after any cluster.
_SPACELESS = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0xA4CF),
    (0xF900, 0xFAFF),
    (0xFF00, 0xFFEF),
    (0x20000, 0x3FFFF),
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that stays on one line, and whether a space parts it from the piece before."""

    text: str
    spaced: bool


def tidy(text: str) -> tuple[str, ...]:
    """Return the paragraphs of a text without control characters, in composed form (NFC).

    Args:
        text: any string; tabs and odd spaces become plain spaces, runs of them one.

    >>> tidy("one\\ttwo\\x00\\n\\nthree")
    ('one two', 'three')
    """
    composed = unicodedata.normalize("NFC", text)
    paragraphs = []
    for raw in _LINE_ENDS.split(composed):
        line = "".join(_normalize_character(char) for char in raw)
        joined = _SPACES.sub(" ", line).strip()
        if joined:
            paragraphs.append("".join(split_clusters(joined)))
    return tuple(paragraphs)


def _normalize_character(char: str) -> str:
    if char == "\t" or (unicodedata.category(char) == "Zs" and char not in _NO_BREAK_SPACES):
        return " "
    code = ord(char)
    noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    dropped = unicodedata.category(char) in {"Cc", "Cs"} or char in _BIDI_CONTROLS
    return "" if dropped or noncharacter or char in "\u00ad\ufeff" else char


def is_ignorable(char: str) -> bool:
    """Check whether a character shows nothing by itself, so that its glyph is not needed.

    >>> is_ignorable("\\ufe0f"), is_ignorable("a")
    (True, False)
    """
    selector = 0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF
    return selector or unicodedata.category(char) == "Cf"


def split_clusters(text: str) -> list[str]:
    """Cut a text into grapheme clusters: a base with all its marks.

    Marks beyond the fourth on one base are dropped.

    >>> split_clusters("ne\\u0301\\u0323")
    ['n', 'e\\u0301\\u0323']
    """
    clusters: list[str] = []
    for char in text:
        if not clusters or not _continues(clusters[-1], char):
            clusters.append(char)
        elif not _is_mark(char) or sum(map(_is_mark, clusters[-1])) < _MAX_MARKS:
            clusters[-1] += char
    return clusters


def _is_mark(char: str) -> bool:
    return unicodedata.category(char) in {"Mn", "Me", "Mc"}


def _continues(cluster: str, char: str) -> bool:
    code = ord(char)
    joining = (
        char in {_JOINER, "\u200c"} or 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F
    )
    if cluster == " ":
        return False
    if joining or _is_mark(char) or cluster[-1] == _JOINER:
        return True
    if 0x1F1E6 <= code <= 0x1F1FF:
        return len(cluster) == 1 and 0x1F1E6 <= ord(cluster) <= 0x1F1FF
    # Hangul vowels and finals that did not compose stay with their leading consonant.
    return 0x1160 <= code <= 0x11FF and 0x1100 <= ord(cluster[0]) <= 0x11FF


def is_rtl(text: str, default: bool = False) -> bool:
    """Check whether the first letter with a direction runs from right to left.

    Args:
        default: result for text without any such letter, for instance digits only.

    >>> is_rtl("שלום world"), is_rtl("world שלום"), is_rtl("2024", default=True)
    (True, False, True)
    """
    for char in text:
        kind = unicodedata.bidirectional(char)
        if kind in {"R", "AL"}:
            return True
        if kind == "L":
            return False
    return default


def split_pieces(text: str) -> list[Piece]:
    """Cut a text at every place where a line may end.

    >>> [piece.text for piece in split_pieces("well-known 日本。")]
    ['well-', 'known', '日', '本。']
    """
    pieces: list[Piece] = []
    for word in text.split(" "):
        start = len(pieces)
        piece = ""
        for cluster in split_clusters(word):
            if piece and _may_break(piece, cluster):
                pieces.append(Piece(piece, len(pieces) == start))
                piece = ""
            piece += cluster
        if piece:
            pieces.append(Piece(piece, len(pieces) == start))
    return pieces


def _may_break(before: str, cluster: str) -> bool:
    if cluster[0] in _NOT_AT_START or before[-1] in _NOT_AT_END:
        return False
    if before[-1] in _BREAK_AFTER:
        return len(before) > 1 and cluster[0].isalpha()
    return _is_spaceless(before[-1]) or _is_spaceless(cluster[0])


def _is_spaceless(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _SPACELESS)
