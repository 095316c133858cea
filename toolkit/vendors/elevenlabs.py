"""ElevenLabs (V5): speech, voice clones and transcripts."""

from collections.abc import Iterator

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Access,
    CharacterBound,
    CloneReply,
    CloneRequest,
    Cost,
    DurationBound,
    ExactBound,
    Flow,
    ProviderError,
    SpeechReply,
    SpeechRequest,
    TranscribeReply,
    TranscribeRequest,
    Vendor,
)
from toolkit.vendors import _transcripts
from toolkit.vendors._http import (
    KEY_REFUSED,
    OUT_OF_CREDIT,
    REFUSED,
    Classification,
    Json,
    VendorResponse,
    check_header_safe,
    clean_text,
    get_object,
    quote_path_segment,
    read_numbers,
    to_finite_number,
)
from toolkit.vendors._prices import load_models
from toolkit.vendors._wire import VendorWire

DEFAULT_VOICE = "21m00Tcm4TlvDq8ikWAM"
# API reference, speech to text: the file must be smaller than 3.0 GB.
MAX_AUDIO_BYTES = 3_000_000_000
# A longer silence between words ends a segment.
_PAUSE_S = 1.0
_MIN_SPEED, _MAX_SPEED = 0.7, 1.2
# By `detail.status` of the vendor's errors, if the HTTP status alone would mislead.
_CLASSIFICATIONS: dict[str, Classification] = {
    "invalid_api_key": KEY_REFUSED,
    "missing_permissions": KEY_REFUSED,
    "quota_exceeded": OUT_OF_CREDIT,
    "max_character_limit_exceeded": REFUSED,
    "voice_not_found": REFUSED,
    "too_many_concurrent_requests": (ErrorCode.PROVIDER_RATE_LIMITED, None),
    "system_busy": (ErrorCode.PROVIDER_RATE_LIMITED, None),
}


def generate_speech(operation: SpeechRequest, access: Access) -> Flow[SpeechReply]:
    """Speak a text as MP3; the answer is the audio itself.

    Raises:
        ProviderError: the vendor refused or failed; `PROVIDER_BAD_RESPONSE` without audio.
    """
    voice = quote_path_segment(operation.voice or DEFAULT_VOICE)
    fields: Json = {"text": operation.text, "model_id": access.model}
    if not _MIN_SPEED <= operation.speed <= _MAX_SPEED:
        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED,
            f"elevenlabs supports speeds from {_MIN_SPEED} to {_MAX_SPEED}.",
        )
    if operation.speed != 1.0:
        fields["voice_settings"] = {"speed": operation.speed}
    path = f"/v1/text-to-speech/{voice}?output_format=mp3_44100_128"
    answer = yield from _WIRE.ask(access, path, fields)
    if answer.is_failure:
        _WIRE.read(answer)  # which raises the error: only failures are JSON
    audio = answer.response.content
    kind = answer.response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not audio or not kind.startswith("audio/"):
        raise answer.build_bad_response("The answer of elevenlabs has no audio in it.")
    return SpeechReply(
        audio=audio,
        model=access.model,
        vendor_request_id=answer.request_id,
        cost=Cost({"characters": _count_billed_characters(answer, operation)}),
    )


def clone_voice(operation: CloneRequest, access: Access) -> Flow[CloneReply]:
    """Clone a voice from reference audio.

    Raises:
        ProviderError: the vendor refused or failed; `PROVIDER_REJECTED` for a voice that a person
            must verify first.
    """
    files = {"files": _transcripts.build_reference(operation, access)}
    form = {"name": operation.name}
    answer, body = yield from _WIRE.post_form(access, "/v1/voices/add", form, files)
    voice = answer.read_label(body.get("voice_id"))
    if voice is None:
        raise answer.build_bad_response(
            "elevenlabs accepted the audio but returned no voice id.",
        )
    if body.get("requires_verification") is True:
        raise answer.build_error(
            REFUSED,
            f"elevenlabs created the voice `{voice}`, but it cannot speak yet: verify it on the"
            " site of elevenlabs.",
        )
    return CloneReply(
        voice=voice,
        model=access.model,
        vendor_request_id=answer.request_id,
        cost=Cost({"voices": 1.0}),
    )


def transcribe_audio(operation: TranscribeRequest, access: Access) -> Flow[TranscribeReply]:
    """Transcribe audio; the answer has the times of words, which are joined to sentences.

    Raises:
        ProviderError: the vendor refused or failed.
    """
    fields = {
        "model_id": access.model,
        "tag_audio_events": "false",
        "language_code": operation.language,
    }
    files = {"file": _transcripts.build_file(operation, access, MAX_AUDIO_BYTES)}
    answer, body = yield from _WIRE.post_form(access, "/v1/speech-to-text", fields, files)
    rows = list(_join_words(body.get("words")))
    return _transcripts.make_reply(
        answer,
        operation,
        body.get("text"),
        _transcripts.read_segments(rows, operation),
        body.get("language_code"),
        _transcripts.read_duration(body, operation, "audio_duration_secs"),
    )


def _join_words(words: object) -> Iterator[Json]:
    """Yield a row with text, start and end for each sentence of timed words; a pause ends one."""
    row: Json = {}
    for word in words if isinstance(words, list) else ():
        text = clean_text(word.get("text")) if isinstance(word, dict) else None
        if text is None:
            continue
        if word.get("type") == "spacing":
            row = row and {**row, "text": row["text"] + text}
            continue
        start, end = read_numbers(word, "start", "end")
        if row and start is not None and start - (row["end"] or start) > _PAUSE_S:
            yield row
            row = {}
        row = {"text": row.get("text", "") + text, "start": row.get("start", start), "end": end}
        if text.endswith((".", "?", "!", "…", "。", "？", "！")):
            yield row
            row = {}
    if row:
        yield row


def _build_headers(access: Access) -> dict[str, str]:
    return {"xi-api-key": check_header_safe(access.secret)}


def _build_failure(answer: VendorResponse, body: Json) -> ProviderError:
    """Build the error for an answer whose `detail` is an object, a list of objects, or a text."""
    detail = body.get("detail")
    first = detail[0] if isinstance(detail, list) and detail else detail
    if isinstance(first, dict):
        status = str(first.get("status") or first.get("code") or "")
        return answer.build_failure(
            first.get("message") or first.get("msg"), verdict=_CLASSIFICATIONS.get(status)
        )
    return answer.build_failure(first or get_object(body, "error").get("message"))


def _count_billed_characters(answer: VendorResponse, operation: SpeechRequest) -> float:
    """Return the billed characters from the header, or else the characters that were sent."""
    try:
        count = to_finite_number(float(answer.response.headers["character-cost"]))
    except (KeyError, ValueError):
        count = None
    return float(len(operation.text)) if count is None else count


_WIRE = VendorWire(_build_failure, _build_headers)
VENDOR = Vendor(
    id="elevenlabs",
    label="V5",
    title="ElevenLabs",
    variable="ELEVENLABS_API_KEY",
    base_urls={"api": "https://api.elevenlabs.io"},
    operations={
        SpeechRequest: generate_speech,
        CloneRequest: clone_voice,
        TranscribeRequest: transcribe_audio,
    },
    models=load_models("elevenlabs"),
    bounds={
        SpeechRequest: CharacterBound("price list: by the character of the text"),
        CloneRequest: ExactBound("price list: by the voice"),
        TranscribeRequest: DurationBound("price list: by the duration of the audio"),
    },
    probe=_WIRE.make_probe("/v1/voices"),
)
