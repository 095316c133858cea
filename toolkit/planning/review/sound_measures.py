"""Measures of sounds: how long a text takes to speak."""

import re

# Speech runs at about 15 characters a second; slow and fast speakers lie between these.
MIN_CHARS_PER_S, MAX_CHARS_PER_S = 9.0, 22.0
# A syllable of a script that writes it with one sign takes as long as about three letters.
_DENSE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")


def estimate_speaking_ms(text: str, speed: float = 1.0) -> tuple[float, float]:
    """Estimate the shortest and the longest time that it takes to speak a text, in milliseconds.

    >>> [round(ms) for ms in estimate_speaking_ms("a" * 220)]
    [7000, 33556]
    """
    letters = len(text) + 2 * len(_DENSE.findall(text))
    shortest = letters / MAX_CHARS_PER_S * 0.8 - 1.0
    longest = letters / MIN_CHARS_PER_S * 1.25 + 3.0
    return max(0.0, shortest / speed) * 1000, longest / speed * 1000
