"""The `minimax` wire: chat, speech, uploads and voice clones; most failures are HTTP 200."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from pydantic import Field, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute

from toolkit.sandbox.audio.speech import VoiceSettings, synthesize_speech
from toolkit.sandbox.audio.transcripts import Recording, measure_recording
from toolkit.sandbox.chat_tools import ChatTool, NamedChoice, build_calls, make_offer, split_calls
from toolkit.sandbox.event_streams import format_event
from toolkit.sandbox.json_http import (
    JsonObject,
    RefusalError,
    RequestBody,
    build_checked_routes,
    get_bearer_key,
    read_body,
    read_form,
    refuse_first_fault,
)
from toolkit.sandbox.pictures.sight import count_patches
from toolkit.sandbox.state import EPOCH, SandboxState, get_request_digest, mark_billed
from toolkit.sandbox.text.chat import (
    ChatMessage,
    ChatTurn,
    SimulatedReply,
    count_tokens,
    generate_reply,
    iter_pieces,
    parse_turns,
)
from toolkit.sandbox.text.vectors import embed_text
from toolkit.sandbox.vendor_paths import SANDBOX_KEYS

MODEL_SUFFIX = "-sandbox"
CHAT_MODELS = ("MiniMax-M3", "MiniMax-M2.7", "MiniMax-M2.5")
_count_picture = partial(count_patches, patch=32, longest=2_048, most=1_024)
EMBEDDING_MODELS, EMBEDDING_DIMENSIONS = ("embo-01",), 1_536
STRICT_MODEL_PREFIX = "MiniMax-M2"  # these models refuse a temperature of 0, or above 1
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


class MiniMaxMessage(ChatMessage):
    """A message of a conversation in the body of a request for text."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[Any] | None = None

    @model_validator(mode="after")
    def _check_content(self) -> "MiniMaxMessage":
        if self.content is None and not (self.model_extra or {}).get("tool_calls"):
            raise ValueError("content is required")
        return self


class MiniMaxChatRequest(RequestBody, extra="ignore"):
    """The body of a request for a chat completion."""

    model: str
    messages: list[MiniMaxMessage] = Field(min_length=1)
    stream: bool | None = None
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(None, ge=1, le=1_000_000)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    reasoning_split: bool | None = None
    thinking: JsonObject | None = None
    tools: list[ChatTool] | None = None
    tool_choice: Literal["auto", "none", "required"] | NamedChoice | None = None


class MiniMaxEmbedRequest(RequestBody, extra="ignore"):
    """The body of a request for embeddings."""

    model: str
    texts: list[str] = Field(min_length=1, max_length=4_096)
    type: Literal["db", "query"]


class VoiceSetting(RequestBody, extra="ignore"):
    """The voice of speech, and how it speaks."""

    voice_id: str = Field(min_length=1)
    speed: float | None = Field(None, ge=0.5, le=2)
    volume: float | None = Field(None, ge=0.01, le=10, alias="vol")
    pitch: int | None = Field(None, ge=-12, le=12)


class AudioSetting(RequestBody, extra="ignore"):
    """The format of speech."""

    audio_format: Literal["mp3", "wav", "pcm"] | None = Field(None, alias="format")
    sample_rate: Literal[8000, 16000, 22050, 24000, 32000, 44100] | None = None
    bitrate: Literal[32000, 64000, 128000, 256000] | None = None
    channels: Literal[1, 2] | None = Field(None, alias="channel")


class MiniMaxSpeechRequest(RequestBody, extra="ignore"):
    """The body of a request for speech.

    The only output format is hexadecimal digits, because a link would need this app's own address,
    which the app cannot know.
    """

    model: str
    text: str = Field(pattern=r"\S", max_length=9_999)
    output_format: Literal["hex"] | None = None
    voice_setting: VoiceSetting
    audio_setting: AudioSetting | None = None


class VoiceCloneRequest(RequestBody, extra="ignore"):
    """The body of a request for a voice cloned from an uploaded recording."""

    file_id: int
    voice_id: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{6,254}[A-Za-z0-9]$")
    text: str | None = Field(None, max_length=1000)
    model: str | None = None


class VoiceListRequest(RequestBody, extra="ignore"):
    """The body of a request for the list of voices."""

    voice_type: Literal["system", "voice_cloning", "voice_generation", "all"]


class MiniMaxRefusalError(RefusalError):
    """A refusal in the vendor's format: HTTP 200 and a status code in the body."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message, 200)
        self.base_resp = {"status_code": code, "status_msg": message}

    def build_response(self, request: Request) -> Response:
        """Build the response, which has the id of the request."""
        trace = get_request_digest(request)[:32]
        return JSONResponse({"trace_id": trace, "base_resp": self.base_resp})


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
        body = await read_body(request, MiniMaxChatRequest, _refuse_body)
        model = _resolve_model(body.model, CHAT_MODELS)
        try:
            turns, offer = parse_turns(body.messages), make_offer(body.tools, body.tool_choice)
        except (KeyError, TypeError, ValueError) as error:
            raise _refuse_params(str(error)) from None
        _check_chat(body, turns)
        thinks = (body.thinking or {}).get("type") != "disabled"
        limit = body.max_completion_tokens or body.max_tokens
        reply = generate_reply(
            turns,
            max_tokens=limit,
            reasoning_tokens=18 if thinks else 0,
            offer=offer,
            count_picture=_count_picture,
        )
        mark_billed(request)
        head = _build_head(get_request_digest(request), model)
        split = bool(body.reasoning_split)
        if body.stream:
            events = _stream_chunks(head, reply, thinks, split)
            return StreamingResponse(events, media_type="text/event-stream")
        return JSONResponse(_build_completion(head, reply, thinks, split))

    async def embed_texts(self, request: Request) -> Response:
        body = await read_body(request, MiniMaxEmbedRequest, _refuse_body)
        _resolve_model(body.model, EMBEDDING_MODELS)
        mark_billed(request)
        return JSONResponse(
            {
                "vectors": [embed_text(text, EMBEDDING_DIMENSIONS) for text in body.texts],
                "total_tokens": sum(map(count_tokens, body.texts)),
                "base_resp": _SUCCESS,
            }
        )

    async def create_speech(self, request: Request) -> Response:
        body = await read_body(request, MiniMaxSpeechRequest, _refuse_body)
        _resolve_model(body.model, SPEECH_MODELS)
        voicing = self._parse_voice_settings(body)
        audio, length_ms = await run_in_threadpool(synthesize_speech, body.text, voicing)
        mark_billed(request)
        trace = get_request_digest(request)[:32]
        return JSONResponse(_build_speech_answer(body.text, voicing, audio, length_ms, trace))

    def _parse_voice_settings(self, body: MiniMaxSpeechRequest) -> VoiceSettings:
        voice, audio = body.voice_setting, body.audio_setting or AudioSetting()
        if voice.voice_id not in VOICES and voice.voice_id not in self._store.clones:
            raise MiniMaxRefusalError(2054, f"voice id not exist: {voice.voice_id}")
        settings = {**voice.model_dump(exclude_none=True), **audio.model_dump(exclude_none=True)}
        voicing = VoiceSettings(**settings)
        is_low = voicing.sample_rate < 32000 and voicing.bitrate > 128000
        if voicing.audio_format == "mp3" and is_low:
            raise _refuse_params("this bitrate needs a higher sample_rate")
        return voicing

    async def upload_file(self, request: Request) -> Response:
        form = await read_form(request, lambda: _refuse_params("the body is not multipart"))
        purpose = form.fields.get("purpose")
        if purpose not in ("voice_clone", "prompt_audio"):
            raise _refuse_params("purpose must be voice_clone or prompt_audio")
        file = next(iter(form.files.get("file", ())), None)
        if file is None:
            raise _refuse_params("file is missing")
        if len(file.data) > 20 * 1024 * 1024:
            raise _refuse_params("file is larger than 20 MB")
        recording = measure_recording(file.data)
        if recording is None:
            raise _refuse_params("file must be mp3, m4a or wav")
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
        return JSONResponse({"file": described, "base_resp": _SUCCESS})

    async def clone_voice(self, request: Request) -> Response:
        body = await read_body(request, VoiceCloneRequest, _refuse_body)
        if body.file_id not in self._store.files:
            raise _refuse_params("file_id is unknown")
        if body.voice_id in VOICES or body.voice_id in self._store.clones:
            raise MiniMaxRefusalError(2039, "voice clone voice id duplicate")
        if body.text is not None and not body.model:
            raise _refuse_params("text needs a model")
        if body.model is not None:
            _resolve_model(body.model, SPEECH_MODELS)
        self._store.clones[body.voice_id] = body.file_id
        mark_billed(request)
        demo = f"https://sandbox.invalid/demo/{body.voice_id}.mp3" if body.text else ""
        return JSONResponse({"input_sensitive": False, "demo_audio": demo, "base_resp": _SUCCESS})

    async def list_voices(self, request: Request) -> Response:
        kind = (await read_body(request, VoiceListRequest, _refuse_body)).voice_type
        system = [
            {"voice_id": voice, "voice_name": name, "description": [f"{name}, a sandbox voice"]}
            for voice, name in VOICES.items()
        ]
        cloned = [
            {"voice_id": voice, "description": [], "created_time": "2026-11-20"}
            for voice in self._store.clones
        ]
        reply: JsonObject = {"base_resp": _SUCCESS}
        if kind in ("system", "all"):
            reply["system_voice"] = system
        if kind in ("voice_cloning", "all"):
            reply["voice_cloning"] = cloned
        if kind in ("voice_generation", "all"):
            reply["voice_generation"] = []
        return JSONResponse(reply)


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    wire = _MiniMaxWire(state)
    return build_checked_routes(
        _check_key,
        (
            ("POST", "/v1/chat/completions", wire.complete_chat),
            ("POST", "/v1/embeddings", wire.embed_texts),
            ("POST", "/v1/t2a_v2", wire.create_speech),
            ("POST", "/v1/files/upload", wire.upload_file),
            ("POST", "/v1/voice_clone", wire.clone_voice),
            ("POST", "/v1/get_voice", wire.list_voices),
        ),
    )


def _check_key(request: Request) -> None:
    key = get_bearer_key(request)
    if key is None:
        raise MiniMaxRefusalError(1004, "login fail: no API secret key in the Authorization header")
    if key != SANDBOX_KEYS["MINIMAX_API_KEY"]:
        raise MiniMaxRefusalError(2049, "invalid api key")


def _refuse_params(message: str) -> MiniMaxRefusalError:
    return MiniMaxRefusalError(2013, f"invalid params, {message}")


_refuse_body = refuse_first_fault(_refuse_params, "the body is not a JSON object")


def _resolve_model(model: str, models: tuple[str, ...]) -> str:
    bare = model.removesuffix(MODEL_SUFFIX)
    if bare not in models:
        raise _refuse_params(f"unknown model '{model}'")
    return bare


def _check_chat(body: MiniMaxChatRequest, turns: list[ChatTurn]) -> None:
    is_strict = body.model.startswith(STRICT_MODEL_PREFIX)
    if is_strict and body.temperature is not None and not 0 < body.temperature <= 1:
        raise _refuse_params("temperature must be in (0.0, 1.0]")
    if sum(count_tokens(turn.text) for turn in turns) > 200_000:
        raise _refuse_params("context window exceeds limit")


def _build_head(digest: str, model: str) -> JsonObject:
    created = EPOCH + int(digest[:4], 16)
    return {"id": digest[:32], "created": created, "model": model + MODEL_SUFFIX}


def _build_completion(
    head: JsonObject, reply: SimulatedReply, thinks: bool, split: bool
) -> JsonObject:
    message: JsonObject = {"role": "assistant", "name": "MiniMax AI", "audio_content": ""}
    # Without reasoning_split the content contains the thought, as on the vendor's wire.
    has_thought = thinks and not split
    message["content"] = (
        f"<think>\n{reply.reasoning}\n</think>\n\n{reply.text}" if has_thought else reply.text
    )
    if thinks and split:
        message["reasoning_content"] = reply.reasoning
        detail = {"type": "reasoning.text", "id": "reasoning-text-1", "index": 0}
        message["reasoning_details"] = [{**detail, "text": reply.reasoning}]
    if reply.calls:
        message["tool_calls"] = build_calls(reply, head["id"])
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

    message = _build_completion(head, reply, thinks, split)["choices"][0]["message"]
    if "reasoning_content" in message:
        yield format_event(
            chunk({"role": "assistant", "reasoning_content": message["reasoning_content"]})
        )
    for piece in iter_pieces(message["content"]):
        yield format_event(chunk({"role": "assistant", "content": piece}))
    for delta in split_calls(message.get("tool_calls", ())):
        yield format_event(chunk(delta))
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
