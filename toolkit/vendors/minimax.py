"""MiniMax (V4): text, speech and voice clones; most of its failures are HTTP 200."""

import hashlib
import re

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
    TextReply,
    TextRequest,
    TokenBound,
    Vendor,
    VendorFault,
    run_in_thread,
    send,
)
from toolkit.vendors import _chat
from toolkit.vendors._encodings import decode_hex
from toolkit.vendors._http import (
    KEY_REFUSED,
    OUT_OF_CREDIT,
    REFUSED,
    Answer,
    Json,
    Verdict,
    bearer,
    inner,
    number,
)
from toolkit.vendors._prices import models

DEFAULT_VOICE = "English_Graceful_Lady"
_AUDIO = {"format": "mp3", "sample_rate": 32000, "bitrate": 128000, "channel": 1}
_SUFFIXES = {"audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/wav": "wav"}
_VOICE_EXISTS = 2039
_INVALID = 2013  # of any parameter, a prompt that is too long included
# The vendor's table of base_resp.status_code; what is not in it is a fault of the request.
_VERDICTS: dict[int, Verdict] = {
    **dict.fromkeys((1004, 2049), KEY_REFUSED),
    **dict.fromkeys((1008, 2056, 2061), OUT_OF_CREDIT),
    **dict.fromkeys((1002, 1039, 1041, 2045), (ErrorCode.PROVIDER_RATE_LIMITED, None)),
    **dict.fromkeys((1000, 1013, 1024, 1033), (ErrorCode.PROVIDER_UNAVAILABLE, None)),
    1001: (ErrorCode.PROVIDER_TIMEOUT, None),
}


def text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by chat completions, with the model's thoughts kept out of it.

    Some models take no temperature of 0, or above 1: one that is refused is left out.

    The wire has no way to ask for JSON, so a schema goes into the prompt and the JSON is taken
    out of the answer.

    Raises:
        VendorFault: as the vendor's error table has it.
    """
    answer = yield from _chat.with_or_without_temperature(
        operation, access, lambda wanted: _chatted(wanted, access), _refusal
    )
    return _chat.reply(answer, _checked(answer), operation)


def _chatted(operation: TextRequest, access: Access) -> Flow[Answer]:
    fields = _chat.body(operation, access.model, schema_in_prompt=True)
    fields["reasoning_split"] = True
    if access.model.startswith("MiniMax-M3"):
        fields["thinking"] = {"type": "disabled"}
    asked = _chat.request(access, "/v1/chat/completions", fields)
    return Answer("minimax", access, (yield from send(asked, instead=True)))


def _refusal(answer: Answer) -> str:
    """Return the words by which an answer refuses what was asked; empty for any other."""
    try:
        said = answer.json()
    except VendorFault:
        return ""
    words = inner(said, "base_resp").get("status_msg")
    return words if _number(said) == _INVALID and isinstance(words, str) else ""


def speech(operation: SpeechRequest, access: Access) -> Flow[SpeechReply]:
    """Speak a text as MP3; the audio comes as hexadecimal digits.

    Raises:
        VendorFault: as the vendor's error table has it; `PROVIDER_BAD_RESPONSE` without audio.
    """
    voice = operation.voice or DEFAULT_VOICE
    fields: Json = {
        "model": access.model,
        "text": operation.text,
        "stream": False,
        "output_format": "hex",
        "voice_setting": {"voice_id": voice, "speed": operation.speed, "vol": 1, "pitch": 0},
        "audio_setting": _AUDIO,
    }
    answer = yield from _posted(access, "/v1/t2a_v2", fields)
    said = yield from run_in_thread(_checked, answer)  # minutes of audio are many megabytes
    audio = yield from run_in_thread(_decoded, inner(said, "data").get("audio"))
    request_id = answer.label(said.get("trace_id")) or answer.request_id
    if not audio:
        raise answer.fault(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None),
            "The answer of minimax has no audio in it.",
            request_id=request_id,
        )
    extra = inner(said, "extra_info")
    billed, length = number(extra.get("usage_characters")), number(extra.get("audio_length"))
    return SpeechReply(
        audio=audio,
        duration_ms=None if length is None else int(length),
        model=access.model,
        vendor_request_id=request_id,
        cost=Cost({"characters": float(len(operation.text)) if billed is None else billed}),
    )


def clone(operation: CloneRequest, access: Access) -> Flow[CloneReply]:
    """Upload reference audio, then have a voice made of it.

    The same name and audio make the same voice: where it is there already, it is the answer, and
    costs nothing. The vendor deletes a voice that was not used for 7 days.

    Raises:
        VendorFault: as the vendor's error table has it.
    """
    if operation.media_type not in _SUFFIXES:
        raise VendorFault(
            ErrorCode.PROVIDER_REJECTED, "minimax clones voices from MP3, M4A and WAV alone."
        )
    file_id = yield from _uploaded(operation, access)
    voice = voice_id(operation)
    fields = {"file_id": file_id, "voice_id": voice}
    answer = yield from _posted(access, "/v1/voice_clone", fields)
    said = _checked(answer, passing=_VOICE_EXISTS)
    made = _number(said) != _VOICE_EXISTS
    return CloneReply(
        voice=voice,
        model=access.model,
        vendor_request_id=answer.label(said.get("trace_id")) or answer.request_id,
        cost=Cost({"voices": 1.0 if made else 0.0}),
    )


def probe(access: Access) -> Flow[None]:
    """List the voices: free, and only for who has a key.

    Raises:
        VendorFault: `PROVIDER_AUTH_FAILED` when the key is refused.
    """
    answer = yield from _posted(access, "/v1/get_voice", {"voice_type": "system"})
    _checked(answer)


def voice_id(operation: CloneRequest) -> str:
    """Build a voice id as the vendor wants it: 8 to 256 characters, a letter first, unique to the
    audio.

    >>> voice_id(CloneRequest(name="Ada!", audio=b"x", media_type="audio/wav"))
    'Ada-2d711642b726'
    """
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", operation.name).strip("-_")[:64]
    digest = hashlib.sha256(operation.audio).hexdigest()[:12]
    return f"{name}-{digest}" if name[:1].isalpha() else f"v{name}-{digest}"


def _uploaded(operation: CloneRequest, access: Access) -> Flow[int]:
    """Upload the reference audio, and return the vendor's id of it."""
    name = f"reference.{_SUFFIXES[operation.media_type]}"
    response = yield from send(
        httpx.Request(
            "POST",
            access.url("/v1/files/upload"),
            data={"purpose": "voice_clone"},
            files={"file": (name, operation.audio, operation.media_type)},
            headers=bearer(access),
        ),
        free=True,
    )
    answer = Answer("minimax", access, response)
    file_id = inner(_checked(answer), "file").get("file_id")
    if isinstance(file_id, bool) or not isinstance(file_id, int):
        raise answer.fault(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None), "minimax took the audio but named no file."
        )
    return file_id


def _posted(access: Access, path: str, fields: Json) -> Flow[Answer]:
    request = httpx.Request("POST", access.url(path), json=fields, headers=bearer(access))
    return Answer("minimax", access, (yield from send(request)))


def _checked(answer: Answer, passing: int = 0) -> Json:
    """Read the body of an answer, unless it is one of the failures that come with status 200.

    Args:
        answer: the answer.
        passing: a code that the caller takes for a success.
    """
    said = answer.json()
    code = _number(said)
    if not answer.failed and code in (0, passing):
        return said
    words = inner(said, "base_resp").get("status_msg") or inner(said, "error").get("message")
    raise answer.failure(
        words,
        verdict=_VERDICTS.get(code, REFUSED) if code else None,
        number=code or None,
        request_id=answer.label(said.get("trace_id")),
    )


def _number(said: Json) -> int:
    code = inner(said, "base_resp").get("status_code", 0)
    return code if isinstance(code, int) else -1


def _decoded(audio: object) -> bytes:
    try:
        return decode_hex(audio) if isinstance(audio, str) else b""
    except ValueError:
        return b""


VENDOR = Vendor(
    id="minimax",
    label="V4",
    title="MiniMax",
    variable="MINIMAX_API_KEY",
    base_urls={"api": "https://api.minimax.io"},
    operations={TextRequest: text, SpeechRequest: speech, CloneRequest: clone},
    models=models("minimax"),
    bounds={
        TextRequest: TokenBound(
            "API reference, chat completions: max_completion_tokens is the most that is generated;"
            " where a model reasons whatever it is told, its own limit counts",
            unless_it_reasons=True,
        ),
        SpeechRequest: CharacterBound(
            "price list of speech: a Chinese character counts as two, others as one"
        ),
        CloneRequest: ExactBound("price list: by the voice"),
    },
    probe=probe,
)
