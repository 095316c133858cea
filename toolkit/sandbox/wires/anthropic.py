"""The `anthropic` wire: messages and models, checked as strictly as the vendor checks."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.event_streams import format_named_event
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
    SandboxState,
    get_project_tier,
    get_request_digest,
    mark_billed,
)
from toolkit.sandbox.text.chat import (
    ChatTurn,
    SimulatedReply,
    extract_text,
    generate_reply,
    iter_pieces,
    parse_turns,
)

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

MODEL_SUFFIX = "-sandbox"
CONTEXT_TOKENS = 200_000
MODELS = ("claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-4-5")
VERSIONS = ("2023-06-01", "2026-10-21")
FIELDS = {
    "model": "string",
    "max_tokens": "integer",
    "messages": "array",
    "system": "string|array|null",
    "temperature": "number|null",
    "top_p": "number|null",
    "top_k": "integer|null",
    "stop_sequences": "array|null",
    "stream": "boolean|null",
    "metadata": "object|null",
    "output_config": "object|null",
    "thinking": "object|null",
    "tools": "array|null",
    "tool_choice": "object|null",
    "service_tier": "string|null",
}
SERVICE_TIERS = ("auto", "standard_only")
_ERROR_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}


@dataclass(slots=True)
class AnthropicRefusalError(Exception):
    """An error in the vendor's format."""

    status: int
    message: str

    def to_response(self, request_id: str) -> Response:
        """Make the response that carries the error."""
        error = {"type": _ERROR_TYPES[self.status], "message": self.message}
        body = {"type": "error", "error": error, "request_id": request_id}
        return make_response(body, self.status, {"request-id": request_id})


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""

    def guard_handler(handler: Handler) -> Handler:
        async def endpoint(request: Request) -> Response:
            request_id = (
                f"req_{state.compute_fresh_digest('anthropic', get_request_digest(request))[:24]}"
            )
            try:
                _check_headers(request)
                reply = await handler(request)
            except AnthropicRefusalError as refusal:
                return refusal.to_response(request_id)
            reply.headers["request-id"] = request_id
            return reply

        return endpoint

    return [
        Route("/v1/models", guard_handler(_list_models), methods=["GET"]),
        Route("/v1/models/{model}", guard_handler(_get_model), methods=["GET"]),
        Route("/v1/messages", guard_handler(_create_message), methods=["POST"]),
    ]


def _check_headers(request: Request) -> None:
    key = request.headers.get("x-api-key") or get_bearer_key(request)
    if key is None:
        raise AnthropicRefusalError(401, "x-api-key header is required")
    if key != SANDBOX_KEYS["ANTHROPIC_API_KEY"]:
        raise AnthropicRefusalError(401, "invalid x-api-key")
    version = request.headers.get("anthropic-version")
    if version is None:
        raise AnthropicRefusalError(400, "anthropic-version: header is required")
    if version not in VERSIONS:
        raise AnthropicRefusalError(400, f"anthropic-version: {version!r} is not a valid version")


async def _list_models(_request: Request) -> Response:
    listed = [_describe_model(name) for name in MODELS]
    page = {"first_id": MODELS[0], "last_id": MODELS[-1], "has_more": False}
    return make_response({"data": listed, **page})


async def _get_model(request: Request) -> Response:
    return make_response(_describe_model(_resolve_model(str(request.path_params["model"]))))


def _describe_model(name: str) -> JsonObject:
    return {
        "type": "model",
        "id": name,
        "display_name": f"{name} (sandbox)",
        "created_at": "2026-11-20T00:00:00Z",
        "lifecycle": "active",
    }


def _resolve_model(name: str) -> str:
    bare = name.removesuffix(MODEL_SUFFIX)
    if bare not in MODELS:
        raise AnthropicRefusalError(404, f"model: {name}")
    return bare


async def _create_message(request: Request) -> Response:
    try:
        body = await read_json_object(request)
    except NotJsonError:
        raise AnthropicRefusalError(400, "The request body is not valid JSON") from None
    _check_fields(body)
    model = _resolve_model(body["model"])
    _check_sampling(request, body)
    _check_turns(body["messages"])
    schema = _parse_schema(body)
    turns = parse_turns(body["messages"])
    if body.get("system"):
        turns.insert(0, ChatTurn("system", extract_text(body["system"])))
    reply = generate_reply(turns, schema=schema, max_tokens=body["max_tokens"])
    if reply.prompt_tokens > CONTEXT_TOKENS:
        raise AnthropicRefusalError(
            400, f"prompt is too long: {reply.prompt_tokens} tokens > {CONTEXT_TOKENS} maximum"
        )
    mark_billed(request)
    head = _build_head(get_request_digest(request), model)
    # Priority capacity serves an account that has bought it, unless a request asks for none of it.
    is_standard = body.get("service_tier") == "standard_only"
    tier = None if is_standard else get_project_tier(request)
    if body.get("stream"):
        events = _stream_events(head, reply, tier)
        return StreamingResponse(events, media_type="text/event-stream")
    return make_response(
        {
            **head,
            "content": [{"type": "text", "text": reply.text, "citations": None}],
            "stop_reason": _choose_stop_reason(reply),
            "usage": _build_usage(reply.prompt_tokens, reply.completion_tokens, tier),
        }
    )


def _check_fields(body: JsonObject) -> None:
    for name in body:
        if name not in FIELDS:
            raise AnthropicRefusalError(400, f"{name}: Extra inputs are not permitted")
    for name in ("model", "max_tokens", "messages"):
        if body.get(name) is None:
            raise AnthropicRefusalError(400, f"{name}: Field required")
    for name, value in body.items():
        if not has_json_type(value, FIELDS[name]):
            wanted = FIELDS[name].replace("|null", "").replace("|", " or ")
            raise AnthropicRefusalError(
                400, f"{name}: Input should be a valid {wanted}, not {get_json_type(value)}"
            )
    if body.get("service_tier") not in (None, *SERVICE_TIERS):
        choices = " or ".join(map(repr, SERVICE_TIERS))
        raise AnthropicRefusalError(400, f"service_tier: Input should be {choices}")
    if body["max_tokens"] < 1:
        raise AnthropicRefusalError(400, "max_tokens: Input should be greater than or equal to 1")


def _check_sampling(request: Request, body: JsonObject) -> None:
    """Check the sampling parameters: the newer version takes none, the older a temperature."""
    for name in ("temperature", "top_p", "top_k"):
        if body.get(name) is None:
            continue
        if request.headers["anthropic-version"] == VERSIONS[-1]:
            raise AnthropicRefusalError(400, f"{name}: this parameter is not supported")
        if name != "top_k" and not 0 <= body[name] <= 1:
            raise AnthropicRefusalError(400, f"{name}: Input should be between 0 and 1")


def _check_turns(messages: list[object]) -> None:
    if not messages:
        raise AnthropicRefusalError(400, "messages: at least one message is required")
    for place, one in enumerate(messages):
        where = f"messages.{place}"
        if not isinstance(one, dict) or one.get("role") not in ("user", "assistant"):
            raise AnthropicRefusalError(400, f'{where}.role: Input should be "user" or "assistant"')
        if not has_json_type(one.get("content"), "string|array") or not one["content"]:
            raise AnthropicRefusalError(
                400, f"{where}.content: must be a non-empty string or array"
            )
        if isinstance(one["content"], list):
            _check_blocks(f"{where}.content", one["content"])


def _check_blocks(where: str, blocks: list[object]) -> None:
    for place, block in enumerate(blocks):
        if not isinstance(block, dict) or not has_json_type(block.get("type"), "string"):
            raise AnthropicRefusalError(400, f"{where}.{place}.type: Field required")
        if block["type"] == "text" and not (
            has_json_type(block.get("text"), "string") and block["text"]
        ):
            raise AnthropicRefusalError(400, f"{where}.{place}.text.text: must be non-empty")


def _parse_schema(body: JsonObject) -> JsonObject | None:
    wanted = (body.get("output_config") or {}).get("format")
    if wanted is None:
        return None
    if not isinstance(wanted, dict) or wanted.get("type") != "json_schema":
        raise AnthropicRefusalError(400, "output_config.format.type: Input should be 'json_schema'")
    schema = wanted.get("schema")
    if not isinstance(schema, dict):
        raise AnthropicRefusalError(400, "output_config.format.schema: Field required")
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        raise AnthropicRefusalError(
            400,
            "output_config.format.schema: For 'object' type, 'additionalProperties' must be"
            " explicitly set to false",
        )
    return schema


def _build_head(digest: str, model: str) -> JsonObject:
    return {
        "id": f"msg_{digest[:24]}",
        "type": "message",
        "role": "assistant",
        "model": model + MODEL_SUFFIX,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {},
    }


def _choose_stop_reason(reply: SimulatedReply) -> str:
    return "max_tokens" if reply.finish == "length" else "end_turn"


def _build_usage(given: int, made: int, tier: str | None) -> JsonObject:
    return {
        "input_tokens": given,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": made,
        "service_tier": tier or "standard",
    }


async def _stream_events(
    head: JsonObject, reply: SimulatedReply, tier: str | None
) -> AsyncIterator[str]:
    started = {**head, "usage": _build_usage(reply.prompt_tokens, 1, tier)}
    yield format_named_event("message_start", {"message": started})
    block = {"type": "text", "text": "", "citations": None}
    yield format_named_event("content_block_start", {"index": 0, "content_block": block})
    for piece in iter_pieces(reply.text):
        delta = {"type": "text_delta", "text": piece}
        yield format_named_event("content_block_delta", {"index": 0, "delta": delta})
    yield format_named_event("content_block_stop", {"index": 0})
    ended = {"stop_reason": _choose_stop_reason(reply), "stop_sequence": None}
    usage = {"output_tokens": reply.completion_tokens}
    yield format_named_event("message_delta", {"delta": ended, "usage": usage})
    yield format_named_event("message_stop", {})
