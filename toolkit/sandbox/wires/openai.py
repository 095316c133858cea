"""The `openai` wire: chat completions, embeddings, models, as strict as the vendor's own."""

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute

from toolkit.sandbox.chat_tools import ChatTool, NamedChoice, build_calls, make_offer
from toolkit.sandbox.event_streams import StreamOptions, stream_completion
from toolkit.sandbox.json_http import (
    BodyFault,
    JsonObject,
    RefusalError,
    RequestBody,
    build_checked_routes,
    get_bearer_key,
    read_body,
)
from toolkit.sandbox.keys import SANDBOX_KEYS
from toolkit.sandbox.state import (
    EPOCH,
    SandboxState,
    get_project_tier,
    get_request_digest,
    mark_billed,
)
from toolkit.sandbox.text.chat import (
    ChatMessage,
    SimulatedReply,
    count_tokens,
    generate_reply,
    parse_turns,
)
from toolkit.sandbox.text.vectors import embed_text, pack_vector
from toolkit.sandbox.vendor_paths import CompatibleVendor
from toolkit.sandbox.wires.openai_prompt_cache import LEADING_FIELDS, CacheUse, PromptCache

MODEL_SUFFIX = "-sandbox"
CONTEXT_TOKENS = 128_000
PICTURE_TOKENS = 1_105
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

    return _build_wire_routes("/v1", SANDBOX_KEYS["OPENAI_API_KEY"], MODELS, use_cache)


def build_compatible_routes(vendor: CompatibleVendor) -> list[BaseRoute]:
    """Build the routes of another vendor that speaks this wire; its models accept every field."""
    served = dict.fromkeys(vendor.models, False)
    return _build_wire_routes(vendor.base_path, vendor.key, served, lambda _model, _body: None)


def _build_wire_routes(
    base_path: str, key: str, served: Mapping[str, bool], use_cache: UseCache
) -> list[BaseRoute]:
    def check_key(request: Request) -> None:
        bearer_key = get_bearer_key(request)
        if bearer_key is None:
            raise refuse(401, "No API key was given; send it as `Authorization: Bearer <key>`.")
        if bearer_key != key:
            raise refuse(401, "The API key given is not correct.", code="invalid_api_key")

    async def list_models(_request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [_describe_model(name) for name in served]})

    async def get_model(request: Request) -> Response:
        return JSONResponse(_describe_model(_resolve_model(request.path_params["model"], served)))

    async def complete_chat(request: Request) -> Response:
        return await _complete_chat(request, served, use_cache)

    return build_checked_routes(
        check_key,
        (
            ("GET", f"{base_path}/models", list_models),
            ("GET", f"{base_path}/models/{{model:path}}", get_model),
            ("POST", f"{base_path}/chat/completions", complete_chat),
            ("POST", f"{base_path}/embeddings", _embed_texts),
        ),
    )


def _describe_model(name: str) -> JsonObject:
    return {"id": name + MODEL_SUFFIX, "object": "model", "created": EPOCH, "owned_by": "sandbox"}


def _resolve_model(name: str, served: Mapping[str, bool]) -> str:
    bare = name.removesuffix(MODEL_SUFFIX)
    if bare not in served:
        message = f"The model `{name}` does not exist or you do not have access to it."
        raise refuse(404, message, code="model_not_found")
    return bare


async def _complete_chat(
    request: Request, served: Mapping[str, bool], use_cache: UseCache
) -> Response:
    body = await read_body(request, ChatRequest, _refuse_body)
    model = _resolve_model(body.model, served)
    if served[model]:
        _check_newer_model(body)
    for place, turn in enumerate(body.messages):
        if turn.content is None and turn.role != "assistant":
            fault = BodyFault(("messages", place, "content"), "missing", "Field required", None)
            raise _refuse_body([fault])
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
        picture_tokens=PICTURE_TOKENS,
    )
    if reply.prompt_tokens > CONTEXT_TOKENS:
        message = f"This model's context is {CONTEXT_TOKENS} tokens; the messages are longer."
        raise refuse(400, message, "messages", "context_length_exceeded")
    cache = use_cache(model, body)
    mark_billed(request)
    tier = SERVICE_TIERS[body.service_tier or "auto"] or get_project_tier(request)
    head = _build_head(get_request_digest(request), model, tier or "default")
    if body.stream:
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        usage = _build_usage(reply, 1, cache) if with_usage else None
        head["object"] = "chat.completion.chunk"
        events = stream_completion(head, reply, usage, calls=build_calls(reply, head["id"][9:]))
        return StreamingResponse(events, media_type="text/event-stream")
    return JSONResponse(_build_completion(head, reply, body.n or 1, cache))


async def _embed_texts(request: Request) -> Response:
    body = await read_body(request, EmbeddingRequest, _refuse_body)
    longest = EMBEDDING_MODELS.get(body.model.removesuffix(MODEL_SUFFIX))
    if longest is None:
        message = f"The model `{body.model}` does not exist or you do not have access to it."
        raise refuse(404, message, code="model_not_found")
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
    rows = []
    for index, text in enumerate(texts):
        vector: object = embed_text(text, body.dimensions or longest)
        if body.encoding_format == "base64":
            vector = base64.b64encode(pack_vector(embed_text(text, body.dimensions or longest)))
        embedding = vector.decode() if isinstance(vector, bytes) else vector
        rows.append({"object": "embedding", "index": index, "embedding": embedding})
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    model = body.model.removesuffix(MODEL_SUFFIX) + MODEL_SUFFIX
    return JSONResponse({"object": "list", "data": rows, "model": model, "usage": usage})


def _refuse_body(faults: list[BodyFault]) -> RefusalError:
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


def _check_newer_model(body: ChatRequest) -> None:
    if body.max_tokens is not None:
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        )
        raise refuse(400, message, "max_tokens", "unsupported_parameter")
    if body.stop is not None:
        message = "Unsupported parameter: 'stop' is not supported with this model."
        raise refuse(400, message, "stop", "unsupported_parameter")
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
