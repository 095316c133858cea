"""Measures of artifacts for the reviewer: the contents of images, sounds and texts."""

import io
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

from toolkit.planning import lexicon

MAX_PIXELS = 64_000_000  # a small file may unpack to gigabytes
# Speech runs at about 15 characters a second; slow and fast speakers lie between these.
MIN_CHARS_PER_S, MAX_CHARS_PER_S = 9.0, 22.0
# A syllable of a script that writes it with one sign takes as long as about three letters.
_DENSE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SVG_TAG = re.compile(rb"<svg\b[^>]{0,2000}>")
_SVG_SIDE = re.compile(rb"\s(width|height)=[\"']([\d.]+)(?:px)?[\"']", re.I)
_ENGLISH = frozenset(
    lexicon.split_phrases(
        "the, of, and, to, in, is, it, that, for, as, with, are, on, by, from, this, be, at, or, "
        "an, was, its, which, has, have, not, but, they, their, can, a"
    )
)
_STOPWORDS = (
    _ENGLISH
    | lexicon.FILLER_WORDS
    | lexicon.ABOUT_WORDS
    | lexicon.WITH_WORDS
    | lexicon.AS_WORDS
    | lexicon.QUESTION_WORDS
    | {"word", "words"}
)
_ENDINGS = ("ational", "ations", "ation", "ings", "ing", "ally", "ies", "als", "al", "ed", "es")


@dataclass(frozen=True, slots=True)
class ImageMeasures:
    """The measures of an image.

    Attributes:
        spread: the standard deviation of its most varied channel, of 255.
        entropy: bits per pixel of its grey values.
        edges: the share of its pixels that lie on an edge.
    """

    width: int
    height: int
    spread: float
    entropy: float
    edges: float

    @property
    def is_blank(self) -> bool:
        """True if it shows nothing: one colour, or changes too faint to be seen."""
        return self.spread < 2.0 or (self.edges < 0.0005 and self.entropy < 2.0)


def measure_image(data: bytes) -> ImageMeasures | None:
    """Measure an image; none if it does not open, is cut off or unpacks to too much."""
    from PIL import Image, ImageFilter, ImageStat, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as opened:
            width, height = opened.size
            if width * height > MAX_PIXELS:
                return None
            opened.load()
            image = opened.convert("RGBA")
    except (
        UnidentifiedImageError,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,  # where warnings are errors
        OSError,
        ValueError,
        SyntaxError,
    ):
        return None
    ground = Image.new("RGBA", image.size, (255, 255, 255, 255))
    flat = Image.alpha_composite(ground, image).convert("RGB")
    spread = max(ImageStat.Stat(flat).stddev)
    grey = flat.convert("L")
    outlined = grey.filter(ImageFilter.FIND_EDGES)
    if min(grey.size) > 4:
        # The filter leaves the outermost pixels unchanged, which are no edges.
        outlined = outlined.crop((1, 1, grey.width - 1, grey.height - 1))
    strong = sum(outlined.histogram()[24:])
    return ImageMeasures(width, height, spread, grey.entropy(), strong / (width * height))


def read_svg_size(data: bytes) -> tuple[int, int] | None:
    """Read the size of a complete SVG picture; none if it is incomplete or does not say."""
    if b"</svg>" not in data[-64:]:
        return None
    tag = _SVG_TAG.search(data)
    sides = dict(_SVG_SIDE.findall(tag.group())) if tag else {}
    try:
        return round(float(sides[b"width"])), round(float(sides[b"height"]))
    except (KeyError, ValueError):
        return None


def estimate_speaking_ms(text: str, speed: float = 1.0) -> tuple[float, float]:
    """Estimate the shortest and the longest time that it takes to speak a text, in milliseconds.

    >>> [round(ms) for ms in estimate_speaking_ms("a" * 220)]
    [7000, 33556]
    """
    letters = len(text) + 2 * len(_DENSE.findall(text))
    shortest = letters / MAX_CHARS_PER_S * 0.8 - 1.0
    longest = letters / MIN_CHARS_PER_S * 1.25 + 3.0
    return max(0.0, shortest / speed) * 1000, longest / speed * 1000


def count_words(text: str) -> int | None:
    """Count the words of a text; none for scripts without word breaks.

    >>> count_words("High water, twice a day")
    5
    """
    dense = len(_DENSE.findall(text))
    return None if dense * 3 > len(text) else len(text.split())


def stem(word: str) -> str:
    """Reduce a word to a crude common form, so that `tides` and `tidal` count as one."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word[:-1] if word.endswith(("s", "e", "y")) and len(word) > 3 else word


def find_content_stems(text: str) -> list[str]:
    """Find the stems of meaningful words; pairs of characters for scripts without spaces."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    folded = "".join(char for char in folded if not unicodedata.combining(char))
    folded = unicodedata.normalize("NFC", folded)
    stems: list[str] = []
    for word in _WORD.findall(folded):
        if _DENSE.search(word):
            stems += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        elif word not in _STOPWORDS and (len(word) > 1 or word.isdigit()):
            stems.append(stem(word.removesuffix("'s").removesuffix("’s")))
    return stems


def measure_topic_share(topic: str, text: str) -> float | None:
    """Measure the share of a topic's words that a text has; none if they cannot be compared.

    They cannot where the topic has no words that carry meaning, or the text is in another
    language or script than the topic. Words count in any form.

    >>> measure_topic_share("tidal power", "Tides can power a town.")
    1.0
    >>> measure_topic_share("tidal power", "Bees dance.")
    0.0
    """
    wanted = list(dict.fromkeys(find_content_stems(topic)))
    if not wanted or _is_other_language(topic, text):
        return None
    there = set(find_content_stems(text))
    return sum(any(_are_alike(word, other) for other in there) for word in wanted) / len(wanted)


def shares_terms(text: str, source: str) -> bool:
    """Tell whether a text is on its source's topic: it has some of its most frequent words."""
    frequent = {word for word, _ in Counter(find_content_stems(source)).most_common(40)}
    return len(frequent & set(find_content_stems(text))) >= 3


def _are_alike(one: str, other: str) -> bool:
    if one == other:
        return True
    common = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        common += 1
    return common >= 5 and common >= 0.6 * max(len(one), len(other))


def _is_other_language(topic: str, text: str) -> bool:
    if _find_script(topic) != _find_script(text):
        return True
    words = _WORD.findall(text.lower())
    if len(words) < 15 or not topic.isascii():
        return False
    return sum(word in _ENGLISH for word in words) / len(words) < 0.06


def _find_script(text: str) -> str:
    """Find the script of most of a text's letters, by the first word of their Unicode names."""
    letters = filter(str.isalpha, text[:2000])
    names = Counter(unicodedata.name(char, "?").split(" ")[0] for char in letters)
    script = max(names, key=lambda name: names[name], default="")
    return "CJK" if script in {"HIRAGANA", "KATAKANA", "HANGUL"} else script
