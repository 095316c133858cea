"""Checks of sounds: whether they play, and how long against their text."""

from collections.abc import Iterator

from toolkit.media.sounds import measure_mp3_ms
from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.review.evidence import Evidence, Inspection, NodeCheck
from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.sound_measures import estimate_speaking_ms


def check_duration(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that an MP3 plays, and that its length fits what is claimed and its text."""
    item, blob = look.item, look.item.blob
    if blob is None or blob.media_type != "audio/mpeg":
        return
    name = item.node.id
    try:
        lasts = measure_mp3_ms(blob.data)
    except ValueError:
        yield ReviewIssue(
            name, "technical_success", 1.0, "The MP3 does not play.", is_blocking=True
        )
        return
    claimed_ms = (item.output or {}).get("duration_ms")
    if isinstance(claimed_ms, int) and lasts < claimed_ms * 0.93 - 250:
        message = f"The MP3 ends after {lasts / 1000:.1f} s of {claimed_ms / 1000:.1f} s."
        yield ReviewIssue(name, "technical_success", 0.9, message, is_blocking=True)
        return
    text = find_spoken_text(item)
    if text is None:
        return
    speed = item.node.input.get("speed", 1.0)
    pace = float(speed) if isinstance(speed, int | float) and speed > 0 else 1.0
    least, most = estimate_speaking_ms(text, pace)
    if lasts < least:
        message = f"The MP3 lasts {lasts / 1000:.1f} s; its text needs {least / 1000:.1f} s."
        yield ReviewIssue(name, "technical_success", 0.8, message, is_blocking=True)
    elif lasts > most:
        message = f"The MP3 lasts {lasts / 1000:.1f} s; its text needs {most / 1000:.1f} s at most."
        far = lasts > 2 * most
        yield ReviewIssue(name, "technical_success", 0.8 if far else 0.3, message, is_blocking=far)


SOUND_CHECKS: tuple[NodeCheck, ...] = (check_duration,)


def find_spoken_text(item: Evidence) -> str | None:
    """Return the text to be spoken: the input's or upstream's, cut to the field's limit."""
    spoken = find_role_field(item.capability, "text")
    if spoken is None:
        return None
    given = item.node.input.get(spoken)
    if isinstance(given, str):
        return given
    rules = item.capability.input_model.model_fields[spoken].metadata
    limits = (getattr(rule, "max_length", None) for rule in rules)
    longest = next((limit for limit in limits if isinstance(limit, int)), None)
    return item.upstream_text[:longest] if item.upstream_text else None
