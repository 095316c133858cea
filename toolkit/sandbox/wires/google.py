"""The `google` wire: generateContent, countTokens and models, as the Gemini API has them."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.event_streams import format_event
from toolkit.sandbox.json_http import (
    JsonObject,
    NotJsonError,
    has_json_type,
    make_response,
    read_json_object,
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

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

MODEL_SUFFIX = "-sandbox"


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """The limits of a model that requests are checked against.

    Attributes:
        output_limit: most tokens that it answers with.
        max_budget: highest thinking budget that it takes.
        min_budget: lowest budget; 0 turns its thoughts off.
        levels: thinking levels that it takes; empty if it takes only a budget.
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
FIELDS = {
    "contents": "array",
    "systemInstruction": "object|null",
    "generationConfig": "object|null",
    "safetySettings": "array|null",
    "tools": "array|null",
    "toolConfig": "object|null",
    "cachedContent": "string|null",
    "labels": "object|null",
    "serviceTier": "string|null",
}
CONFIG_FIELDS = {
    "temperature": "number|null",
    "topP": "number|null",
    "topK": "number|null",
    "maxOutputTokens": "integer|null",
    "candidateCount": "integer|null",
    "stopSequences": "array|null",
    "responseMimeType": "string|null",
    "responseJsonSchema": "object|null",
    "responseSchema": "object|null",
    "seed": "integer|null",
    "thinkingConfig": "object|null",
}
_ERROR_STATUSES = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}


@dataclass(slots=True)
class GoogleRefusalError(Exception):
    """An error in the vendor's format."""

    status: int
    message: str
    reason: str = ""
    details: list[JsonObject] = field(default_factory=list)

    def to_response(self) -> Response:
        """Make the response that carries the error."""
        details = [*self.details]
        if self.reason:
            kind = "type.googleapis.com/google.rpc.ErrorInfo"
            domain = "googleapis.com"
            details.append({"@type": kind, "reason": self.reason, "domain": domain})
        error: JsonObject = {
            "code": self.status,
            "message": self.message,
            "status": _ERROR_STATUSES[self.status],
        }
        return make_response(
            {"error": {**error, **({"details": details} if details else {})}}, self.status
        )


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths, in both versions."""
    del state  # ids come from the request's digest, which holds the seed
    handlers = {
        "generateContent": _generate_content,
        "streamGenerateContent": _stream_content,
        "countTokens": _count_content_tokens,
    }

    async def act(request: Request) -> Response:
        name, _, action = str(request.path_params["action"]).partition(":")
        handler = handlers.get(action)
        if handler is None:
            raise GoogleRefusalError(404, f"Method {action!r} is not found.")
        return await handler(request, _resolve_model(name, str(request.path_params["version"])))

    return [
        Route("/{version:str}/models", _wrap_handler(_list_models), methods=["GET"]),
        Route("/{version:str}/models/{model}", _wrap_handler(_get_model), methods=["GET"]),
        Route("/{version:str}/models/{action}", _wrap_handler(act), methods=["POST"]),
    ]


def _wrap_handler(handler: Handler) -> Handler:
    async def endpoint(request: Request) -> Response:
        try:
            if request.path_params["version"] not in ("v1", "v1beta"):
                raise GoogleRefusalError(404, "Not found.")
            _check_key(request)
            return await handler(request)
        except GoogleRefusalError as refusal:
            return refusal.to_response()

    return endpoint


def _check_key(request: Request) -> None:
    key = request.headers.get("x-goog-api-key") or request.query_params.get("key")
    if not key:
        raise GoogleRefusalError(403, "Method doesn't allow unregistered callers.")
    if key != SANDBOX_KEYS["GEMINI_API_KEY"]:
        # A bad key is an invalid argument to this vendor, and not 401.
        message = "API key not valid. Please pass a valid API key."
        raise GoogleRefusalError(400, message, "API_KEY_INVALID")


async def _list_models(_request: Request) -> Response:
    return make_response({"models": [_describe_model(name) for name in MODELS]})


async def _get_model(request: Request) -> Response:
    name = _resolve_model(str(request.path_params["model"]), str(request.path_params["version"]))
    return make_response(_describe_model(name))


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
        raise GoogleRefusalError(
            404, f"models/{name} is not found for API version {version}, or is not supported."
        )
    return bare


async def _parse_request(
    request: Request,
) -> tuple[JsonObject, list[ChatTurn], JsonObject | None, bool]:
    """Parse the body: its turns, the schema asked for, and whether any JSON is asked for."""
    try:
        body = await read_json_object(request)
    except NotJsonError:
        raise GoogleRefusalError(400, "Invalid JSON payload received.") from None
    _check_fields(body, FIELDS, "")
    if not body.get("contents"):
        raise GoogleRefusalError(
            400, "* GenerateContentRequest.contents: contents is not specified"
        )
    config = body.get("generationConfig") or {}
    _check_fields(config, CONFIG_FIELDS, "generation_config")
    turns = [_parse_content(content, place) for place, content in enumerate(body["contents"])]
    if body.get("systemInstruction"):
        turns.insert(0, ChatTurn("system", _join_parts(body["systemInstruction"])))
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    wants_json = config.get("responseMimeType") == "application/json"
    if schema is not None and not wants_json:
        raise GoogleRefusalError(400, "response_schema needs response_mime_type application/json")
    return body, turns, _lower_types(schema), wants_json


def _check_fields(body: JsonObject, known: dict[str, str], where: str) -> None:
    for name, value in body.items():
        if name not in known:
            place = f" at '{where}'" if where else ""
            raise GoogleRefusalError(
                400,
                f'Invalid JSON payload received. Unknown name "{name}"{place}: Cannot find field.',
            )
        if not has_json_type(value, known[name]):
            raise GoogleRefusalError(400, f"Invalid value at '{where or 'request'}.{name}'.")


def _parse_content(content: object, place: int) -> ChatTurn:
    if not isinstance(content, dict) or not isinstance(content.get("parts"), list):
        raise GoogleRefusalError(
            400, f"* contents[{place}].parts: contents.parts must not be empty."
        )
    role = content.get("role") or "user"
    if role not in ("user", "model"):
        raise GoogleRefusalError(400, "Please use a valid role: user, model.")
    return ChatTurn("assistant" if role == "model" else "user", _join_parts(content))


def _join_parts(content: JsonObject) -> str:
    parts = [part for part in content.get("parts") or () if isinstance(part, dict)]
    return "\n".join(str(part.get("text", "")) for part in parts)


def _lower_types(schema: JsonObject | None) -> JsonObject | None:
    """Convert types in capitals (`OBJECT`), as the SDK writes them, to JSON Schema's."""
    if schema is None:
        return None

    def lower_value(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: lower_value(held, name) for name, held in value.items()}
        if isinstance(value, list):
            return [lower_value(held) for held in value]
        return value.lower() if key == "type" and isinstance(value, str) else value

    made = lower_value(schema)
    return made if isinstance(made, dict) else None


async def _generate_answer(request: Request, model: str) -> tuple[SimulatedReply, dict[str, str]]:
    """Generate the answer to a request, and return it with the headers of its response."""
    body, turns, schema, wants_json = await _parse_request(request)
    tier = str(body.get("serviceTier") or SERVICE_TIERS[0]).lower()
    if tier not in SERVICE_TIERS:
        raise GoogleRefusalError(400, f"Invalid value at 'service_tier': {tier!r}.")
    config = body.get("generationConfig") or {}
    reply = generate_reply(
        turns,
        schema=schema,
        want_json=wants_json,
        max_tokens=config.get("maxOutputTokens"),
        reasoning_tokens=_count_thoughts(config.get("thinkingConfig") or {}, MODELS[model]),
    )
    mark_billed(request)
    return reply, {"x-gemini-service-tier": tier}


def _count_thoughts(config: JsonObject, traits: ModelTraits) -> int:
    """Count the tokens of the thoughts that a request allows."""
    budget, level = config.get("thinkingBudget"), config.get("thinkingLevel")
    if budget is not None and level is not None:
        raise GoogleRefusalError(400, "thinking_budget and thinking_level cannot be set together.")
    if level is not None and str(level).lower() not in traits.levels:
        allowed = ", ".join(traits.levels)
        message = f"{level!r} is not a supported thinking level for this model. Allowed: {allowed}."
        raise GoogleRefusalError(400, message)
    if budget is None or budget == -1:  # the model's own choice
        return THOUGHT_TOKENS
    if not isinstance(budget, int) or not traits.min_budget <= budget <= traits.max_budget:
        message = f"The thinking budget {budget} is invalid. Please choose a value between"
        raise GoogleRefusalError(400, f"{message} {traits.min_budget} and {traits.max_budget}.")
    return min(budget, THOUGHT_TOKENS)


async def _generate_content(request: Request, model: str) -> Response:
    reply, headers = await _generate_answer(request, model)
    finish = "MAX_TOKENS" if reply.finish == "length" else "STOP"
    return make_response(_build_chunk(request, model, reply, reply.text, finish), headers=headers)


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
    _, turns, _, _ = await _parse_request(request)
    return make_response({"totalTokens": count_prompt_tokens(turns)})


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
