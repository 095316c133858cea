"""The `google` wire: generateContent, countTokens and models, as in the Gemini API."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute

from toolkit.sandbox.event_streams import format_event
from toolkit.sandbox.json_http import (
    BodyFault,
    JsonObject,
    RefusalError,
    RequestBody,
    build_checked_routes,
    read_body,
)
from toolkit.sandbox.keys import SANDBOX_KEYS
from toolkit.sandbox.state import SandboxState, get_request_digest, mark_billed
from toolkit.sandbox.text.chat import (
    ChatTurn,
    SimulatedReply,
    count_prompt_tokens,
    generate_reply,
    iter_pieces,
)

MODEL_SUFFIX = "-sandbox"


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """The limits of a model that requests are checked against.

    Attributes:
        output_limit: maximum output tokens.
        max_budget: maximum thinking budget in tokens.
        min_budget: minimum thinking budget in tokens; 0 turns thoughts off.
        levels: accepted thinking levels; empty if the model accepts only a budget.
    """

    output_limit: int = 65_536
    max_budget: int = 24_576
    min_budget: int = 0
    levels: tuple[str, ...] = ("low", "medium", "high")


MODELS = {
    "gemini-4-argon": ModelTraits(output_limit=1_048_576, max_budget=32_768),
    "gemini-3.8-flash": ModelTraits(),
    "gemini-3.5-flash-lite": ModelTraits(
        min_budget=512, levels=("minimal", "low", "medium", "high")
    ),
    "gemini-3.1-flash-lite": ModelTraits(levels=("minimal", "low", "medium", "high")),
    "gemini-2.5-flash": ModelTraits(levels=()),
}
SERVICE_TIERS = ("standard", "flex", "priority")
# The tokens that a model thinks before each answer, if its budget allows as many.
THOUGHT_TOKENS = 16
ALIASES = {"gemini-flash-latest": "gemini-3.8-flash"}
_ERROR_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class Content(RequestBody, extra="ignore"):
    """The parts of a message."""

    role: Literal["user", "model", ""] | None = None
    parts: list[Any]


class SystemInstruction(RequestBody, extra="ignore"):
    """The parts of the system prompt."""

    parts: list[Any] | None = None


class ThinkingConfig(RequestBody, extra="ignore"):
    """The limits of a model's thoughts; both fields are validated against the model."""

    budget: Any = Field(None, alias="thinkingBudget")
    level: Any = Field(None, alias="thinkingLevel")


class GenerationConfig(RequestBody, alias_generator=to_camel):
    """The settings of an answer."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: float | None = None
    max_output_tokens: int | None = None
    candidate_count: int | None = None
    stop_sequences: list[Any] | None = None
    response_mime_type: str | None = None
    response_json_schema: JsonObject | None = None
    response_schema: JsonObject | None = None
    seed: int | None = None
    thinking_config: ThinkingConfig | None = None


class ContentRequest(RequestBody, alias_generator=to_camel):
    """The body of a request for content."""

    contents: list[Content] = Field(min_length=1)
    system_instruction: SystemInstruction | None = None
    generation_config: GenerationConfig | None = None
    safety_settings: list[Any] | None = None
    tools: list[Any] | None = None
    tool_config: JsonObject | None = None
    cached_content: str | None = None
    labels: JsonObject | None = None
    service_tier: str | None = None

    @property
    def config(self) -> GenerationConfig:
        """The settings of the answer."""
        return self.generation_config or GenerationConfig()


def refuse(status: int, message: str, reason: str = "") -> RefusalError:
    """Make a refusal in the vendor's format."""
    kind = _ERROR_STATUSES.get(status, "INTERNAL")
    error: JsonObject = {"code": status, "message": message, "status": kind}
    if reason:
        type_url = "type.googleapis.com/google.rpc.ErrorInfo"
        error["details"] = [{"@type": type_url, "reason": reason, "domain": "googleapis.com"}]
    return RefusalError({"error": error}, status)


def build_routes(_: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths, in both versions."""
    handlers = {
        "generateContent": _generate_content,
        "streamGenerateContent": _stream_content,
        "countTokens": _count_content_tokens,
    }

    async def act(request: Request) -> Response:
        name, _, action = str(request.path_params["action"]).partition(":")
        handler = handlers.get(action)
        if handler is None:
            raise refuse(404, f"Method {action!r} is not found.")
        return await handler(request, _resolve_model(name, str(request.path_params["version"])))

    return build_checked_routes(
        _check_request,
        (
            ("GET", "/{version:str}/models", _list_models),
            ("GET", "/{version:str}/models/{model}", _get_model),
            ("POST", "/{version:str}/models/{action}", act),
        ),
    )


def _check_request(request: Request) -> None:
    if request.path_params["version"] not in ("v1", "v1beta"):
        raise refuse(404, "Not found.")
    key = request.headers.get("x-goog-api-key") or request.query_params.get("key")
    if not key:
        raise refuse(403, "Method doesn't allow unregistered callers.")
    if key != SANDBOX_KEYS["GEMINI_API_KEY"]:
        # This vendor reports a bad key as an invalid argument, not with 401.
        raise refuse(400, "API key not valid. Please pass a valid API key.", "API_KEY_INVALID")


async def _list_models(_request: Request) -> Response:
    return JSONResponse({"models": [_describe_model(name) for name in MODELS]})


async def _get_model(request: Request) -> Response:
    name = _resolve_model(str(request.path_params["model"]), str(request.path_params["version"]))
    return JSONResponse(_describe_model(name))


def _describe_model(name: str) -> JsonObject:
    return {
        "name": f"models/{name}",
        "version": "sandbox",
        "displayName": f"{name} (sandbox)",
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": MODELS[name].output_limit,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


def _resolve_model(name: str, version: str) -> str:
    bare = ALIASES.get(name, name) if version == "v1beta" else name
    if bare not in MODELS:
        raise refuse(
            404, f"models/{name} is not found for API version {version}, or is not supported."
        )
    return bare


def _refuse_body(faults: list[BodyFault]) -> RefusalError:
    if not faults:
        return refuse(400, "Invalid JSON payload received.")
    *parents, name = faults[0].path
    if faults[0].kind == "extra_forbidden":
        place = f" at '{'.'.join(map(str, parents))}'" if parents else ""
        return refuse(
            400, f'Invalid JSON payload received. Unknown name "{name}"{place}: Cannot find field.'
        )
    return refuse(400, f"Invalid value at '{faults[0].name}': {faults[0].message}.")


def _parse_turns(body: ContentRequest) -> list[ChatTurn]:
    turns = [
        ChatTurn("assistant" if content.role == "model" else "user", _join_parts(content.parts))
        for content in body.contents
    ]
    if body.system_instruction is not None:
        turns.insert(0, ChatTurn("system", _join_parts(body.system_instruction.parts or [])))
    return turns


def _join_parts(parts: list[Any]) -> str:
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _lower_types(schema: JsonObject | None) -> JsonObject | None:
    """Convert types in capitals (`OBJECT`), as the SDK writes them, to JSON Schema's."""
    if schema is None:
        return None

    def lower_value(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: lower_value(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [lower_value(item) for item in value]
        return value.lower() if key == "type" and isinstance(value, str) else value

    copy = lower_value(schema)
    return copy if isinstance(copy, dict) else None


async def _generate_answer(request: Request, model: str) -> tuple[SimulatedReply, dict[str, str]]:
    """Generate the answer to a request, and return it with the headers of its response."""
    body = await read_body(request, ContentRequest, _refuse_body)
    config = body.config
    schema = config.response_json_schema or config.response_schema
    wants_json = config.response_mime_type == "application/json"
    if schema is not None and not wants_json:
        raise refuse(400, "response_schema needs response_mime_type application/json")
    tier = (body.service_tier or SERVICE_TIERS[0]).lower()
    if tier not in SERVICE_TIERS:
        raise refuse(400, f"Invalid value at 'service_tier': {tier!r}.")
    reply = generate_reply(
        _parse_turns(body),
        schema=_lower_types(schema),
        want_json=wants_json,
        max_tokens=config.max_output_tokens,
        reasoning_tokens=_count_thoughts(config.thinking_config, MODELS[model]),
    )
    mark_billed(request)
    return reply, {"x-gemini-service-tier": tier}


def _count_thoughts(config: ThinkingConfig | None, traits: ModelTraits) -> int:
    """Count the tokens of the thoughts that a request allows."""
    budget, level = (None, None) if config is None else (config.budget, config.level)
    if budget is not None and level is not None:
        raise refuse(400, "thinking_budget and thinking_level cannot be set together.")
    if level is not None and str(level).lower() not in traits.levels:
        allowed = ", ".join(traits.levels)
        message = f"{level!r} is not a supported thinking level for this model. Allowed: {allowed}."
        raise refuse(400, message)
    if budget is None or budget == -1:  # the model's own choice
        return THOUGHT_TOKENS
    if not isinstance(budget, int) or not traits.min_budget <= budget <= traits.max_budget:
        message = f"The thinking budget {budget} is invalid. Please choose a value between"
        raise refuse(400, f"{message} {traits.min_budget} and {traits.max_budget}.")
    return min(budget, THOUGHT_TOKENS)


async def _generate_content(request: Request, model: str) -> Response:
    reply, headers = await _generate_answer(request, model)
    finish = "MAX_TOKENS" if reply.finish == "length" else "STOP"
    return JSONResponse(_build_chunk(request, model, reply, reply.text, finish), headers=headers)


async def _stream_content(request: Request, model: str) -> Response:
    reply, headers = await _generate_answer(request, model)
    finish = "MAX_TOKENS" if reply.finish == "length" else "STOP"
    steps = list(iter_pieces(reply.text)) or [""]
    chunks = [
        _build_chunk(request, model, reply, step, finish if place == len(steps) else None)
        for place, step in enumerate(steps, start=1)
    ]
    if request.query_params.get("alt") != "sse":
        return Response(json.dumps(chunks), media_type="application/json", headers=headers)

    async def events() -> AsyncIterator[str]:
        for chunk in chunks:
            yield format_event(chunk)

    return StreamingResponse(events(), media_type="text/event-stream", headers=headers)


async def _count_content_tokens(request: Request, _model_name: str) -> Response:
    body = await read_body(request, ContentRequest, _refuse_body)
    return JSONResponse({"totalTokens": count_prompt_tokens(_parse_turns(body))})


def _build_chunk(
    request: Request, model: str, reply: SimulatedReply, text: str, finish: str | None
) -> JsonObject:
    candidate: JsonObject = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": reply.prompt_tokens,
            "candidatesTokenCount": reply.completion_tokens - reply.reasoning_tokens,
            "thoughtsTokenCount": reply.reasoning_tokens,
            "totalTokenCount": reply.prompt_tokens + reply.completion_tokens,
        },
        "modelVersion": model + MODEL_SUFFIX,
        "responseId": get_request_digest(request)[:22],
    }
