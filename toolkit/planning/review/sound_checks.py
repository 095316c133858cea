"""Checks of sounds: whether they play, are speech, and are as long as their text requires.

The speech is not recognized, so no check confirms that its words are the right text.
"""

from collections.abc import Iterator

from toolkit.media.signatures import match_signature
from toolkit.media.speaking_time import SpeakingTime, estimate_speaking_time
from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.review.evidence import Evidence, Inspection, NodeCheck, block_result
from toolkit.planning.review.issues import ReviewIssue


def check_sound_file(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound plays, and that its type is the declared and the promised type."""
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
    item, limits = look.item, look.thresholds.sound
    if (sound := item.sound) is None:
        return
    if sound.loudness_db < limits.min_loudness_db:
        message = (
            f"The sound of {sound.seconds:.1f} s is silent: its peak is {sound.loudness_db:.0f} dB."
        )
        yield block_result(item, 1.0, message)
        return
    time = _estimate_time(item) if sound.is_whole else None
    min_s = max(limits.min_heard_s, time.least_s * limits.heard_share if time else 0.0)
    if sound.heard_s < min_s:
        yield block_result(
            item, 1.0, f"Only {sound.heard_s:.2f} s of {sound.seconds:.1f} s are audible."
        )


def check_noise(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound is not noise: the spectrum of speech always changes."""
    item, limits = look.item, look.thresholds.sound
    sound = item.sound
    if sound is None or sound.heard_s < limits.min_judged_s or is_tone(look):
        return
    if sound.shape_change_db < limits.min_shape_change_db:
        message = (
            f"The sound is noise: its spectrum changes by {sound.shape_change_db:.1f} dB, and that "
            "of speech by 3 dB or more."
        )
        yield block_result(item, 1.0, message)


def check_tone(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound is not only a steady tone, a siren or a tune."""
    item, limits = look.item, look.thresholds.sound
    if (sound := item.sound) is None or not is_tone(look):
        return
    if sound.steady_share > limits.max_steady_share:
        message = f"{sound.steady_share:.0%} of the audible sound is steady tones."
    elif sound.tonal_share > limits.max_tonal_share:
        message = f"{sound.tonal_share:.0%} of the audible sound is a single pure tone."
    else:
        message = f"The loudness of the sound varies by only {sound.level_change_db:.1f} dB."
    yield block_result(item, 1.0, message)


def is_tone(look: Inspection) -> bool:
    """Check whether a sound consists of tones: it is steadier than speech can be."""
    sound, limits = look.item.sound, look.thresholds.sound
    if sound is None or sound.heard_s < limits.min_judged_s:
        return False
    # A hum has no words either, and a hum that is noise is reported as noise.
    is_even = sound.heard_s > 1 and sound.level_change_db < limits.min_level_change_db
    return (
        sound.steady_share > limits.max_steady_share
        or sound.tonal_share > limits.max_tonal_share
        or (is_even and sound.shape_change_db >= limits.min_shape_change_db)
    )


def check_clipping(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound is not so loud that its peaks are cut off."""
    item, limits = look.item, look.thresholds.sound
    sound = item.sound
    if sound is None or sound.peak < limits.clipped_peak or is_tone(look):
        return
    if sound.clipped_share > limits.max_clipped_share:
        message = f"The sound is clipped: {sound.clipped_share:.0%} of it is at full scale."
        yield block_result(item, 0.7, message)


def check_repeats(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound does not repeat itself, unless its text does."""
    item, limits = look.item, look.thresholds.sound
    sound = item.sound
    if sound is None or not sound.repeat_s or sound.heard_s < limits.min_repeated_s:
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
    item, limits = look.item, look.thresholds.sound
    if (sound := item.sound) is None or not sound.ends_loud or is_tone(look):
        return
    time = _estimate_time(item)
    if time is not None and sound.spoken_s < time.usual_s * limits.cut_end_share:
        message = f"The sound is cut off: it ends at full loudness after {sound.seconds:.1f} s."
        yield block_result(item, 0.8, message)


SOUND_CHECKS: tuple[NodeCheck, ...] = (
    check_sound_file, check_silence, check_noise, check_tone, check_clipping, check_repeats,
    check_duration, check_end,
)  # fmt: skip


def find_spoken_text(item: Evidence) -> str | None:
    """Return the text to be spoken: the input's or upstream's, cut to the field's limit."""
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
