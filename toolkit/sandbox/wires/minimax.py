"""The `minimax` wire: chat, speech, uploads and voice clones; most failures are HTTP 200."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.audio.recordings import Recording, measure_recording
from toolkit.sandbox.audio.speech import VoiceSettings, synthesize_speech
from toolkit.sandbox.event_streams import format_event
from toolkit.sandbox.forms import NotFormError, read_form
from toolkit.sandbox.json_http import (
    JsonObject,
    NotJsonError,
    get_bearer_key,
    has_json_type,
    make_response,
    read_json_object,
)
from toolkit.sandbox.keys import SANDBOX_KEYS
from toolkit.sandbox.state import EPOCH, SandboxState, get_request_digest, mark_billed
from toolkit.sandbox.text.chat import (
    SimulatedReply,
    count_tokens,
    generate_reply,
    iter_pieces,
    parse_turns,
)

MODEL_SUFFIX = "-sandbox"
CHAT_MODELS = ("MiniMax-M3", "MiniMax-M2.7", "MiniMax-M2.5")
STRICT_MODEL_PREFIX = "MiniMax-M2"  # they take no temperature of 0, and none above 1
SPEECH_MODELS = tuple(
    f"speech-{version}-{tier}" for version in ("2.8", "2.6", "02", "01") for tier in ("hd", "turbo")
)
VOICES = {
    "English_Graceful_Lady": "Graceful Lady",
    "English_Persuasive_Man": "Persuasive Man",
    "English_CalmWoman": "Calm Woman",
    "English_Trustworth_Man": "Trustworthy Man",
    "English_radiant_girl": "Radiant Girl",
    "English_Insightful_Speaker": "Insightful Speaker",
}
MAX_SPEECH_CHARS = 10_000  # a request must stay under it
CHAT_FIELDS = {
    "model": "string",
    "messages": "array",
    "stream": "boolean|null",
    "stream_options": "object|null",
    "max_tokens": "integer|null",
    "max_completion_tokens": "integer|null",
    "temperature": "number|null",
    "top_p": "number|null",
    "reasoning_split": "boolean|null",
    "thinking": "object|null",
    "tools": "array|null",
    "mask_sensitive_info": "boolean|null",
}
SPEECH_FIELDS = {
    "model": "string",
    "text": "string",
    "stream": "boolean|null",
    "stream_options": "object|null",
    "output_format": "string|null",
    "voice_setting": "object|null",
    "audio_setting": "object|null",
    "language_boost": "string|null",
    "subtitle_enable": "boolean|null",
    "pronunciation_dict": "object|null",
}
_VOICE_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{6,254}[A-Za-z0-9]")


@dataclass(slots=True)
class MiniMaxRefusalError(Exception):
    """An error in the vendor's format: HTTP 200 and a status code in the body."""

    code: int
    message: str


@dataclass(slots=True)
class _MiniMaxRecords:
    """The vendor's records."""

    files: dict[int, Recording] = field(default_factory=dict)
    clones: dict[str, int] = field(default_factory=dict)


_SUCCESS = {"status_code": 0, "status_msg": "success"}


class _MiniMaxWire:
    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._store = state.get_records(_MiniMaxRecords)

    async def complete_chat(self, request: Request) -> Response:
        body = await _read_body(request, CHAT_FIELDS, ("model", "messages"))
        model = _resolve_model(body["model"], CHAT_MODELS)
        _check_chat(body)
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        thinks = (body.get("thinking") or {}).get("type") != "disabled"
        turns = parse_turns(body["messages"])
        reply = generate_reply(turns, max_tokens=limit, reasoning_tokens=18 if thinks else 0)
        mark_billed(request)
        head = _build_head(get_request_digest(request), model)
        split = bool(body.get("reasoning_split"))
        if body.get("stream"):
            events = _stream_chunks(head, reply, thinks, split)
            return StreamingResponse(events, media_type="text/event-stream")
        return make_response(_build_completion(head, reply, thinks, split))

    async def create_speech(self, request: Request) -> Response:
        body = await _read_body(request, SPEECH_FIELDS, ("model", "text"))
        _resolve_model(body["model"], SPEECH_MODELS)
        if not body["text"].strip():
            raise MiniMaxRefusalError(2013, "invalid params, text is empty")
        if len(body["text"]) >= MAX_SPEECH_CHARS:
            raise MiniMaxRefusalError(
                2013, f"invalid params, text is {MAX_SPEECH_CHARS} characters or longer"
            )
        voicing = self._parse_voice_settings(body)
        if body.get("output_format") not in (None, "hex"):
            # A result link would have to be fetched from this app's own, unknowable, address.
            raise MiniMaxRefusalError(
                2013, "invalid params, the sandbox serves output_format hex only"
            )
        audio, length_ms = await run_in_threadpool(synthesize_speech, body["text"], voicing)
        mark_billed(request)
        whole = _build_speech_answer(
            body["text"], voicing, audio, length_ms, get_request_digest(request)[:32]
        )
        if body.get("stream"):
            return StreamingResponse(_stream_speech(body, whole), media_type="text/event-stream")
        return make_response(whole)

    def _parse_voice_settings(self, body: JsonObject) -> VoiceSettings:
        voice, audio = body.get("voice_setting") or {}, body.get("audio_setting") or {}
        voice_id = voice.get("voice_id")
        if not isinstance(voice_id, str) or not voice_id:
            raise MiniMaxRefusalError(2013, "invalid params, voice_setting.voice_id is missing")
        if voice_id not in VOICES and voice_id not in self._store.clones:
            raise MiniMaxRefusalError(2054, f"voice id not exist: {voice_id}")
        voicing = VoiceSettings(
            voice_id,
            speed=_read_number(voice, "speed", 1.0, 0.5, 2.0),
            volume=_read_number(voice, "vol", 1.0, 0.01, 10.0),
            pitch=int(_read_number(voice, "pitch", 0, -12, 12)),
            audio_format=_read_choice(audio, "format", "mp3", ("mp3", "wav", "pcm")),
            sample_rate=_read_choice(
                audio, "sample_rate", 32000, (8000, 16000, 22050, 24000, 32000, 44100)
            ),
            bitrate=_read_choice(audio, "bitrate", 128000, (32000, 64000, 128000, 256000)),
            channels=_read_choice(audio, "channel", 1, (1, 2)),
        )
        if (
            voicing.audio_format == "mp3"
            and voicing.sample_rate < 32000
            and voicing.bitrate > 128000
        ):
            raise MiniMaxRefusalError(
                2013, "invalid params, this bitrate needs a higher sample_rate"
            )
        return voicing

    async def upload_file(self, request: Request) -> Response:
        _check_key(request)
        try:
            form = await read_form(request)
        except NotFormError:
            raise MiniMaxRefusalError(2013, "invalid params, the body is not multipart") from None
        purpose = form.fields.get("purpose")
        if purpose not in ("voice_clone", "prompt_audio"):
            raise MiniMaxRefusalError(
                2013, "invalid params, purpose must be voice_clone or prompt_audio"
            )
        file = next(iter(form.files.get("file", ())), None)
        if file is None:
            raise MiniMaxRefusalError(2013, "invalid params, file is missing")
        if len(file.data) > 20 * 1024 * 1024:
            raise MiniMaxRefusalError(2013, "invalid params, file is larger than 20 MB")
        recording = measure_recording(file.data)
        if recording is None:
            raise MiniMaxRefusalError(2013, "invalid params, file must be mp3, m4a or wav")
        if purpose == "voice_clone" and not 10 <= recording.seconds <= 300:
            raise MiniMaxRefusalError(
                2037, "voice duration must be between 10 seconds and 5 minutes"
            )
        digest = self._state.compute_fresh_digest("minimax-file", get_request_digest(request))
        file_id = 10**14 + int(digest[:11], 16)
        self._store.files[file_id] = recording
        described = {
            "file_id": file_id,
            "bytes": len(file.data),
            "created_at": EPOCH,
            "filename": file.filename or "audio",
            "purpose": purpose,
        }
        return make_response({"file": described, "base_resp": _SUCCESS})

    async def clone_voice(self, request: Request) -> Response:
        fields = {"file_id": "integer", "voice_id": "string", "text": "string|null"}
        fields |= {"model": "string|null", "need_noise_reduction": "boolean|null"}
        fields |= {"need_volume_normalization": "boolean|null", "clone_prompt": "object|null"}
        fields |= {"accuracy": "number|null", "language_boost": "string|null"}
        body = await _read_body(request, fields, ("file_id", "voice_id"))
        if body["file_id"] not in self._store.files:
            raise MiniMaxRefusalError(2013, "invalid params, file_id is unknown")
        voice_id = body["voice_id"]
        if not _VOICE_ID.fullmatch(voice_id):
            raise MiniMaxRefusalError(2013, "invalid params, voice_id breaks the naming rules")
        if voice_id in VOICES or voice_id in self._store.clones:
            raise MiniMaxRefusalError(2039, "voice clone voice id duplicate")
        text = body.get("text")
        if text is not None and (len(text) > 1000 or not body.get("model")):
            raise MiniMaxRefusalError(
                2013, "invalid params, text needs a model and at most 1000 characters"
            )
        if body.get("model") is not None:
            _resolve_model(body["model"], SPEECH_MODELS)
        self._store.clones[voice_id] = body["file_id"]
        mark_billed(request)
        demo = f"https://sandbox.invalid/demo/{voice_id}.mp3" if text else ""
        return make_response({"input_sensitive": False, "demo_audio": demo, "base_resp": _SUCCESS})

    async def list_voices(self, request: Request) -> Response:
        body = await _read_body(request, {"voice_type": "string"}, ("voice_type",))
        kinds = ("system", "voice_cloning", "voice_generation", "all")
        wanted = _read_choice(body, "voice_type", "all", kinds)
        system = [
            {"voice_id": voice, "voice_name": name, "description": [f"{name}, a sandbox voice"]}
            for voice, name in VOICES.items()
        ]
        cloned = [
            {"voice_id": voice, "description": [], "created_time": "2026-11-20"}
            for voice in self._store.clones
        ]
        reply: JsonObject = {"base_resp": _SUCCESS}
        if wanted in ("system", "all"):
            reply["system_voice"] = system
        if wanted in ("voice_cloning", "all"):
            reply["voice_cloning"] = cloned
        if wanted in ("voice_generation", "all"):
            reply["voice_generation"] = []
        return make_response(reply)


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    wire = _MiniMaxWire(state)

    def guard_handler(handler: Any) -> Any:
        async def endpoint(request: Request) -> Response:
            try:
                reply: Response = await handler(request)
            except MiniMaxRefusalError as refusal:
                failed = {"status_code": refusal.code, "status_msg": refusal.message}
                trace = get_request_digest(request)[:32]
                return make_response(
                    {"trace_id": trace, "base_resp": failed}, headers={"Trace-Id": trace}
                )
            reply.headers["Trace-Id"] = get_request_digest(request)[:32]
            return reply

        return endpoint

    handlers = {
        "/v1/chat/completions": wire.complete_chat,
        "/v1/t2a_v2": wire.create_speech,
        "/v1/files/upload": wire.upload_file,
        "/v1/voice_clone": wire.clone_voice,
        "/v1/get_voice": wire.list_voices,
    }
    return [
        Route(path, guard_handler(handler), methods=["POST"]) for path, handler in handlers.items()
    ]


def _check_key(request: Request) -> None:
    key = get_bearer_key(request)
    if key is None:
        raise MiniMaxRefusalError(1004, "login fail: no API secret key in the Authorization header")
    if key != SANDBOX_KEYS["MINIMAX_API_KEY"]:
        raise MiniMaxRefusalError(2049, "invalid api key")


async def _read_body(
    request: Request, kinds: dict[str, str], needed: tuple[str, ...]
) -> JsonObject:
    _check_key(request)
    try:
        body = await read_json_object(request)
    except NotJsonError:
        raise MiniMaxRefusalError(2013, "invalid params, the body is not a JSON object") from None
    for name in needed:
        if body.get(name) is None:
            raise MiniMaxRefusalError(2013, f"invalid params, {name} is missing")
    for name, value in body.items():
        if name in kinds and not has_json_type(value, kinds[name]):
            raise MiniMaxRefusalError(2013, f"invalid params, {name} is of the wrong type")
    return body


def _resolve_model(model: str, models: tuple[str, ...]) -> str:
    bare = model.removesuffix(MODEL_SUFFIX)
    if bare not in models:
        raise MiniMaxRefusalError(2013, f"invalid params, unknown model '{model}'")
    return bare


def _read_number(body: JsonObject, name: str, default: float, low: float, high: float) -> float:
    value = body.get(name)
    value = default if value is None else value
    if not has_json_type(value, "number") or not low <= value <= high:
        raise MiniMaxRefusalError(2013, f"invalid params, {name} must be between {low} and {high}")
    return float(value)


def _read_choice(body: JsonObject, name: str, default: Any, options: tuple[Any, ...]) -> Any:
    value = body.get(name)
    value = default if value is None else value
    if value not in options or isinstance(value, bool):
        raise MiniMaxRefusalError(2013, f"invalid params, {name} must be one of {options}")
    return value


def _check_chat(body: JsonObject) -> None:
    messages = body["messages"]
    if not messages:
        raise MiniMaxRefusalError(2013, "invalid params, messages is empty")
    for one in messages:
        known = isinstance(one, dict) and one.get("role") in ("system", "user", "assistant", "tool")
        if not known or not has_json_type(one.get("content"), "string|array"):
            raise MiniMaxRefusalError(
                2013, "invalid params, a message lacks a known role or its content"
            )
    _read_number(body, "temperature", 1.0, 0.0, 2.0)
    wished = body.get("temperature")
    if body["model"].startswith(STRICT_MODEL_PREFIX) and wished is not None and not 0 < wished <= 1:
        raise MiniMaxRefusalError(2013, "invalid params, temperature must be in (0.0, 1.0]")
    _read_number(body, "top_p", 0.95, 0.0, 1.0)
    for name in ("max_tokens", "max_completion_tokens"):
        _read_number(body, name, 1, 1, 1_000_000)
    if sum(count_tokens(turn.text) for turn in parse_turns(messages)) > 200_000:
        raise MiniMaxRefusalError(2013, "invalid params, context window exceeds limit")


def _build_head(digest: str, model: str) -> JsonObject:
    created = EPOCH + int(digest[:4], 16)
    return {"id": digest[:32], "created": created, "model": model + MODEL_SUFFIX}


def _build_completion(
    head: JsonObject, reply: SimulatedReply, thinks: bool, split: bool
) -> JsonObject:
    message: JsonObject = {"role": "assistant", "name": "MiniMax AI", "audio_content": ""}
    # Without reasoning_split the thought stands inside the content, as on the vendor's wire.
    shown = thinks and not split
    message["content"] = (
        f"<think>\n{reply.reasoning}\n</think>\n\n{reply.text}" if shown else reply.text
    )
    if thinks and split:
        message["reasoning_content"] = reply.reasoning
        detail = {"type": "reasoning.text", "id": "reasoning-text-1", "index": 0}
        message["reasoning_details"] = [{**detail, "text": reply.reasoning}]
    choice = {"finish_reason": reply.finish, "index": 0, "message": message}
    return {
        **head,
        "object": "chat.completion",
        "choices": [choice],
        "usage": _build_usage(reply),
        "input_sensitive": False,
        "output_sensitive": False,
        "input_sensitive_type": 0,
        "output_sensitive_type": 0,
        "output_sensitive_int": 0,
        "base_resp": {"status_code": 0, "status_msg": ""},
    }


def _build_usage(reply: SimulatedReply) -> JsonObject:
    return {
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
        "total_characters": 0,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "completion_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
    }


async def _stream_chunks(
    head: JsonObject, reply: SimulatedReply, thinks: bool, split: bool
) -> AsyncIterator[str]:
    head = {**head, "object": "chat.completion.chunk"}

    def chunk(delta: JsonObject, finish: str | None = None) -> JsonObject:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    whole = _build_completion(head, reply, thinks, split)["choices"][0]["message"]
    if "reasoning_content" in whole:
        yield format_event(
            chunk({"role": "assistant", "reasoning_content": whole["reasoning_content"]})
        )
    for piece in iter_pieces(whole["content"]):
        yield format_event(chunk({"role": "assistant", "content": piece}))
    yield format_event({**chunk({}, reply.finish), "usage": _build_usage(reply)})
    yield format_event("[DONE]")


def _build_speech_answer(
    text: str, voicing: VoiceSettings, audio: bytes, length: int, trace: str
) -> JsonObject:
    info = {
        "audio_length": length,
        "audio_sample_rate": voicing.sample_rate,
        "audio_size": len(audio),
        "bitrate": voicing.bitrate,
        "word_count": len(text.split()),
        "invisible_character_ratio": 0,
        "usage_characters": len(text),
        "audio_format": voicing.audio_format,
        "audio_channel": voicing.channels,
    }
    data = {"audio": audio.hex(), "status": 2, "ced": ""}
    return {"data": data, "extra_info": info, "trace_id": trace, "base_resp": _SUCCESS}


async def _stream_speech(body: JsonObject, whole: JsonObject) -> AsyncIterator[str]:
    step = 32_768
    audio = whole["data"]["audio"]
    for start in range(0, len(audio), step):
        part = {"audio": audio[start : start + step], "status": 1, "ced": ""}
        yield format_event({"data": part, "trace_id": whole["trace_id"], "base_resp": _SUCCESS})
    # The last event repeats the whole recording unless the caller opts out.
    if (body.get("stream_options") or {}).get("exclude_aggregated_audio"):
        whole = {**whole, "data": {**whole["data"], "audio": ""}}
    yield format_event(whole)
