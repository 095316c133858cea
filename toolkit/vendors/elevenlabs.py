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
    SpeechReply,
    SpeechRequest,
    Vendor,
    VendorFault,
    send,
)
from toolkit.vendors._http import (
    KEY_REFUSED,
    OUT_OF_CREDIT,
    REFUSED,
    Answer,
    Json,
    Verdict,
    carried,
    in_path,
    inner,
    number,
    probed,
)
from toolkit.vendors._prices import models

DEFAULT_VOICE = "21m00Tcm4TlvDq8ikWAM"
_FORMAT = "mp3_44100_128"
_SLOWEST, _FASTEST = 0.7, 1.2
_SUFFIXES = {"audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/wav": "wav"}
# `detail.status` of the vendor's errors, where the HTTP status alone would mislead.
_VERDICTS: dict[str, Verdict] = {
    "invalid_api_key": KEY_REFUSED,
    "missing_permissions": KEY_REFUSED,
    "quota_exceeded": OUT_OF_CREDIT,
    "max_character_limit_exceeded": REFUSED,
    "voice_not_found": REFUSED,
    "too_many_concurrent_requests": (ErrorCode.PROVIDER_RATE_LIMITED, None),
    "system_busy": (ErrorCode.PROVIDER_RATE_LIMITED, None),
}


def speech(operation: SpeechRequest, access: Access) -> Flow[SpeechReply]:
    """Speak a text as MP3; the answer is the audio itself.

    Raises:
        VendorFault: as the vendor's errors say; `PROVIDER_BAD_RESPONSE` without audio.
    """
    voice = in_path(operation.voice or DEFAULT_VOICE)
    fields: Json = {"text": operation.text, "model_id": access.model}
    if not _SLOWEST <= operation.speed <= _FASTEST:
        raise VendorFault(
            ErrorCode.PROVIDER_REJECTED,
            f"elevenlabs speaks at {_SLOWEST} to {_FASTEST} times the usual speed.",
        )
    if operation.speed != 1.0:
        fields["voice_settings"] = {"speed": operation.speed}
    request = httpx.Request(
        "POST",
        access.url(f"/v1/text-to-speech/{voice}"),
        params={"output_format": _FORMAT},
        json=fields,
        headers=_headers(access),
    )
    answer = Answer("elevenlabs", access, (yield from send(request)))
    if answer.failed:
        raise _failure(answer)
    audio = answer.response.content
    kind = answer.response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not audio or not kind.startswith("audio/"):
        raise answer.fault(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None), "The answer of elevenlabs has no audio in it."
        )
    return SpeechReply(
        audio=audio,
        model=access.model,
        vendor_request_id=answer.request_id,
        cost=Cost({"characters": _billed(answer, operation)}),
    )


def clone(operation: CloneRequest, access: Access) -> Flow[CloneReply]:
    """Make a voice of reference audio.

    Raises:
        VendorFault: as the vendor's errors say; `PROVIDER_REJECTED` for a voice that a person has
            to verify first.
    """
    if operation.media_type not in _SUFFIXES:
        raise VendorFault(
            ErrorCode.PROVIDER_REJECTED, "elevenlabs clones voices from MP3, M4A and WAV alone."
        )
    name = f"reference.{_SUFFIXES[operation.media_type]}"
    request = httpx.Request(
        "POST",
        access.url("/v1/voices/add"),
        data={"name": operation.name},
        files={"files": (name, operation.audio, operation.media_type)},
        headers=_headers(access),
    )
    answer = Answer("elevenlabs", access, (yield from send(request)))
    if answer.failed:
        raise _failure(answer)
    said = answer.json()
    voice = answer.label(said.get("voice_id"))
    if voice is None:
        raise answer.fault(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None), "elevenlabs took the audio but named no voice."
        )
    if said.get("requires_verification") is True:
        raise answer.fault(
            REFUSED,
            f"elevenlabs made the voice `{voice}`, but a person has to verify it on its site"
            " before it can speak.",
        )
    return CloneReply(
        voice=voice,
        model=access.model,
        vendor_request_id=answer.request_id,
        cost=Cost({"voices": 1.0}),
    )


def probe(access: Access) -> Flow[None]:
    """List the voices: free, and only for who has a key.

    Raises:
        VendorFault: `PROVIDER_AUTH_FAILED` when the key is refused.
    """
    answer = yield from probed("elevenlabs", access, "/v1/voices", _headers(access))
    if answer.failed:
        raise _failure(answer)


def _headers(access: Access) -> dict[str, str]:
    return {"xi-api-key": carried(access.secret)}


def _failure(answer: Answer) -> VendorFault:
    """Build the error for an answer whose `detail` is an object, a list of objects, or a text."""
    said = answer.json()
    detail = said.get("detail")
    first = detail[0] if isinstance(detail, list) and detail else detail
    if isinstance(first, dict):
        status = str(first.get("status") or first.get("code") or "")
        return answer.failure(
            first.get("message") or first.get("msg"), verdict=_VERDICTS.get(status)
        )
    return answer.failure(first or inner(said, "error").get("message"))


def _billed(answer: Answer, operation: SpeechRequest) -> float:
    """Return the characters that were billed: by the header, else those that were sent."""
    try:
        told = number(float(answer.response.headers["character-cost"]))
    except (KeyError, ValueError):
        told = None
    return float(len(operation.text)) if told is None else told


VENDOR = Vendor(
    id="elevenlabs",
    label="V5",
    title="ElevenLabs",
    variable="ELEVENLABS_API_KEY",
    base_urls={"api": "https://api.elevenlabs.io"},
    operations={SpeechRequest: speech, CloneRequest: clone},
    models=models("elevenlabs"),
    bounds={
        SpeechRequest: CharacterBound("price list: by the character of the text"),
        CloneRequest: ExactBound("price list: by the voice"),
    },
    probe=probe,
)
