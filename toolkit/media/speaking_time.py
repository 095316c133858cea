"""Estimates of the speaking time of a text, in any script."""

import re
import unicodedata
from dataclasses import dataclass

# Weight of a letter by script, for the fastest and the slowest speakers. A Latin, Cyrillic or Greek
# letter weighs 1. A sign of the other scripts stands for a syllable or a word.
_WEIGHTS = {
    "CJK": (3.0, 4.5), "HANGUL": (2.6, 4.0), "HIRAGANA": (2.0, 3.0), "KATAKANA": (2.0, 3.0),
    "ARABIC": (1.0, 1.8), "HEBREW": (1.0, 1.8), "ETHIOPIC": (2.0, 3.0), "THAI": (0.8, 1.6),
}  # fmt: skip
_DIGIT, _CAPITAL, _SIGN = (1.5, 6.0), (1.0, 4.0), (0.0, 8.0)
_MAX_LETTERS_PER_S, _USUAL_LETTERS_PER_S, _MIN_LETTERS_PER_S = 22.0, 14.0, 6.5
_LEAST_SLACK_S, _MOST_SLACK_S = 0.3, 1.5
_PAUSE_S, _SHORT_PAUSE_S, _USUAL_PAUSE_S = 0.8, 0.4, 0.35
_PAUSES, _SHORT_PAUSES = frozenset(".!?…。！？؟।\n"), frozenset(",;:、，；：،–—")
_SENTENCE_END = re.compile(r"[.!?…。！？؟।]+(?=\s|$)|[。！？]+|\n+")
_MARK_UP = re.compile(r"<[^<>]{1,80}>|https?://\S+")
_INITIALS = re.compile(r"\b[A-Z]{2,}\b")


@dataclass(frozen=True, slots=True)
class SpeakingTime:
    """The minimum and maximum speaking time of a text, and a brisk speaker's, in seconds."""

    least_s: float
    usual_s: float
    most_s: float


def estimate_speaking_time(text: str, speed: float = 1.0) -> SpeakingTime:
    """Estimate the speaking time of a text, for the fastest and the slowest speakers.

    Digits, initials and signs may be spoken as whole words; mark-up and addresses may be left out.

    >>> told = estimate_speaking_time("Turbines stand in the stream and turn with it.")
    >>> round(told.least_s, 1), round(told.most_s, 1)
    (1.4, 8.0)
    >>> told.least_s < estimate_speaking_time("潮汐發電利用海水的漲落，已有多年。").least_s
    True
    """
    spoken_text = _MARK_UP.sub(" ", text)
    min_weight, max_weight = _sum_weights(spoken_text)
    max_weight += sum(
        _weigh_letter(char)[1] for mark_up in _MARK_UP.findall(text) for char in mark_up
    )
    max_weight += sum(_CAPITAL[1] * len(initials) for initials in _INITIALS.findall(spoken_text))
    ends = len(_SENTENCE_END.findall(spoken_text.strip()))
    pauses = _PAUSE_S * sum(char in _PAUSES for char in spoken_text)
    pauses += _SHORT_PAUSE_S * sum(char in _SHORT_PAUSES for char in spoken_text)
    return SpeakingTime(
        max(0.0, min_weight / _MAX_LETTERS_PER_S - _LEAST_SLACK_S) / speed,
        (min_weight / _USUAL_LETTERS_PER_S + _USUAL_PAUSE_S * ends) / speed,
        (max_weight / _MIN_LETTERS_PER_S + pauses + _MOST_SLACK_S) / speed,
    )


def _sum_weights(text: str) -> tuple[float, float]:
    weights = [_weigh_letter(char) for char in text if not char.isspace()]
    return sum(low for low, _ in weights), sum(high for _, high in weights)


def _weigh_letter(char: str) -> tuple[float, float]:
    if char.isascii():
        if char.isalpha():
            return 1.0, 1.0
        return _DIGIT if char.isdigit() else _weigh_sign(char)
    kind = unicodedata.category(char)
    if kind.startswith("L"):
        return _WEIGHTS.get(unicodedata.name(char, "?").split(" ")[0].split("-")[0], (1.0, 1.0))
    if kind.startswith("M"):
        return 0.0, 0.5
    return _DIGIT if kind.startswith("N") else _weigh_sign(char)


def _weigh_sign(char: str) -> tuple[float, float]:
    """Weigh a sign: punctuation is not spoken."""
    return _SIGN if unicodedata.category(char).startswith("S") or char in "%&@#*/" else (0.0, 0.0)
