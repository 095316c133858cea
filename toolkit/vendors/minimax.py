"""MiniMax (V4): text, embeddings, speech, voice clones; most of its failures are HTTP 200."""

import hashlib
import re

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
    get_object,
    read_numbers,
    to_finite_number,
)
from toolkit.vendors._negotiation import ask_without_refused_fields, make_temperature_field
from toolkit.vendors._prices import load_models
from toolkit.vendors._transcripts import build_reference
from toolkit.vendors._wire import VendorWire

DEFAULT_VOICE = "English_Graceful_Lady"
_AUDIO_SETTING = {"format": "mp3", "sample_rate": 32000, "bitrate": 128000, "channel": 1}
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
    """Generate text by chat completions, with the model's thoughts apart from it.

    Some models refuse a temperature of 0, or above 1. A refused temperature is left out.

    The API has no way to ask for JSON, so a schema goes into the prompt and the JSON is extracted
    from the answer.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    optional = [] if operation.temperature is None else [make_temperature_field(operation)]
    answer = yield from ask_without_refused_fields(
        optional, access, lambda sent: _send_chat(operation, access, sent), _read_refusal
    )
    return _chat.parse_reply(answer, _WIRE.read(answer), operation)


def _send_chat(
    operation: TextRequest, access: Access, sent: frozenset[str]
) -> Flow[VendorResponse]:
    fields = _chat.build_body(operation, access, schema_in_prompt=True)
    if "temperature" not in sent:
        fields.pop("temperature", None)
    fields["reasoning_split"] = True
    if access.model.startswith("MiniMax-M3"):
        fields["thinking"] = {"type": "adaptive" if operation.reasoning_tokens else "disabled"}
    reader = None
    if operation.stream:
        fields |= STREAM_FIELDS
        reader = ChatStreamReader()
    return _WIRE.ask(access, "/v1/chat/completions", fields, stream=reader, instead=True)


def _read_refusal(answer: VendorResponse) -> str:
    """Return the message about an invalid parameter, or "" for any other answer."""
    try:
        body = answer.json()
    except ProviderError:
        return ""
    words = get_object(body, "base_resp").get("status_msg")
    is_refusal = _read_status_code(body) == _INVALID_PARAMETER_CODE
    return words if is_refusal and isinstance(words, str) else ""


def embed_texts(operation: EmbedRequest, access: Access) -> Flow[EmbedReply]:
    """Embed the first texts, up to 24, by the embeddings API.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    texts = operation.texts[:MAX_JSON_TEXTS]
    fields: Json = {
        "model": access.model,
        "texts": list(texts),
        "type": "query" if operation.purpose == "query" else "db",
    }
    answer, body = yield from _WIRE.post(access, "/v1/embeddings", fields)
    vectors = body.get("vectors")
    rows = vectors if isinstance(vectors, list) else []
    tokens = to_finite_number(body.get("total_tokens"))
    return (yield from run_in_thread(make_reply, answer, len(texts), rows, tokens))


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
    answer, body = yield from _WIRE.post(access, "/v1/t2a_v2", fields)
    audio = yield from run_in_thread(_decode_audio, get_object(body, "data").get("audio"))
    request_id = answer.read_label(body.get("trace_id")) or answer.request_id
    if not audio:
        raise answer.build_bad_response(
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
    file_id = yield from _upload_reference(operation, access)
    voice = build_voice_id(operation)
    fields = {"file_id": file_id, "voice_id": voice}
    answer = yield from _WIRE.ask(access, "/v1/voice_clone", fields)
    body = answer.json()
    is_new = answer.is_failure or _read_status_code(body) != _VOICE_EXISTS_CODE
    if is_new:
        _WIRE.read(answer)
    return CloneReply(
        voice=voice,
        model=access.model,
        vendor_request_id=answer.read_label(body.get("trace_id")) or answer.request_id,
        cost=Cost({"voices": 1.0 if is_new else 0.0}),
    )


def probe(access: Access) -> Flow[None]:
    """Check the key by a request for the list of voices, which is free.

    Raises:
        ProviderError: `PROVIDER_AUTH_FAILED` if the key is refused.
    """
    yield from _WIRE.post(access, "/v1/get_voice", {"voice_type": "system"})


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
    files = {"file": build_reference(operation, access)}
    form = {"purpose": "voice_clone"}
    answer, body = yield from _WIRE.post_form(access, "/v1/files/upload", form, files, free=True)
    file_id = get_object(body, "file").get("file_id")
    if isinstance(file_id, bool) or not isinstance(file_id, int):
        raise answer.build_bad_response(
            "minimax accepted the audio but returned no file id.",
        )
    return file_id


def _has_failed(answer: VendorResponse, body: Json) -> bool:
    return answer.is_failure or _read_status_code(body) != 0  # most failures have status 200


def _build_failure(answer: VendorResponse, body: Json) -> ProviderError:
    code = _read_status_code(body)
    words = get_object(body, "base_resp").get("status_msg")
    return answer.build_failure(
        words or get_object(body, "error").get("message"),
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


_WIRE = VendorWire(_build_failure, has_failed=_has_failed)
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
