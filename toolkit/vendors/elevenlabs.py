"""ElevenLabs (V5): speech and voice clones."""

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Access,
    CharacterBound,
    CloneReply,
    CloneRequest,
    Cost,
    ExactBound,
    Flow,
    ProviderError,
    SpeechReply,
    SpeechRequest,
    Vendor,
    send,
)
from toolkit.vendors._http import (
    KEY_REFUSED,
    OUT_OF_CREDIT,
    REFUSED,
    Classification,
    Json,
    VendorResponse,
    check_header_safe,
    get_object,
    quote_path_segment,
    send_probe,
    to_finite_number,
)
from toolkit.vendors._prices import load_models

DEFAULT_VOICE = "21m00Tcm4TlvDq8ikWAM"
_OUTPUT_FORMAT = "mp3_44100_128"
_MIN_SPEED, _MAX_SPEED = 0.7, 1.2
_SUFFIXES = {"audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/wav": "wav"}
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
    request = httpx.Request(
        "POST",
        access.url(f"/v1/text-to-speech/{voice}"),
        params={"output_format": _OUTPUT_FORMAT},
        json=fields,
        headers=_build_headers(access),
    )
    answer = VendorResponse("elevenlabs", access, (yield from send(request)))
    if answer.is_failure:
        raise _build_failure(answer)
    audio = answer.response.content
    kind = answer.response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not audio or not kind.startswith("audio/"):
        raise answer.build_error(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None), "The answer of elevenlabs has no audio in it."
        )
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
    if operation.media_type not in _SUFFIXES:
        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED, "elevenlabs clones voices only from MP3, M4A and WAV."
        )
    name = f"reference.{_SUFFIXES[operation.media_type]}"
    request = httpx.Request(
        "POST",
        access.url("/v1/voices/add"),
        data={"name": operation.name},
        files={"files": (name, operation.audio, operation.media_type)},
        headers=_build_headers(access),
    )
    answer = VendorResponse("elevenlabs", access, (yield from send(request)))
    if answer.is_failure:
        raise _build_failure(answer)
    body = answer.json()
    voice = answer.read_label(body.get("voice_id"))
    if voice is None:
        raise answer.build_error(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None),
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


def probe(access: Access) -> Flow[None]:
    """List the voices, which is free and needs a key.

    Raises:
        ProviderError: `PROVIDER_AUTH_FAILED` if the key is refused.
    """
    answer = yield from send_probe("elevenlabs", access, "/v1/voices", _build_headers(access))
    if answer.is_failure:
        raise _build_failure(answer)


def _build_headers(access: Access) -> dict[str, str]:
    return {"xi-api-key": check_header_safe(access.secret)}


def _build_failure(answer: VendorResponse) -> ProviderError:
    """Build the error for an answer whose `detail` is an object, a list of objects, or a text."""
    body = answer.json()
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


VENDOR = Vendor(
    id="elevenlabs",
    label="V5",
    title="ElevenLabs",
    variable="ELEVENLABS_API_KEY",
    base_urls={"api": "https://api.elevenlabs.io"},
    operations={SpeechRequest: generate_speech, CloneRequest: clone_voice},
    models=load_models("elevenlabs"),
    bounds={
        SpeechRequest: CharacterBound("price list: by the character of the text"),
        CloneRequest: ExactBound("price list: by the voice"),
    },
    probe=probe,
)
