"""The `anthropic` wire: messages and models, checked as strictly as the vendor checks."""

import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute

from toolkit.sandbox.event_streams import format_named_event
from toolkit.sandbox.json_http import (
    JsonObject,
    RefusalError,
    RequestBody,
    build_checked_routes,
    get_bearer_key,
    read_body,
    refuse_first_fault,
)
from toolkit.sandbox.pictures.sight import count_patches
from toolkit.sandbox.state import (
    SandboxState,
    get_call,
    get_effects,
    get_request_digest,
    mark_billed,
)
from toolkit.sandbox.text.chat import (
    ChatMessage,
    ChatTurn,
    SimulatedReply,
    decode_picture,
    extract_text,
    generate_reply,
    iter_pieces,
)
from toolkit.sandbox.text.tool_use import OfferedTool, ToolOffer
from toolkit.sandbox.vendor_paths import SANDBOX_KEYS

MODEL_SUFFIX = "-sandbox"
CONTEXT_TOKENS = 200_000
MODELS = ("claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-4-5")
# The last models that take a budget of thoughts; newer models choose by themselves.
BUDGET_MODELS = ("claude-haiku-4-5",)
THOUGHT_TOKENS = 32
_count_picture = partial(count_patches, patch=28, longest=2_576, most=4_784)
VERSIONS = ("2023-06-01", "2026-10-21")
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class MessageTurn(ChatMessage):
    """A message of a conversation; its content is checked by `_check_content`."""

    role: Literal["user", "assistant"]


class SchemaFormat(RequestBody, extra="ignore"):
    """A JSON schema that the answer must match."""

    type: Literal["json_schema"]
    json_schema: JsonObject = Field(alias="schema")


class OutputConfig(RequestBody, extra="ignore"):
    """The form of the answer."""

    format: SchemaFormat | None = None
    effort: Literal["low", "medium", "high", "max"] | None = None


class MessageTool(RequestBody, extra="ignore"):
    """A tool of a request."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,128}$")
    description: str | None = None
    input_schema: JsonObject


class ToolChoice(RequestBody, extra="ignore"):
    """Whether the model may, must or must not ask for a tool."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None


class Thinking(RequestBody, extra="ignore"):
    """Whether the model may think; newer models choose by themselves how much."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: int | None = None
    display: Literal["summarized", "omitted"] | None = None


class MessageRequest(RequestBody):
    """The body of a request for a message."""

    model: str
    max_tokens: int = Field(ge=1)
    messages: list[MessageTurn] = Field(min_length=1)
    system: str | list[Any] | None = None
    temperature: float | None = Field(None, ge=0, le=1)
    top_p: float | None = Field(None, ge=0, le=1)
    top_k: int | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    metadata: JsonObject | None = None
    output_config: OutputConfig | None = None
    thinking: Thinking | None = None
    tools: list[MessageTool] | None = None
    tool_choice: ToolChoice | None = None
    service_tier: Literal["auto", "standard_only"] | None = None


class AnthropicRefusalError(RefusalError):
    """A refusal in the vendor's format, which names the request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message, status)
        self.error = {"type": _ERROR_TYPES.get(status, "api_error"), "message": message}

    def build_response(self, request: Request) -> Response:
        """Build the response, which has the id of the request."""
        request_id = f"req_{get_call(request).request_id[:24]}"
        body = {"type": "error", "error": self.error, "request_id": request_id}
        return JSONResponse(body, self.status)


refuse_body = refuse_first_fault(
    partial(AnthropicRefusalError, 400), "The request body is not valid JSON"
)


def build_routes(_: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    return build_checked_routes(
        check_headers,
        (
            ("GET", "/v1/models", _list_models),
            ("POST", "/v1/messages", _create_message),
        ),
    )


def check_headers(request: Request) -> None:
    """Check the key and the version of a request."""
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
    return JSONResponse({"data": listed, **page})


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
    body = await read_body(request, MessageRequest, refuse_body)
    model = _resolve_model(body.model)
    if request.headers["anthropic-version"] == VERSIONS[-1]:
        _refuse_sampling(body)
    for place, message in enumerate(body.messages):
        _check_content(f"messages.{place}.content", message.content)
    turns = _parse_turns(body.messages)
    if body.system:
        turns.insert(0, ChatTurn("system", extract_text(body.system)))
    thinks = _check_thinking(body, model)
    reply = generate_reply(
        turns,
        schema=_parse_schema(body),
        max_tokens=body.max_tokens,
        reasoning_tokens=THOUGHT_TOKENS if thinks else 0,
        offer=_make_offer(body),
        stop=body.stop_sequences or (),
        count_picture=_count_picture,
    )
    if reply.prompt_tokens > CONTEXT_TOKENS:
        raise AnthropicRefusalError(
            400, f"prompt is too long: {reply.prompt_tokens} tokens > {CONTEXT_TOKENS} maximum"
        )
    is_batched = bool(get_call(request).custom_id)
    if is_batched and body.stream:
        raise AnthropicRefusalError(400, "stream: not supported in a message batch")
    mark_billed(request)
    head = _build_head(get_request_digest(request), model)
    content = _build_content(reply, thinks, head["id"][4:])
    # Priority capacity serves an account that has bought it, unless a request rules it out.
    is_standard = body.service_tier == "standard_only"
    tier = None if is_standard else get_effects(request).service_tier
    if is_batched:
        tier = "batch"
    if body.stream:
        events = _stream_events(head, content, reply, tier)
        return StreamingResponse(events, media_type="text/event-stream")
    return JSONResponse(
        {
            **head,
            "content": content,
            "stop_reason": _choose_stop_reason(reply),
            "usage": {
                **_build_usage(reply.prompt_tokens, reply.completion_tokens, tier),
                **_build_details(reply),
            },
        }
    )


def _refuse_sampling(body: MessageRequest) -> None:
    """Refuse sampling parameters, because the newer version accepts none of them."""
    for name in ("temperature", "top_p", "top_k"):
        if getattr(body, name) is not None:
            raise AnthropicRefusalError(400, f"{name}: this parameter is not supported")


def _check_content(path: str, content: str | list[Any] | None) -> None:
    if not content:
        raise AnthropicRefusalError(400, f"{path}: must be a non-empty string or array")
    for place, block in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise AnthropicRefusalError(400, f"{path}.{place}.type: Field required")
        text = block.get("text")
        if block["type"] == "text" and not (isinstance(text, str) and text):
            raise AnthropicRefusalError(400, f"{path}.{place}.text.text: must be non-empty")


def _parse_turns(messages: list[MessageTurn]) -> list[ChatTurn]:
    """Parse the messages: answers of tools become turns of their own."""
    turns = []
    for place, message in enumerate(messages):
        blocks = message.content if isinstance(message.content, list) else []
        results = [block for block in blocks if block.get("type") == "tool_result"]
        turns += [ChatTurn("tool", extract_text(block.get("content"))) for block in results]
        try:
            pictures = tuple(
                decode_picture(block["source"]["data"])
                for block in blocks
                if block.get("type") == "image"
            )
        except (KeyError, TypeError, ValueError):
            where = f"messages.{place}.content"
            raise AnthropicRefusalError(400, f"{where}: Could not process image") from None
        text = extract_text(message.content)
        if text or pictures or not results:
            turns.append(ChatTurn(message.role, text, pictures))
    return turns


def _check_thinking(body: MessageRequest, model: str) -> bool:
    """Check whether the model thinks, as far as it may be asked to."""
    if body.thinking is None or body.thinking.type == "disabled":
        return False
    has_budget = body.thinking.type == "enabled"
    if has_budget != (model in BUDGET_MODELS):
        raise AnthropicRefusalError(400, f"thinking.type.{body.thinking.type}: not supported")
    if has_budget and not 1024 <= (body.thinking.budget_tokens or 0) < body.max_tokens:
        raise AnthropicRefusalError(400, "thinking.budget_tokens: must be 1024 to max_tokens")
    return True


def _make_offer(body: MessageRequest) -> ToolOffer:
    tools = [
        OfferedTool(tool.name, tool.description or "", tool.input_schema)
        for tool in body.tools or ()
    ]
    choice = body.tool_choice or ToolChoice(type="auto")
    if body.tool_choice is not None and not tools:
        raise AnthropicRefusalError(400, "tool_choice: may only be specified with tools")
    if choice.type == "tool" and choice.name not in [tool.name for tool in tools]:
        raise AnthropicRefusalError(400, f"tool_choice: tool {choice.name!r} not found")
    is_forced = choice.type in ("any", "tool")
    if is_forced and body.thinking is not None and body.thinking.type != "disabled":
        raise AnthropicRefusalError(400, "Thinking may not be enabled when tool use is forced.")
    return ToolOffer(
        tools if choice.type != "none" else (), is_required=is_forced, named=choice.name or ""
    )


def _parse_schema(body: MessageRequest) -> JsonObject | None:
    spec = body.output_config.format if body.output_config is not None else None
    if spec is None:
        return None
    schema = spec.json_schema
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
    return {"length": "max_tokens", "tool_calls": "tool_use"}.get(reply.finish, "end_turn")


def _build_content(reply: SimulatedReply, thinks: bool, digest: str) -> list[JsonObject]:
    """Build the blocks of an answer: its thoughts, its text and its calls to tools."""
    blocks: list[JsonObject] = []
    if thinks:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": digest})
    if reply.text or not reply.calls:
        blocks.append({"type": "text", "text": reply.text, "citations": None})
    for place, call in enumerate(reply.calls):
        id = f"toolu_{digest[:20]}{place}"
        blocks.append({"type": "tool_use", "id": id, "name": call.name, "input": call.arguments})
    return blocks


def _build_usage(input_tokens: int, output_tokens: int, tier: str | None) -> JsonObject:
    return {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
        "service_tier": tier or "standard",
    }


def _build_details(reply: SimulatedReply) -> JsonObject:
    return {"output_tokens_details": {"thinking_tokens": reply.reasoning_tokens}}


async def _stream_events(
    head: JsonObject, content: list[JsonObject], reply: SimulatedReply, tier: str | None
) -> AsyncIterator[str]:
    started = {**head, "usage": _build_usage(reply.prompt_tokens, 1, tier)}
    yield format_named_event("message_start", {"message": started})
    for index, block in enumerate(content):
        for name, data in _stream_block(block):
            yield format_named_event(name, {"index": index, **data})
    ended = {"stop_reason": _choose_stop_reason(reply), "stop_sequence": None}
    usage = {"output_tokens": reply.completion_tokens, **_build_details(reply)}
    yield format_named_event("message_delta", {"delta": ended, "usage": usage})
    yield format_named_event("message_stop", {})


def _stream_block(block: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield the events of a block: it begins empty, and its pieces follow."""
    empty: JsonObject
    match block["type"]:
        case "text":
            empty, whole, kind, member = {"text": ""}, block["text"], "text_delta", "text"
        case "thinking":
            empty, whole = {"thinking": "", "signature": ""}, block["thinking"]
            kind, member = "thinking_delta", "thinking"
        case _:
            empty, whole = {"input": {}}, json.dumps(block["input"], ensure_ascii=False)
            kind, member = "input_json_delta", "partial_json"
    yield "content_block_start", {"content_block": {**block, **empty}}
    for piece in iter_pieces(whole):
        yield "content_block_delta", {"delta": {"type": kind, member: piece}}
    if block["type"] == "thinking":
        signed = {"type": "signature_delta", "signature": block["signature"]}
        yield "content_block_delta", {"delta": signed}
    yield "content_block_stop", {}
