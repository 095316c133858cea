"""The `openai` wire: chat completions and models, checked as strictly as the vendor checks."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.event_streams import stream_completion
from toolkit.sandbox.json_http import (
    JsonObject,
    NotJsonError,
    get_bearer_key,
    get_json_type,
    has_json_type,
    make_response,
    read_json_object,
)
from toolkit.sandbox.keys import SANDBOX_KEYS
from toolkit.sandbox.state import (
    EPOCH,
    SandboxState,
    get_project_tier,
    get_request_digest,
    mark_billed,
)
from toolkit.sandbox.text.chat import SimulatedReply, generate_reply, parse_turns
from toolkit.sandbox.vendor_paths import CompatibleVendor
from toolkit.sandbox.wires.openai_prompt_cache import MODES, CacheUse, PromptCache

MODEL_SUFFIX = "-sandbox"
CONTEXT_TOKENS = 128_000
# Model -> whether it is of the generation that refuses max_tokens and a chosen temperature.
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
FIELDS = {
    "model": "string",
    "messages": "array",
    "max_tokens": "integer|null",
    "max_completion_tokens": "integer|null",
    "temperature": "number|null",
    "top_p": "number|null",
    "n": "integer|null",
    "stream": "boolean|null",
    "stream_options": "object|null",
    "stop": "string|array|null",
    "seed": "integer|null",
    "response_format": "object|null",
    "reasoning_effort": "string|null",
    "verbosity": "string|null",
    "tools": "array|null",
    "tool_choice": "string|object|null",
    "parallel_tool_calls": "boolean|null",
    "logprobs": "boolean|null",
    "top_logprobs": "integer|null",
    "logit_bias": "object|null",
    "presence_penalty": "number|null",
    "frequency_penalty": "number|null",
    "user": "string|null",
    "safety_identifier": "string|null",
    "prompt_cache_key": "string|null",
    "prompt_cache_options": "object|null",
    "service_tier": "string|null",
    "store": "boolean|null",
    "metadata": "object|null",
    "modalities": "array|null",
}
# Reads and writes the prompt cache for a request to a model; None if the server has no cache.
UseCache: TypeAlias = Callable[[str, JsonObject], CacheUse | None]
_ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(slots=True)
class OpenAIRefusalError(Exception):
    """An error in the vendor's format."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None
    kind: str = "invalid_request_error"

    def to_response(self) -> Response:
        """Make the response that carries the error."""
        error = {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        }
        return make_response({"error": error}, self.status)


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    cache = state.get_records(PromptCache)

    def use_cache(model: str, body: JsonObject) -> CacheUse:
        if model in CACHING_MODELS:
            return cache.use(body, state.clock())
        _refuse_cache_options(body)
        return CacheUse()

    return _build_wire_routes("/v1", SANDBOX_KEYS["OPENAI_API_KEY"], MODELS, use_cache)


def build_compatible_routes(vendor: CompatibleVendor) -> list[BaseRoute]:
    """Build the routes of another vendor that speaks this wire; its models take every field."""
    served = dict.fromkeys(vendor.models, False)
    return _build_wire_routes(vendor.base_path, vendor.key, served, lambda _model, _body: None)


def _build_wire_routes(
    base_path: str, key: str, served: Mapping[str, bool], use_cache: UseCache
) -> list[BaseRoute]:
    async def models(request: Request) -> Response:
        try:
            _check_key(request, key)
        except OpenAIRefusalError as refusal:
            return refusal.to_response()
        return make_response({"object": "list", "data": [_describe_model(name) for name in served]})

    async def model(request: Request) -> Response:
        try:
            _check_key(request, key)
            name = _resolve_model(request.path_params["model"], served)
            return make_response(_describe_model(name))
        except OpenAIRefusalError as refusal:
            return refusal.to_response()

    async def chat(request: Request) -> Response:
        try:
            _check_key(request, key)
            return await _complete_chat(request, served, use_cache)
        except OpenAIRefusalError as refusal:
            return refusal.to_response()

    return [
        Route(f"{base_path}/models", models, methods=["GET"]),
        Route(f"{base_path}/models/{{model:path}}", model, methods=["GET"]),
        Route(f"{base_path}/chat/completions", chat, methods=["POST"]),
    ]


def _check_key(request: Request, accepted: str) -> None:
    key = get_bearer_key(request)
    if key is None:
        raise OpenAIRefusalError(
            401, "No API key was given; send it as `Authorization: Bearer <key>`."
        )
    if key != accepted:
        raise OpenAIRefusalError(401, "The API key given is not correct.", code="invalid_api_key")


def _describe_model(name: str) -> JsonObject:
    return {"id": name + MODEL_SUFFIX, "object": "model", "created": EPOCH, "owned_by": "sandbox"}


def _resolve_model(name: str, served: Mapping[str, bool]) -> str:
    bare = name.removesuffix(MODEL_SUFFIX)
    if bare not in served:
        message = f"The model `{name}` does not exist or you do not have access to it."
        raise OpenAIRefusalError(404, message, code="model_not_found")
    return bare


async def _complete_chat(
    request: Request, served: Mapping[str, bool], use_cache: UseCache
) -> Response:
    try:
        body = await read_json_object(request)
    except NotJsonError:
        raise OpenAIRefusalError(
            400, "The body of the request could not be parsed as JSON."
        ) from None
    _check_fields(body)
    model = _resolve_model(body["model"], served)
    _check_generation(body, is_new=served[model])
    _check_messages(body["messages"])
    schema, want_json = _parse_response_format(body)
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    effort = body.get("reasoning_effort")
    reply = generate_reply(
        parse_turns(body["messages"]),
        schema=schema,
        want_json=want_json,
        max_tokens=limit,
        reasoning_tokens={"medium": 64, "high": 192}.get(effort or "", 0) if served[model] else 0,
    )
    if reply.prompt_tokens > CONTEXT_TOKENS:
        message = f"This model's context is {CONTEXT_TOKENS} tokens; the messages are longer."
        raise OpenAIRefusalError(400, message, "messages", "context_length_exceeded")
    cache = use_cache(model, body)
    mark_billed(request)
    tier = SERVICE_TIERS[body.get("service_tier") or "auto"] or get_project_tier(request)
    head = _build_head(get_request_digest(request), model, tier or "default")
    if body.get("stream"):
        with_usage = (body.get("stream_options") or {}).get("include_usage")
        usage = _build_usage(reply, 1, cache) if with_usage else None
        head["object"] = "chat.completion.chunk"
        events = stream_completion(head, reply, usage)
        return StreamingResponse(events, media_type="text/event-stream")
    return make_response(_build_completion(head, reply, body.get("n") or 1, cache))


def _check_fields(body: JsonObject) -> None:
    for name in body:
        if name not in FIELDS:
            message = f"Unrecognized request argument supplied: {name}"
            raise OpenAIRefusalError(400, message, name, "unknown_parameter")
    for name in ("model", "messages"):
        if body.get(name) is None:
            message = f"Missing required parameter: '{name}'."
            raise OpenAIRefusalError(400, message, name, "missing_required_parameter")
    for name, value in body.items():
        if not has_json_type(value, FIELDS[name]):
            wanted = FIELDS[name].replace("|", " or ")
            message = f"Invalid type for '{name}': expected {wanted}, got {get_json_type(value)}."
            raise OpenAIRefusalError(400, message, name, "invalid_type")
    _check_ranges(body)
    _check_choices(body)


def _check_ranges(body: JsonObject) -> None:
    ranges = {"temperature": (0, 2), "top_p": (0, 1), "n": (1, 8)}
    for name, (low, high) in ranges.items():
        value = body.get(name)
        if value is not None and not low <= value <= high:
            message = f"Invalid '{name}': expected a value between {low} and {high}, got {value}."
            code = "decimal_above_max_value" if value > high else "decimal_below_min_value"
            raise OpenAIRefusalError(400, message, name, code)
    for name in ("max_tokens", "max_completion_tokens"):
        value = body.get(name)
        if value is not None and value < 1:
            message = f"Invalid '{name}': expected at least 1, got {value}."
            raise OpenAIRefusalError(400, message, name, "integer_below_min_value")


def _check_choices(body: JsonObject) -> None:
    """Check the fields that have a few values each."""
    mode = (body.get("prompt_cache_options") or {}).get("mode")
    choices = (
        ("service_tier", body.get("service_tier"), tuple(SERVICE_TIERS)),
        ("prompt_cache_options.mode", mode, MODES),
    )
    for name, value, known in choices:
        if value is not None and value not in known:
            message = f"Invalid value: '{value}'. Supported values of '{name}': {', '.join(known)}."
            raise OpenAIRefusalError(400, message, name, "invalid_value")


def _refuse_cache_options(body: JsonObject) -> None:
    if body.get("prompt_cache_options") is not None:
        message = "Unsupported parameter: 'prompt_cache_options' needs gpt-5.6 or a later model."
        raise OpenAIRefusalError(400, message, "prompt_cache_options", "unsupported_parameter")


def _check_generation(body: JsonObject, *, is_new: bool) -> None:
    if not is_new:
        return
    if body.get("max_tokens") is not None:
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        )
        raise OpenAIRefusalError(400, message, "max_tokens", "unsupported_parameter")
    if body.get("temperature") not in (None, 1):
        message = "Unsupported value: 'temperature' supports only the default (1) with this model."
        raise OpenAIRefusalError(400, message, "temperature", "unsupported_value")


def _check_messages(messages: list[Any]) -> None:
    if not messages:
        message = "Invalid 'messages': expected an array with at least 1 element, got none."
        raise OpenAIRefusalError(400, message, "messages", "empty_array")
    for place, one in enumerate(messages):
        where = f"messages[{place}]"
        if not isinstance(one, dict):
            message = f"Invalid type for '{where}': expected object, got {get_json_type(one)}."
            raise OpenAIRefusalError(400, message, where, "invalid_type")
        if one.get("role") not in _ROLES:
            message = f"Invalid value for '{where}.role': supported are {', '.join(_ROLES)}."
            raise OpenAIRefusalError(400, message, f"{where}.role", "invalid_value")
        if not has_json_type(one.get("content"), "string|array|null"):
            message = f"Invalid type for '{where}.content': expected string or array."
            raise OpenAIRefusalError(400, message, f"{where}.content", "invalid_type")
        if one.get("content") is None and one["role"] != "assistant":
            message = f"Missing required parameter: '{where}.content'."
            raise OpenAIRefusalError(400, message, f"{where}.content", "missing_required_parameter")


def _parse_response_format(body: JsonObject) -> tuple[JsonObject | None, bool]:
    """Parse the JSON schema asked for, and whether any JSON is asked for."""
    wanted = body.get("response_format") or {"type": "text"}
    kind = wanted.get("type")
    if kind == "text":
        return None, False
    if kind == "json_object":
        if "json" not in json.dumps(body["messages"]).lower():
            message = "'messages' must contain the word 'json' to use 'json_object'."
            raise OpenAIRefusalError(400, message, "messages")
        return None, True
    if kind != "json_schema":
        message = f"Invalid value for 'response_format.type': {kind!r}."
        raise OpenAIRefusalError(400, message, "response_format.type", "invalid_value")
    spec = wanted.get("json_schema")
    if not isinstance(spec, dict) or not isinstance(spec.get("name"), str):
        message = "Missing required parameter: 'response_format.json_schema.name'."
        where = "response_format.json_schema.name"
        raise OpenAIRefusalError(400, message, where, "missing_required_parameter")
    schema = spec.get("schema")
    if not isinstance(schema, dict):
        message = "Missing required parameter: 'response_format.json_schema.schema'."
        where = "response_format.json_schema.schema"
        raise OpenAIRefusalError(400, message, where, "missing_required_parameter")
    if spec.get("strict"):
        _check_strict(schema, spec["name"], "")
    return schema, True


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
            raise OpenAIRefusalError(400, message, "response_format", "invalid_json_schema")
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
    given: JsonObject = {"cached_tokens": 0, "audio_tokens": 0}
    if cache is not None:
        given |= {"cached_tokens": cache.read, "cache_write_tokens": cache.written}
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": reply.prompt_tokens + completion,
        "prompt_tokens_details": given,
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
        "content": reply.text,
        "refusal": None,
        "annotations": [],
    }
    choices = [
        {"index": i, "message": message, "logprobs": None, "finish_reason": reply.finish}
        for i in range(n)
    ]
    return {**head, "choices": choices, "usage": _build_usage(reply, n, cache)}
