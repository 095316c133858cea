"""Transcripts: audio files to upload, segments of answers, and codes of languages."""

from functools import cache
from importlib.resources import files

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Access,
    CloneRequest,
    Cost,
    ProviderError,
    Segment,
    TranscribeReply,
    TranscribeRequest,
)
from toolkit.vendors._http import Json, VendorResponse, clean_text, read_numbers

# Endings of the formats that the capabilities take: a vendor tells the format by the file's name.
_SUFFIXES = {"audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/wav": "wav"}


def build_file(operation: TranscribeRequest, access: Access, limit: int) -> tuple[str, bytes, str]:
    """Build the audio file of an upload form: its name, content and media type.

    Args:
        limit: the most bytes that the vendor takes.

    Raises:
        ProviderError: `PROVIDER_REJECTED` for a larger file.
    """
    if len(operation.audio) > limit:
        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED,
            f"{access.vendor} takes audio of at most {limit / 1e6:.0f} MB, and this has"
            f" {len(operation.audio) / 1e6:.1f} MB: compress or split it, or choose another"
            " provider.",
        )
    return f"audio.{_SUFFIXES[operation.media_type]}", operation.audio, operation.media_type


def build_reference(operation: CloneRequest, access: Access) -> tuple[str, bytes, str]:
    """Build the file of a form with the reference audio of a voice.

    Raises:
        ProviderError: `PROVIDER_REJECTED` for other audio than MP3, M4A and WAV.
    """
    if operation.media_type not in _SUFFIXES:
        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED,
            f"{access.vendor} clones voices only from MP3, M4A and WAV.",
        )
    return f"reference.{_SUFFIXES[operation.media_type]}", operation.audio, operation.media_type


def read_segments(rows: object, operation: TranscribeRequest) -> tuple[Segment, ...]:
    """Read rows with `start`, `end` and `text`; rows without times or words are left out."""
    segments: list[Segment] = []
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            start, end = read_numbers(row, "start", "end")
            text = (clean_text(row.get("text")) or "").strip()
            if text and start is not None and end is not None:
                # A vendor's times may lie a little after the end.
                start, end = (round(min(t, operation.duration_s), 3) for t in (start, end))
                segments.append(Segment(start, max(start, end), text))
    return tuple(segments)


def make_reply(
    answer: VendorResponse,
    operation: TranscribeRequest,
    text: object,
    segments: tuple[Segment, ...],
    language: object,
    cost: Cost,
) -> TranscribeReply:
    """Make the reply of a transcript; without segments, the whole text is a single segment.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if the text is no text.
    """
    words = clean_text(text)
    if words is None:
        raise answer.build_bad_response(
            f"The answer of {answer.vendor} has no transcript in it.",
        )
    words = words.strip()
    whole = (Segment(0.0, operation.duration_s, words),) if words else ()
    return TranscribeReply(
        text=words,
        segments=segments or whole,
        language=operation.language or find_language_code(language),
        model=answer.access.model,
        vendor_request_id=answer.request_id,
        cost=cost,
    )


def read_duration(body: Json, operation: TranscribeRequest, *names: str) -> Cost:
    """Return the billed seconds: the first named member, or else the duration that we measured."""
    known = (seconds for seconds in read_numbers(body, *names) if seconds is not None)
    return Cost({"seconds": round(next(known, operation.duration_s), 3)})


def find_language_code(name: object) -> str | None:
    """Find the ISO 639-1 code of a language by its ISO code or English name; None if unknown.

    >>> find_language_code("en"), find_language_code("deu"), find_language_code("Haitian Creole")
    ('en', 'de', 'ht')
    """
    return _load_language_codes().get(name.strip().lower()) if isinstance(name, str) else None


@cache
def _load_language_codes() -> dict[str, str]:
    """Load the ISO 639-1 codes of Whisper's languages, by each code and English name."""
    table = files(__package__).joinpath("language_names.txt").read_text(encoding="utf-8")
    rows = [line.split(" ", 2) for line in table.splitlines()]
    return {name: row[0] for row in rows for name in row}
