"""The `openai` wire: chat, embeddings, transcripts, models, as strict as the vendor's own."""

import math
import re
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute

from toolkit.sandbox.audio.transcripts import HeardRecording, hear_recording
from toolkit.sandbox.chat_tools import ChatTool, NamedChoice, build_calls, make_offer
from toolkit.sandbox.event_streams import StreamOptions, stream_completion
from toolkit.sandbox.json_http import (
    B,
    BodyFault,
    JsonObject,
    NotJsonError,
    RefusalError,
    RequestBody,
    build_checked_routes,
    get_bearer_key,
    parse_body,
    read_form,
    read_json_object,
)
from toolkit.sandbox.pictures.sight import count_patches
from toolkit.sandbox.state import EPOCH, SandboxState, get_effects, get_request_digest, mark_billed
from toolkit.sandbox.text.chat import (
    ChatMessage,
    SimulatedReply,
    count_tokens,
    generate_reply,
    parse_turns,
)
from toolkit.sandbox.text.vectors import embed_text, spell_vector
from toolkit.sandbox.vendor_paths import SANDBOX_KEYS, CompatibleVendor
from toolkit.sandbox.wires.openai_logprobs import build_logprobs
from toolkit.sandbox.wires.openai_prompt_cache import LEADING_FIELDS, CacheUse, PromptCache

VENDOR = CompatibleVendor("openai-api", SANDBOX_KEYS["OPENAI_API_KEY"], ())
MODEL_SUFFIX = "-sandbox"
CONTEXT_TOKENS = 128_000
_count_picture = partial(count_patches, patch=32, longest=2_048, most=2_500, factor=1.2)
# By model, whether its generation refuses max_tokens and a chosen temperature.
MODELS = {
    "gpt-6-luna": True,
    "gpt-6.1-terra": True,
    "gpt-6.1-sol": True,
    "gpt-5.6-luna": True,
    "gpt-5.4-mini": True,
    "gpt-4.1": False,
    "gpt-4.1-mini": False,
    "gpt-4o": False,
    "gpt-4o-mini": False,
}
ALWAYS_REASONING = frozenset(("gpt-6.1-sol",))
# Models that write their prompts to the prompt cache, unless the request forbids it.
CACHING_MODELS = frozenset(("gpt-6-luna", "gpt-6.1-terra", "gpt-6.1-sol", "gpt-5.6-luna"))
# The tier that serves a request, by the tier that it asks for; None is the project's.
SERVICE_TIERS: Mapping[str, str | None] = {
    "auto": None,
    "default": "default",
    "flex": "flex",
    "scale": "default",
    "priority": "priority",
    "fast": "priority",
}


# The length of their vectors, by model.
EMBEDDING_MODELS = {"text-embedding-3-small": 1_536, "text-embedding-3-large": 3_072}
OTHER_DIMENSIONS = 1_024  # of the models of other vendors
# Whether their answers may have times, by model.
TRANSCRIBERS = {"whisper-1": True, "gpt-transcribe": False}
MAX_AUDIO_BYTES = 25_000_000
_TRANSCRIPT_FORMATS = {True: ("json", "verbose_json"), False: ("json",)}
_TRANSCRIPT_FIELDS = frozenset(("model", "response_format", "language", "prompt", "temperature"))
MAX_EMBEDDED_TEXTS, MAX_EMBEDDED_TOKENS = 2_048, 300_000


class OpenAIMessage(ChatMessage):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]


class PromptCacheOptions(RequestBody, extra="ignore"):
    """Options of the prompt cache."""

    mode: Literal["implicit", "explicit"] | None = None


class JsonSchemaFormat(RequestBody, extra="ignore"):
    """A JSON schema that the answer must match."""

    name: str
    json_schema: JsonObject = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(RequestBody, extra="ignore"):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None


class ChatRequest(RequestBody):
    """The body of a request for a chat completion."""

    model: str
    messages: list[OpenAIMessage] = Field(min_length=1)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    n: int | None = Field(None, ge=1, le=8)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    verbosity: str | None = None
    tools: list[ChatTool] | None = None
    tool_choice: Literal["auto", "none", "required"] | NamedChoice | None = None
    parallel_tool_calls: bool | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    logit_bias: JsonObject | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: PromptCacheOptions | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority", "fast"] | None = None
    store: bool | None = None
    metadata: JsonObject | None = None
    modalities: list[Any] | None = None


class EmbeddingRequest(RequestBody):
    """The body of a request for embeddings."""

    model: str
    input: str | list[str]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = Field(None, ge=1)
    user: str | None = None


# Reads and writes the prompt cache for a request to a model; None if the server has no cache.
UseCache: TypeAlias = Callable[[str, ChatRequest], CacheUse | None]
# The vendor's codes of faults that pydantic names otherwise.
_FAULT_CODES = {
    "extra_forbidden": "unknown_parameter",
    "missing": "missing_required_parameter",
    "literal_error": "invalid_value",
    "too_short": "empty_array",
}
_ERROR_TYPES = {402: "insufficient_quota", 429: "rate_limit_error"}
_INTEGERS = ("n", "max_tokens", "max_completion_tokens")


def refuse(
    status: int, message: str, param: str | None = None, code: str | None = None
) -> RefusalError:
    """Make a refusal in the vendor's format."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    kind = _ERROR_TYPES.get(status, kind)
    error = {"message": message, "type": kind, "param": param, "code": code}
    return RefusalError({"error": error}, status)


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    return build_original_routes(state, VENDOR)


def build_original_routes(state: SandboxState, vendor: CompatibleVendor) -> list[BaseRoute]:
    """Build the routes of a vendor that serves OpenAI's own models."""
    cache = state.get_records(PromptCache)

    def use_cache(model: str, body: ChatRequest) -> CacheUse:
        if model in CACHING_MODELS:
            leading = body.model_dump(include=LEADING_FIELDS)
            options = body.prompt_cache_options or PromptCacheOptions()
            explicit = options.mode == "explicit"
            return cache.use(leading, body.messages, state.clock(), explicit=explicit)
        if body.prompt_cache_options is not None:
            message = "'prompt_cache_options' needs gpt-5.6 or a later model."
            raise refuse(400, message, "prompt_cache_options", "unsupported_parameter")
        return CacheUse()

    return _build_wire_routes(vendor, MODELS, EMBEDDING_MODELS, use_cache)


def build_compatible_routes(vendor: CompatibleVendor) -> list[BaseRoute]:
    """Build the routes of another vendor that speaks this wire; its models accept every field."""
    served = dict.fromkeys(vendor.models, False)
    lengths = dict.fromkeys(vendor.embeddings, OTHER_DIMENSIONS)
    return _build_wire_routes(vendor, served, lengths, lambda _model, _body: None)


def _build_wire_routes(
    vendor: CompatibleVendor,
    served: Mapping[str, bool],
    lengths: Mapping[str, int],
    use_cache: UseCache,
) -> list[BaseRoute]:
    async def list_models(_request: Request) -> Response:
        rows = [_describe_model(name) for name in served]
        if not vendor.key:  # a local server lists all of its models
            rows += [_describe_model(name) | {"capabilities": ["embedding"]} for name in lengths]
        return JSONResponse({"object": "list", "data": rows})

    async def complete_chat(request: Request) -> Response:
        body = await _read_dialect(request, ChatRequest, vendor)
        if vendor.reasoning_member:
            _check_reasoning(body.messages, vendor.reasoning_member)
        if vendor.names.get("stream_options") == "":
            body.stream_options = StreamOptions(include_usage=True)
        host = {vendor.upstream: "Sandbox"} if vendor.upstream else {}
        return await _complete_chat(request, body, served, use_cache, host)

    async def embed_texts(request: Request) -> Response:
        body = await _read_dialect(request, EmbeddingRequest, vendor)
        return await _embed_texts(request, body, lengths)

    async def transcribe_audio(request: Request) -> Response:
        is_own = served is MODELS
        known = TRANSCRIBERS if is_own else dict.fromkeys(vendor.transcribers, True)
        return await _transcribe_audio(request, known)

    return build_checked_routes(
        partial(check_key, vendor),
        (
            ("GET", f"{vendor.base_path}/models", list_models),
            ("POST", f"{vendor.base_path}/chat/completions", complete_chat),
            ("POST", f"{vendor.base_path}/embeddings", embed_texts),
            ("POST", f"{vendor.base_path}/audio/transcriptions", transcribe_audio),
        ),
    )


def check_key(vendor: CompatibleVendor, request: Request) -> None:
    """Check the key of a request, if the vendor needs one."""
    if not vendor.key:
        return
    bearer_key = get_bearer_key(request) or request.headers.get(vendor.key_header)
    if bearer_key is None:
        raise refuse(401, "No API key was given; send it as `Authorization: Bearer <key>`.")
    if bearer_key != vendor.key:
        raise refuse(401, "The API key given is not correct.", code="invalid_api_key")


def _describe_model(name: str) -> JsonObject:
    return {"id": name + MODEL_SUFFIX, "object": "model", "created": EPOCH, "owned_by": "sandbox"}


def _resolve_model(name: str, served: Container[str]) -> str:
    bare = name.removesuffix(MODEL_SUFFIX)
    if bare not in served:
        message = f"The model `{name}` does not exist or you do not have access to it."
        raise refuse(404, message, code="model_not_found")
    return bare


async def _read_dialect(request: Request, model: type[B], vendor: CompatibleVendor) -> B:
    """Read a body whose fields have the vendor's names."""
    try:
        fields = await read_json_object(request)
    except NotJsonError:
        raise refuse_body([]) from None
    renamed = {own: name for name, own in vendor.names.items() if own}
    for name in fields:
        if vendor.names.get(name) and name not in renamed:
            message = f"Extra inputs are not permitted: '{name}'."
            raise refuse(422, message, name, "extra_forbidden")
    ignored = {name for name, own in vendor.names.items() if not own} | vendor.extra
    kept = {renamed.get(name, name): v for name, v in fields.items() if name not in ignored}
    return parse_body(kept, model, refuse_body)


async def _complete_chat(
    request: Request,
    body: ChatRequest,
    served: Mapping[str, bool],
    use_cache: UseCache,
    host: Mapping[str, str],
) -> Response:
    model = _resolve_model(body.model, served)
    if served[model]:
        _check_newer_model(body, model)
    for place, turn in enumerate(body.messages):
        if turn.content is None and turn.role != "assistant":
            fault = BodyFault(("messages", place, "content"), "missing", "Field required", None)
            raise refuse_body([fault])
    schema, want_json = _parse_response_format(body)
    reasoning = {"low": 24, "medium": 64, "high": 192}.get(body.reasoning_effort or "", 0)
    try:
        turns, offer = parse_turns(body.messages), make_offer(body.tools, body.tool_choice)
    except (KeyError, TypeError, ValueError) as error:
        raise refuse(400, str(error), "messages", "invalid_value") from None
    _check_tool_answers(body.messages)
    reply = generate_reply(
        turns,
        schema=schema,
        want_json=want_json,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        reasoning_tokens=reasoning if served[model] else 0,
        offer=offer,
        stop=[body.stop] if isinstance(body.stop, str) else body.stop or (),
        count_picture=_count_picture,
    )
    if reply.prompt_tokens > CONTEXT_TOKENS:
        message = f"This model's context is {CONTEXT_TOKENS} tokens; the messages are longer."
        raise refuse(400, message, "messages", "context_length_exceeded")
    cache = use_cache(model, body)
    mark_billed(request)
    tier = SERVICE_TIERS[body.service_tier or "auto"] or get_effects(request).service_tier
    head = {**_build_head(get_request_digest(request), model, tier or "default"), **host}
    if body.stream:
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        usage = _build_usage(reply, 1, cache) if with_usage else None
        head["object"] = "chat.completion.chunk"
        events = stream_completion(head, reply, usage, calls=build_calls(reply, head["id"][9:]))
        return StreamingResponse(events, media_type="text/event-stream")
    completion = _build_completion(head, reply, body.n or 1, cache)
    if body.logprobs and not reply.calls:
        logprobs = build_logprobs(reply.text, get_request_digest(request))
        for choice in completion["choices"]:
            choice["logprobs"] = logprobs
    return JSONResponse(completion)


async def _embed_texts(
    request: Request, body: EmbeddingRequest, lengths: Mapping[str, int]
) -> Response:
    model = _resolve_model(body.model, lengths)
    longest = lengths[model]
    texts = [body.input] if isinstance(body.input, str) else body.input
    if not texts or "" in texts or len(texts) > MAX_EMBEDDED_TEXTS:
        raise refuse(400, "'$.input' is invalid.", "input")
    if (body.dimensions or 0) > longest:
        message = f"Invalid value for 'dimensions': at most {longest} are supported."
        raise refuse(400, message, "dimensions")
    tokens = sum(map(count_tokens, texts))
    if tokens > MAX_EMBEDDED_TOKENS:
        message = f"Requested {tokens} tokens, max {MAX_EMBEDDED_TOKENS} tokens per request."
        raise refuse(400, message, code="max_tokens_per_request")
    mark_billed(request)
    rows: list[JsonObject] = []
    for index, text in enumerate(texts):
        vector = embed_text(text, body.dimensions or longest)
        embedding = spell_vector(vector, in_base64=body.encoding_format == "base64")
        rows.append({"object": "embedding", "index": index, "embedding": embedding})
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    answer = {"object": "list", "data": rows, "model": model + MODEL_SUFFIX, "usage": usage}
    if lengths is not EMBEDDING_MODELS:
        answer["id"] = get_request_digest(request)[:32]  # Mistral's SDK requires it
    return JSONResponse(answer)


async def _transcribe_audio(request: Request, transcribers: Mapping[str, bool]) -> Response:
    form = await read_form(request, lambda: refuse(400, "Could not parse multipart form"))
    for name in form.fields.keys() - _TRANSCRIPT_FIELDS:
        raise refuse(400, f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    model = form.fields.get("model", "").removesuffix(MODEL_SUFFIX)
    if model not in transcribers:
        raise refuse(404, f"The model `{model}` does not exist.", code="model_not_found")
    kind = form.fields.get("response_format", "json")
    if kind not in _TRANSCRIPT_FORMATS[transcribers[model]]:
        message = f"response_format '{kind}' is not compatible with model '{model}'."
        raise refuse(400, message, "response_format", "unsupported_value")
    file = next(iter(form.files.get("file", ())), None)
    if file is None:
        message = "Missing required parameter: 'file'."
        raise refuse(400, message, "file", "missing_required_parameter")
    if len(file.data) > MAX_AUDIO_BYTES:
        raise refuse(413, f"Maximum content size limit ({MAX_AUDIO_BYTES}) exceeded.")
    heard = hear_recording(file.data)
    if heard is None:
        raise refuse(400, "Audio file might be corrupted or unsupported", "file", "invalid_value")
    mark_billed(request)
    answer: JsonObject = {
        "text": heard.text,
        "usage": {"type": "duration", "seconds": math.ceil(heard.seconds)},
    }
    if not transcribers[model]:
        answer["languages"] = [{"code": heard.language}]
    return JSONResponse(answer | (_describe_times(heard) if kind == "verbose_json" else {}))


def _describe_times(heard: HeardRecording) -> JsonObject:
    segments = [
        {
            "id": place,
            "seek": 0,
            "start": part.start,
            "end": part.end,
            "text": f" {part.text}",
            "tokens": [],
            "temperature": 0.0,
            "avg_logprob": -0.1,
            "compression_ratio": 1.2,
            "no_speech_prob": 0.01,
        }
        for place, part in enumerate(heard.sentences)
    ]
    return {
        "task": "transcribe",
        "language": heard.language_name,
        "duration": heard.seconds,
        "segments": segments,
    }


def refuse_body(faults: list[BodyFault]) -> RefusalError:
    """Make the refusal of a body with these faults."""
    if not faults:
        return refuse(400, "The body of the request could not be parsed as JSON.")
    fault = faults[0]
    param = re.sub(r"\.(\d+)", r"[\1]", fault.name)
    code = "invalid_type" if fault.is_type else _FAULT_CODES.get(fault.kind)
    if code is None:
        number = "integer" if param in _INTEGERS else "decimal"
        bound = "above_max" if fault.kind == "less_than_equal" else "below_min"
        code = f"{number}_{bound}_value"
    return refuse(400, f"Invalid '{param}': {fault.message}.", param, code)


def _check_newer_model(body: ChatRequest, model: str) -> None:
    if body.tools and body.reasoning_effort != "none":
        message = (
            f"Function tools with reasoning_effort are not supported for {model} in"
            " /v1/chat/completions. To use function tools, use /v1/responses or set"
            " reasoning_effort to 'none'."
        )
        raise refuse(400, message, "reasoning_effort")
    if body.reasoning_effort == "none" and model in ALWAYS_REASONING:
        message = "Unsupported value: 'reasoning_effort' does not support 'none' with this model."
        raise refuse(400, message, "reasoning_effort", "unsupported_value")
    if body.max_tokens is not None:
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        )
        raise refuse(400, message, "max_tokens", "unsupported_parameter")
    if body.stop is not None:
        message = "Unsupported parameter: 'stop' is not supported with this model."
        raise refuse(400, message, "stop", "unsupported_parameter")
    if body.logprobs and body.reasoning_effort != "none":
        message = "Unsupported parameter: 'logprobs' is not supported with this model."
        raise refuse(400, message, "logprobs", "unsupported_parameter")
    if body.top_p not in (None, 1):
        message = "Unsupported value: 'top_p' supports only the default (1) with this model."
        raise refuse(400, message, "top_p", "unsupported_value")
    if body.temperature not in (None, 1):
        message = "Unsupported value: 'temperature' supports only the default (1) with this model."
        raise refuse(400, message, "temperature", "unsupported_value")


def _check_tool_answers(messages: list[OpenAIMessage]) -> None:
    """Check that each answer of a tool names a call, and each call has its answer."""
    open_calls: set[object] = set()
    for message in messages:
        extra = message.model_extra or {}
        if message.role == "tool":
            if extra.get("tool_call_id") not in open_calls:
                text = "messages with role 'tool' must be a response to a preceding 'tool_calls'."
                raise refuse(400, text, "messages", "invalid_value")
            open_calls.discard(extra.get("tool_call_id"))
        elif open_calls:
            text = "An assistant message with 'tool_calls' must be followed by tool messages."
            raise refuse(400, text, "messages", "invalid_value")
        if message.role == "assistant":
            open_calls = {call.get("id") for call in extra.get("tool_calls") or ()}


def _check_reasoning(messages: list[OpenAIMessage], member: str) -> None:
    """Check that each message with calls of tools has the reasoning before them."""
    for message in messages:
        extra = message.model_extra or {}
        if extra.get("tool_calls") and not isinstance(extra.get(member), str):
            text = f"The `{member}` in the thinking mode must be passed back to the API."
            raise refuse(400, text, code="invalid_request_error")


def _parse_response_format(body: ChatRequest) -> tuple[JsonObject | None, bool]:
    """Parse the JSON schema asked for, and whether any JSON is asked for."""
    response_format = body.response_format
    if response_format is None or response_format.type == "text":
        return None, False
    if response_format.type == "json_object":
        if "json" not in " ".join(turn.text for turn in parse_turns(body.messages)).lower():
            message = "'messages' must contain the word 'json' to use 'json_object'."
            raise refuse(400, message, "messages")
        return None, True
    spec = response_format.json_schema
    if spec is None:
        param = "response_format.json_schema"
        message = f"Missing required parameter: '{param}'."
        raise refuse(400, message, param, "missing_required_parameter")
    if spec.strict:
        _check_strict(spec.json_schema, spec.name, "")
    return spec.json_schema, True


def _check_strict(schema: Any, name: str, path: str) -> None:
    """Check a schema for strict mode: objects closed, and every property required."""
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    if isinstance(properties, dict) or schema.get("type") == "object":
        fault = ""
        if schema.get("additionalProperties") is not False:
            fault = "'additionalProperties' is required to be supplied and to be false"
        elif set(schema.get("required", [])) != set(properties or {}):
            fault = "'required' is required to be supplied and to name every key of properties"
        if fault:
            message = f"Invalid schema for response_format '{name}': in context=({path}), {fault}."
            raise refuse(400, message, "response_format", "invalid_json_schema")
    for key in ("properties", "$defs"):
        for child, inner in (schema.get(key) or {}).items():
            _check_strict(inner, name, f"{path}{key}.{child}")
    for key in ("anyOf", "allOf", "oneOf"):
        for inner in schema.get(key) or []:
            _check_strict(inner, name, f"{path}{key}")
    _check_strict(schema.get("items"), name, f"{path}items")


def _build_head(digest: str, model: str, tier: str) -> JsonObject:
    return {
        "id": f"chatcmpl-{digest[:29]}",
        "object": "chat.completion",
        "created": EPOCH + int(digest[:4], 16),
        "model": model + MODEL_SUFFIX,
        "service_tier": tier,
        "system_fingerprint": f"fp_{digest[29:39]}",
    }


def _build_usage(reply: SimulatedReply, n: int, cache: CacheUse | None) -> JsonObject:
    completion = reply.completion_tokens * n
    details: JsonObject = {"cached_tokens": 0, "audio_tokens": 0}
    if reply.picture_tokens:
        details["image_tokens"] = reply.picture_tokens
    if cache is not None:
        details |= {"cached_tokens": cache.read_tokens, "cache_write_tokens": cache.write_tokens}
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": reply.prompt_tokens + completion,
        "prompt_tokens_details": details,
        "completion_tokens_details": {
            "reasoning_tokens": reply.reasoning_tokens * n,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _build_completion(
    head: JsonObject, reply: SimulatedReply, n: int, cache: CacheUse | None
) -> JsonObject:
    message: JsonObject = {
        "role": "assistant",
        "content": None if reply.calls else reply.text,
        "refusal": None,
        "annotations": [],
    }
    if reply.calls:
        message["tool_calls"] = build_calls(reply, head["id"][9:])
    choices = [
        {"index": i, "message": message, "logprobs": None, "finish_reason": reply.finish}
        for i in range(n)
    ]
    return {**head, "choices": choices, "usage": _build_usage(reply, n, cache)}
