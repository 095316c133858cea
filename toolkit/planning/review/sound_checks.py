"""Checks of sounds: whether they play, are speech, and are as long as their text requires.

Only a transcript confirms that the words are those of the text; without one, nothing does.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.media.signatures import match_signature
from toolkit.media.text_parts import fold
from toolkit.media.text_words import measure_word_errors, split_signs
from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.review.evidence import (
    Evidence,
    Inspection,
    NodeCheck,
    ReviewIssue,
    block_result,
)
from toolkit.planning.review.text_case import quote

# Loudness is in decibels relative to full scale, times are in seconds, and shares from 0 to 1.
_MIN_LOUDNESS_DB, _MIN_HEARD_S = -60.0, 0.08  # of audible sound
_HEARD_SHARE = 0.4  # of the shortest time that a text takes: the least that is audible
_MIN_JUDGED_S = 0.5  # of audible sound, for all other checks
_MIN_SHAPE_CHANGE_DB = 1.75  # noise has 1.6, speech 2 to 8
_MAX_STEADY_SHARE = 0.5  # unchanged for a tenth of a second; speech has 0.2
_MAX_TONAL_SHARE = 0.8  # a pure tone; speech in a hum has 0.6
_MIN_LEVEL_CHANGE_DB = 1.7  # a tune has 1, speech 2.5 to 10
_CLIPPED_PEAK, _MAX_CLIPPED_SHARE = 0.9, 0.05  # of samples at a peak; speech has 0.02
_MIN_REPEATED_S = 1.5  # of audible sound that may repeat itself
_CUT_END_SHARE = 0.7  # of the usual time of a text: the least of a sound that ends loudly
# A transcript of fewer words may be wrong by chance. Numbers and names alone may cost 0.2.
_MIN_WORDS, _MAX_WORD_ERRORS = 5, 0.5

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
    """Return the minimum and maximum weight of a sign in speech; both are 0 for punctuation."""
    return _SIGN if unicodedata.category(char).startswith("S") or char in "%&@#*/" else (0.0, 0.0)


def check_sound_file(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound plays, and that its media type is as declared and as the capability's."""
    item, blob = look.item, look.item.blob
    if blob is None:
        return
    media_type = match_signature(blob.data)
    called, promised = blob.media_type, item.capability.produces
    if item.sound is None and called == "audio/mpeg":
        yield block_result(item, 1.0, "The MP3 does not play.")
    elif media_type is not None and media_type != called:
        yield block_result(item, 0.9, f"The file is {media_type}, not {called} as declared.")
    elif promised.startswith("audio/") and "*" not in promised and called != promised:
        yield block_result(item, 0.8, f"The sound is {called}, not {promised}.")
    elif item.sound is None:
        message = f"The sound is {called}, which cannot be checked here."
        yield ReviewIssue(item.node.id, "technical_success", 0.0, message)


def check_silence(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound is audible, and for as long as its text requires."""
    item = look.item
    if (sound := item.sound) is None:
        return
    if sound.loudness_db < _MIN_LOUDNESS_DB:
        message = (
            f"The sound of {sound.seconds:.1f} s is silent: its peak is {sound.loudness_db:.0f} dB."
        )
        yield block_result(item, 1.0, message)
        return
    time = _estimate_time(item) if sound.is_whole else None
    min_s = max(_MIN_HEARD_S, time.least_s * _HEARD_SHARE if time else 0.0)
    if sound.heard_s < min_s:
        yield block_result(
            item, 1.0, f"Only {sound.heard_s:.2f} s of {sound.seconds:.1f} s are audible."
        )


def check_noise(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound is not noise: the spectrum of speech always changes."""
    item = look.item
    sound = item.sound
    if sound is None or sound.heard_s < _MIN_JUDGED_S or is_tone(look):
        return
    if sound.shape_change_db < _MIN_SHAPE_CHANGE_DB:
        message = (
            f"The sound is noise: its spectrum changes by {sound.shape_change_db:.1f} dB, and that "
            "of speech by 3 dB or more."
        )
        yield block_result(item, 1.0, message)


def check_tone(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound is not only a steady tone, a siren or a tune."""
    item = look.item
    if (sound := item.sound) is None or not is_tone(look):
        return
    if sound.steady_share > _MAX_STEADY_SHARE:
        message = f"{sound.steady_share:.0%} of the audible sound is steady tones."
    elif sound.tonal_share > _MAX_TONAL_SHARE:
        message = f"{sound.tonal_share:.0%} of the audible sound is a single pure tone."
    else:
        message = f"The loudness of the sound varies by only {sound.level_change_db:.1f} dB."
    yield block_result(item, 1.0, message)


def is_tone(look: Inspection) -> bool:
    """Check whether a sound consists of tones: it is steadier than speech; False if too short."""
    sound = look.item.sound
    if sound is None or sound.heard_s < _MIN_JUDGED_S:
        return False
    # A hum has no words either, and a hum that is noise is reported as noise.
    is_even = sound.heard_s > 1 and sound.level_change_db < _MIN_LEVEL_CHANGE_DB
    return (
        sound.steady_share > _MAX_STEADY_SHARE
        or sound.tonal_share > _MAX_TONAL_SHARE
        or (is_even and sound.shape_change_db >= _MIN_SHAPE_CHANGE_DB)
    )


def check_clipping(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound is not so loud that its peaks are cut off."""
    item = look.item
    sound = item.sound
    if sound is None or sound.peak < _CLIPPED_PEAK or is_tone(look):
        return
    if sound.clipped_share > _MAX_CLIPPED_SHARE:
        message = f"The sound is clipped: {sound.clipped_share:.0%} of it is at full scale."
        yield block_result(item, 0.7, message)


def check_repeats(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound does not repeat itself, unless its text does."""
    item = look.item
    sound = item.sound
    if sound is None or not sound.repeat_s or sound.heard_s < _MIN_REPEATED_S:
        return
    text = find_spoken_text(item)
    if is_tone(look) or (text is not None and _repeats_words(text)):
        return
    yield block_result(item, 0.8, f"The sound begins again after {sound.repeat_s:.1f} s, the same.")


def check_duration(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound lasts as long as its output claims and its text takes to speak."""
    item = look.item
    if (sound := item.sound) is None or not sound.is_whole:
        return
    claimed_ms = (item.output or {}).get("duration_ms")
    claimed_s = claimed_ms / 1000 if isinstance(claimed_ms, int) else 0.0
    if sound.seconds < claimed_s * 0.93 - 0.25:
        message = f"The sound ends after {sound.seconds:.1f} s of {claimed_s:.1f} s."
        yield block_result(item, 0.9, message)
        return
    if (time := _estimate_time(item)) is None:
        return
    lead = f"{sound.spoken_s:.1f} s are spoken; its text needs"
    if sound.spoken_s < time.least_s:
        yield block_result(item, 0.8, f"{lead} {time.least_s:.1f} s.")
    elif sound.spoken_s > time.most_s:
        yield block_result(item, 0.8, f"{lead} {time.most_s:.1f} s at most.")


def check_end(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound does not stop in the middle of a word."""
    item = look.item
    if (sound := item.sound) is None or not sound.ends_loud or is_tone(look):
        return
    time = _estimate_time(item)
    if time is not None and sound.spoken_s < time.usual_s * _CUT_END_SHARE:
        message = f"The sound is cut off: it ends at full loudness after {sound.seconds:.1f} s."
        yield block_result(item, 0.8, message)


def check_spoken_words(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a transcript of a sound has the words of its text.

    Numbers and names are spelled in many ways, so a share of the words may differ.
    """
    item, text = look.item, find_spoken_text(look.item)
    if text is None or item.heard_text is None:
        return
    expected = split_signs(fold(text))
    errors = measure_word_errors(expected, split_signs(fold(item.heard_text)))
    if len(expected) >= _MIN_WORDS and errors > _MAX_WORD_ERRORS:
        message = (
            f"{errors:.0%} of the words are not those of the text; a transcriber heard"
            f" {quote(item.heard_text)}."
        )
        yield block_result(item, 0.8, message)


SOUND_CHECKS: tuple[NodeCheck, ...] = (
    check_sound_file, check_silence, check_noise, check_tone, check_clipping, check_repeats,
    check_duration, check_end, check_spoken_words,
)  # fmt: skip


def find_spoken_text(item: Evidence) -> str | None:
    """Return the text that a node speaks: of its input, or of earlier nodes; None without any.

    A text of earlier nodes is cut to the limit of the input's field.
    """
    spoken = find_role_field(item.capability, "text")
    if spoken is None:
        return None
    text = item.node.input.get(spoken)
    if isinstance(text, str):
        return text
    rules = item.capability.input_model.model_fields[spoken].metadata
    limits = (getattr(rule, "max_length", None) for rule in rules)
    longest = next((limit for limit in limits if isinstance(limit, int)), None)
    return item.upstream_text[:longest] if item.upstream_text else None


def _estimate_time(item: Evidence) -> SpeakingTime | None:
    text = find_spoken_text(item)
    if text is None:
        return None
    speed = item.node.input.get("speed", 1.0)
    pace = float(speed) if isinstance(speed, int | float) and speed > 0 else 1.0
    return estimate_speaking_time(text, pace)


def _repeats_words(text: str) -> bool:
    """Check whether a text repeats itself, as rhymes and counts do."""
    words = text.casefold().split()
    if len(words) < 4:  # of scripts without spaces, too
        words = list(text)
    runs = [tuple(words[place : place + 3]) for place in range(len(words) - 2)]
    return len(set(runs)) < 0.85 * len(runs)
