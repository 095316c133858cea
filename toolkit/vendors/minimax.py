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
    EmbedReply,
    EmbedRequest,
    ExactBound,
    Flow,
    InputBound,
    ProviderError,
    SpeechReply,
    SpeechRequest,
    TextReply,
    TextRequest,
    TokenBound,
    Vendor,
    run_in_thread,
    send,
)
from toolkit.vendors import _chat
from toolkit.vendors._chat_stream import STREAM_FIELDS, ChatStreamReader
from toolkit.vendors._embeddings import MAX_JSON_TEXTS, make_reply
from toolkit.vendors._encodings import decode_hex
from toolkit.vendors._http import (
    KEY_REFUSED,
    OUT_OF_CREDIT,
    REFUSED,
    Classification,
    Json,
    VendorResponse,
    build_bearer_headers,
    build_json_request,
    get_object,
    read_numbers,
)
from toolkit.vendors._negotiation import ask_without_refused_fields, make_temperature_field
from toolkit.vendors._prices import load_models

DEFAULT_VOICE = "English_Graceful_Lady"
_AUDIO_SETTING = {"format": "mp3", "sample_rate": 32000, "bitrate": 128000, "channel": 1}
_SUFFIXES = {"audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/wav": "wav"}
_VOICE_EXISTS_CODE = 2039
_INVALID_PARAMETER_CODE = 2013  # any invalid parameter, including a prompt that is too long
# The vendor's table of base_resp.status_code; any other code is a fault of the request.
_CLASSIFICATIONS: dict[int, Classification] = {
    **dict.fromkeys((1004, 2049), KEY_REFUSED),
    **dict.fromkeys((1008, 2056, 2061), OUT_OF_CREDIT),
    **dict.fromkeys((1002, 1039, 1041, 2045), (ErrorCode.PROVIDER_RATE_LIMITED, None)),
    **dict.fromkeys((1000, 1013, 1024, 1033), (ErrorCode.PROVIDER_UNAVAILABLE, None)),
    1001: (ErrorCode.PROVIDER_TIMEOUT, None),
}


def generate_text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by chat completions, without the model's thoughts.

    Some models refuse a temperature of 0, or above 1. A refused temperature is left out.

    The wire has no way to ask for JSON, so a schema goes into the prompt and the JSON is extracted
    from the answer.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    optional = [] if operation.temperature is None else [make_temperature_field(operation)]
    answer = yield from ask_without_refused_fields(
        optional, access, lambda sent: _send_chat(operation, access, sent), _read_refusal
    )
    return _chat.parse_reply(answer, _read_body(answer), operation)


def _send_chat(
    operation: TextRequest, access: Access, sent: frozenset[str]
) -> Flow[VendorResponse]:
    fields = _chat.build_body(operation, access.model, schema_in_prompt=True)
    if "temperature" not in sent:
        fields.pop("temperature", None)
    fields["reasoning_split"] = True
    if access.model.startswith("MiniMax-M3"):
        fields["thinking"] = {"type": "adaptive" if operation.reasoning_tokens else "disabled"}
    reader = None
    if operation.stream:
        fields |= STREAM_FIELDS
        reader = ChatStreamReader()
    request = _chat.build_request(access, "/v1/chat/completions", fields)
    answer = yield from send(request, instead=True, stream=reader)
    return VendorResponse("minimax", access, answer)


def _read_refusal(answer: VendorResponse) -> str:
    """Return the words of a refusal, or "" for any other answer."""
    try:
        body = answer.json()
    except ProviderError:
        return ""
    words = get_object(body, "base_resp").get("status_msg")
    is_refusal = _read_status_code(body) == _INVALID_PARAMETER_CODE
    return words if is_refusal and isinstance(words, str) else ""


def embed_texts(operation: EmbedRequest, access: Access) -> Flow[EmbedReply]:
    """Embed texts by the embeddings API.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    texts = operation.texts[:MAX_JSON_TEXTS]
    fields: Json = {
        "model": access.model,
        "texts": list(texts),
        "type": "query" if operation.purpose == "query" else "db",
    }
    answer = yield from _post(access, "/v1/embeddings", fields)
    body = yield from run_in_thread(_read_body, answer)
    vectors = body.get("vectors")
    rows = vectors if isinstance(vectors, list) else []
    tokens, _ = read_numbers(body, "total_tokens", "total_tokens")
    units = {} if tokens is None else {"input_tokens": tokens}
    return (yield from run_in_thread(make_reply, answer, len(texts), rows, units))


def generate_speech(operation: SpeechRequest, access: Access) -> Flow[SpeechReply]:
    """Speak a text as MP3; the audio comes as hexadecimal digits.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table;
            `PROVIDER_BAD_RESPONSE` without audio.
    """
    voice = operation.voice or DEFAULT_VOICE
    fields: Json = {
        "model": access.model,
        "text": operation.text,
        "stream": False,
        "output_format": "hex",
        "voice_setting": {"voice_id": voice, "speed": operation.speed, "vol": 1, "pitch": 0},
        "audio_setting": _AUDIO_SETTING,
    }
    answer = yield from _post(access, "/v1/t2a_v2", fields)
    body = yield from run_in_thread(_read_body, answer)  # minutes of audio are many megabytes
    audio = yield from run_in_thread(_decode_audio, get_object(body, "data").get("audio"))
    request_id = answer.read_label(body.get("trace_id")) or answer.request_id
    if not audio:
        raise answer.build_error(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None),
            "The answer of minimax has no audio in it.",
            request_id=request_id,
        )
    extra = get_object(body, "extra_info")
    billed, length = read_numbers(extra, "usage_characters", "audio_length")
    return SpeechReply(
        audio=audio,
        duration_ms=None if length is None else int(length),
        model=access.model,
        vendor_request_id=request_id,
        cost=Cost({"characters": float(len(operation.text)) if billed is None else billed}),
    )


def clone_voice(operation: CloneRequest, access: Access) -> Flow[CloneReply]:
    """Upload reference audio, then clone a voice from it.

    The same name and audio make the same voice. An existing voice is returned and costs nothing.
    The vendor deletes a voice that was not used for 7 days.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    if operation.media_type not in _SUFFIXES:
        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED, "minimax clones voices only from MP3, M4A and WAV."
        )
    file_id = yield from _upload_reference(operation, access)
    voice = build_voice_id(operation)
    fields = {"file_id": file_id, "voice_id": voice}
    answer = yield from _post(access, "/v1/voice_clone", fields)
    body = _read_body(answer, passing=_VOICE_EXISTS_CODE)
    is_new = _read_status_code(body) != _VOICE_EXISTS_CODE
    return CloneReply(
        voice=voice,
        model=access.model,
        vendor_request_id=answer.read_label(body.get("trace_id")) or answer.request_id,
        cost=Cost({"voices": 1.0 if is_new else 0.0}),
    )


def probe(access: Access) -> Flow[None]:
    """List the voices, which is free and needs a key.

    Raises:
        ProviderError: `PROVIDER_AUTH_FAILED` if the key is refused.
    """
    answer = yield from _post(access, "/v1/get_voice", {"voice_type": "system"})
    _read_body(answer)


def build_voice_id(operation: CloneRequest) -> str:
    """Build a voice id for the vendor: 8 to 256 characters, a letter first, unique to the audio.

    >>> build_voice_id(CloneRequest(name="Ada!", audio=b"x", media_type="audio/wav"))
    'Ada-2d711642b726'
    """
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", operation.name).strip("-_")[:64]
    digest = hashlib.sha256(operation.audio).hexdigest()[:12]
    return f"{name}-{digest}" if name[:1].isalpha() else f"v{name}-{digest}"


def _upload_reference(operation: CloneRequest, access: Access) -> Flow[int]:
    """Upload the reference audio, and return the vendor's id of the file."""
    name = f"reference.{_SUFFIXES[operation.media_type]}"
    response = yield from send(
        httpx.Request(
            "POST",
            access.url("/v1/files/upload"),
            data={"purpose": "voice_clone"},
            files={"file": (name, operation.audio, operation.media_type)},
            headers=build_bearer_headers(access),
        ),
        free=True,
    )
    answer = VendorResponse("minimax", access, response)
    file_id = get_object(_read_body(answer), "file").get("file_id")
    if isinstance(file_id, bool) or not isinstance(file_id, int):
        raise answer.build_error(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None),
            "minimax accepted the audio but returned no file id.",
        )
    return file_id


def _post(access: Access, path: str, fields: Json) -> Flow[VendorResponse]:
    request = build_json_request(access.url(path), fields, build_bearer_headers(access))
    return VendorResponse("minimax", access, (yield from send(request)))


def _read_body(answer: VendorResponse, passing: int = 0) -> Json:
    """Return the body of an answer, or raise its failure, which may come with status 200.

    Args:
        answer: the answer.
        passing: an additional code that counts as a success.
    """
    body = answer.json()
    code = _read_status_code(body)
    if not answer.is_failure and code in (0, passing):
        return body
    words = get_object(body, "base_resp").get("status_msg")
    words = words or get_object(body, "error").get("message")
    raise answer.build_failure(
        words,
        verdict=_CLASSIFICATIONS.get(code, REFUSED) if code else None,
        number=code or None,
        request_id=answer.read_label(body.get("trace_id")),
    )


def _read_status_code(body: Json) -> int:
    code = get_object(body, "base_resp").get("status_code", 0)
    return code if isinstance(code, int) else -1


def _decode_audio(audio: object) -> bytes:
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
    operations={
        TextRequest: generate_text,
        SpeechRequest: generate_speech,
        CloneRequest: clone_voice,
        EmbedRequest: embed_texts,
    },
    models=load_models("minimax"),
    bounds={
        TextRequest: TokenBound(
            "API reference, chat completions: max_completion_tokens limits the output; for"
            " a model that always reasons, the model's own limit counts",
            unless_it_reasons=True,
        ),
        SpeechRequest: CharacterBound(
            "price list of speech: a Chinese character counts as two, others as one"
        ),
        CloneRequest: ExactBound("price list: by the voice"),
        EmbedRequest: InputBound("API reference, embeddings: total_tokens are those of the texts"),
    },
    probe=probe,
)
