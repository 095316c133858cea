"""The `google` wire: generateContent, embeddings and models, as in the Gemini API."""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute

from toolkit.sandbox.audio.transcripts import HeardRecording, hear_recording
from toolkit.sandbox.event_streams import format_event
from toolkit.sandbox.json_http import (
    BodyFault,
    Handler,
    JsonObject,
    RefusalError,
    RequestBody,
    build_checked_routes,
    read_body,
)
from toolkit.sandbox.state import SandboxState, get_request_digest, mark_billed
from toolkit.sandbox.text.chat import (
    ChatTurn,
    SimulatedReply,
    count_prompt_tokens,
    count_tokens,
    decode_picture,
    generate_reply,
    iter_pieces,
    limit_reply,
)
from toolkit.sandbox.text.tool_use import NO_TOOLS, OfferedTool, ToolOffer
from toolkit.sandbox.text.vectors import embed_text
from toolkit.sandbox.vendor_paths import SANDBOX_KEYS

MODEL_SUFFIX = "-sandbox"


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """The limits of a model that requests are checked against.

    Attributes:
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
PICTURE_TOKENS = 1_120
SOUND_TOKENS_PER_SECOND = 32
EMBEDDING_MODELS, EMBEDDING_DIMENSIONS = ("gemini-embedding-001",), 3_072
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


# JSON of protocol buffers may name fields either way, and the SDK does.
class ThinkingConfig(RequestBody, extra="ignore", alias_generator=to_camel, populate_by_name=True):
    """The limits of a model's thoughts, validated against the model."""

    thinking_budget: Any = None
    thinking_level: Any = None
    include_thoughts: bool | None = None


class GenerationConfig(RequestBody, alias_generator=to_camel):
    """The settings of an answer."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: float | None = None
    max_output_tokens: int | None = None
    candidate_count: int | None = None
    stop_sequences: list[str] | None = None
    response_mime_type: str | None = None
    response_json_schema: JsonObject | None = None
    response_schema: JsonObject | None = None
    seed: int | None = None
    thinking_config: ThinkingConfig | None = None


class FunctionDeclaration(RequestBody, alias_generator=to_camel, populate_by_name=True):
    """A function that the model may ask for."""

    name: str
    description: str | None = None
    parameters: JsonObject | None = None
    parameters_json_schema: JsonObject | None = None
    response: JsonObject | None = None
    response_json_schema: JsonObject | None = None
    behavior: str | None = None


class ContentTool(RequestBody, alias_generator=to_camel):
    """The functions of a request."""

    function_declarations: list[FunctionDeclaration] = Field(default_factory=list)


class CallingConfig(RequestBody, alias_generator=to_camel):
    """Which functions the model may, must or must not ask for."""

    mode: Literal["AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED"] | None = None
    allowed_function_names: list[str] | None = None


class ToolConfig(RequestBody, extra="ignore", alias_generator=to_camel):
    """The settings of tools."""

    function_calling_config: CallingConfig | None = None


class ContentRequest(RequestBody, alias_generator=to_camel):
    """The body of a request for content."""

    contents: list[Content] = Field(min_length=1)
    system_instruction: SystemInstruction | None = None
    generation_config: GenerationConfig | None = None
    safety_settings: list[Any] | None = None
    tools: list[ContentTool] | None = None
    tool_config: ToolConfig | None = None
    cached_content: str | None = None
    labels: JsonObject | None = None
    service_tier: str | None = None

    @property
    def config(self) -> GenerationConfig:
        """The settings of the answer."""
        return self.generation_config or GenerationConfig()


class ContentEmbedBody(RequestBody, alias_generator=to_camel):
    """The body of a request for the vector of one text."""

    model: str | None = None
    content: Content
    task_type: str | None = None
    title: str | None = None
    output_dimensionality: int | None = Field(None, ge=1, le=3_072)


class EmbedBatchRequest(RequestBody):
    """The body of a request for the vectors of several texts."""

    requests: list[ContentEmbedBody] = Field(min_length=1, max_length=100)


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
    act = make_action({"embedContent": _embed_content, "batchEmbedContents": _embed_contents})
    return build_checked_routes(
        check_request,
        (
            ("GET", "/{version:str}/models", _list_models),
            ("POST", "/{version:str}/models/{action}", act),
        ),
    )


def make_action(embedders: Mapping[str, Handler]) -> Handler:
    """Make the handler of the actions of models, which their paths name.

    Args:
        embedders: handlers of the actions of embedding models.
    """
    handlers = {
        "generateContent": _generate_content,
        "streamGenerateContent": _stream_content,
        "countTokens": _count_content_tokens,
    }

    async def act(request: Request) -> Response:
        name, _, action = str(request.path_params["action"]).partition(":")
        if name in EMBEDDING_MODELS and action in embedders:
            return await embedders[action](request)
        handler = handlers.get(action)
        if handler is None:
            raise refuse(404, f"Method {action!r} is not found.")
        return await handler(request, resolve_model(name, str(request.path_params["version"])))

    return act


def check_request(request: Request) -> None:
    """Check the version and the key of a request."""
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


def _describe_model(name: str) -> JsonObject:
    return {
        "name": f"models/{name}",
        "version": "sandbox",
        "displayName": f"{name} (sandbox)",
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": MODELS[name].output_limit,
        "supportedGenerationMethods": ["generateContent"],
    }


def resolve_model(name: str, version: str) -> str:
    """Return the name of a model, which may be given by an alias."""
    bare = ALIASES.get(name, name) if version == "v1beta" else name
    if bare not in MODELS:
        raise refuse(
            404, f"models/{name} is not found for API version {version}, or is not supported."
        )
    return bare


def refuse_body(faults: list[BodyFault]) -> RefusalError:
    """Make the refusal of a body with these faults."""
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
    """Parse the messages: answers of functions become turns of their own."""
    turns: list[ChatTurn] = []
    if body.system_instruction is not None:
        turns.append(ChatTurn("system", _join_parts(body.system_instruction.parts or [])))
    for content in body.contents:
        parts = [part for part in content.parts if isinstance(part, dict)]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        turns += [ChatTurn("tool", _join_result(result)) for result in results]
        images = [part["inlineData"] for part in parts if "inlineData" in part]
        images = [image for image in images if not _is_sound(image)]
        try:
            pictures = tuple(decode_picture(image["data"]) for image in images)
        except (KeyError, TypeError, ValueError):
            raise refuse(400, "Unable to process input image.") from None
        text = _join_parts([part for part in parts if "text" in part])
        if text or pictures or not results:
            role = "assistant" if content.role == "model" else "user"
            turns.append(ChatTurn(role, text, pictures))
    return turns


def _is_sound(data: Any) -> bool:
    if not isinstance(data, dict):
        return False
    # JSON of protocol buffers may name fields either way, and the SDK does.
    return str(data.get("mimeType") or data.get("mime_type")).startswith("audio/")


def _hear_sounds(body: ContentRequest) -> list[HeardRecording]:
    """Hear the sounds of a conversation, which the simulated model transcribes."""
    parts = [part for content in body.contents for part in content.parts if isinstance(part, dict)]
    heard: list[HeardRecording] = []
    for data in (part["inlineData"] for part in parts if _is_sound(part.get("inlineData"))):
        try:
            # Either alphabet of base64 is valid there.
            encoded = str(data["data"]).replace("-", "+").replace("_", "/")
            recording = hear_recording(base64.b64decode(encoded, validate=True))
        except (KeyError, ValueError):
            recording = None
        if recording is None:
            raise refuse(400, "Unable to process input audio.")
        heard.append(recording)
    return heard


def _write_transcript(heard: HeardRecording, *, wants_json: bool) -> str:
    if not wants_json:
        return heard.text
    segments = [asdict(part) for part in heard.sentences]
    return json.dumps({"language": heard.language, "segments": segments}, ensure_ascii=False)


def _join_result(result: JsonObject) -> str:
    """Join the values that a function returned."""
    response = result.get("response")
    return " ".join(map(str, response.values())) if isinstance(response, dict) else str(response)


def _check_signatures(body: ContentRequest) -> None:
    """Check that the first call of each message is signed, as the newer models require."""
    for place, content in enumerate(body.contents):
        calls = [p for p in content.parts if isinstance(p, dict) and "functionCall" in p]
        if calls and not calls[0].get("thoughtSignature"):
            message = f"Function call in contents.{place} is missing a thought_signature."
            raise refuse(400, message)


def _make_offer(body: ContentRequest) -> ToolOffer:
    declared = [
        declaration for tool in body.tools or () for declaration in tool.function_declarations
    ]
    tools = [
        OfferedTool(
            each.name,
            each.description or "",
            each.parameters_json_schema
            or _lower_types(each.parameters)
            or {"type": "object", "properties": {}},
        )
        for each in declared
    ]
    calling = (body.tool_config or ToolConfig()).function_calling_config or CallingConfig()
    mode = (calling.mode or "AUTO").upper()
    names = calling.allowed_function_names or [tool.name for tool in tools]
    if mode == "NONE":
        return NO_TOOLS
    return ToolOffer(
        [tool for tool in tools if tool.name in names], is_required=mode in ("ANY", "VALIDATED")
    )


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


async def _generate_answer(
    request: Request, model: str
) -> tuple[SimulatedReply, list[JsonObject], dict[str, str]]:
    """Generate the answer to a request; return it, its parts and the headers of its response."""
    body = await read_body(request, ContentRequest, refuse_body)
    config = body.config
    schema = config.response_json_schema or config.response_schema
    wants_json = config.response_mime_type == "application/json"
    if schema is not None and not wants_json:
        raise refuse(400, "response_schema needs response_mime_type application/json")
    tier = (body.service_tier or SERVICE_TIERS[0]).lower()
    if tier not in SERVICE_TIERS:
        raise refuse(400, f"Invalid value at 'service_tier': {tier!r}.")
    _check_signatures(body)
    turns, thoughts = _parse_turns(body), _count_thoughts(config.thinking_config, MODELS[model])
    heard = _hear_sounds(body)
    if heard:
        sounds = sum(round(sound.seconds * SOUND_TOKENS_PER_SECOND) for sound in heard)
        prompt_tokens = count_prompt_tokens(turns) + sounds
        text = _write_transcript(heard[-1], wants_json=wants_json)
        reply = limit_reply(text, prompt_tokens, thoughts, config.max_output_tokens)
    else:
        reply = generate_reply(
            turns,
            schema=_lower_types(schema),
            want_json=wants_json,
            max_tokens=config.max_output_tokens,
            reasoning_tokens=thoughts,
            offer=_make_offer(body),
            stop=config.stop_sequences or (),
            count_picture=lambda _: PICTURE_TOKENS,
        )
    mark_billed(request)
    shows_thoughts = bool(config.thinking_config and config.thinking_config.include_thoughts)
    parts = _build_parts(reply, get_request_digest(request), shows_thoughts=shows_thoughts)
    return reply, parts, {"x-gemini-service-tier": tier}


def _build_parts(reply: SimulatedReply, digest: str, *, shows_thoughts: bool) -> list[JsonObject]:
    """Build the parts of an answer: its thoughts, its text and its calls to functions."""
    parts: list[JsonObject] = []
    if shows_thoughts and reply.reasoning_tokens:
        parts.append({"text": reply.reasoning, "thought": True})
    if reply.text or not reply.calls:
        parts.append({"text": reply.text})
    for place, call in enumerate(reply.calls):
        asked = {"id": f"{digest[:8]}{place}", "name": call.name, "args": call.arguments}
        signature = {"thoughtSignature": digest[:32]} if place == 0 else {}
        parts.append({"functionCall": asked, **signature})
    return parts


def _count_thoughts(config: ThinkingConfig | None, traits: ModelTraits) -> int:
    """Count the tokens of the thoughts that a request allows."""
    budget, level = None, None
    if config is not None:
        budget, level = config.thinking_budget, config.thinking_level
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
    reply, parts, headers = await _generate_answer(request, model)
    return JSONResponse(_build_chunk(request, model, reply, parts), headers=headers)


async def _stream_content(request: Request, model: str) -> Response:
    reply, parts, headers = await _generate_answer(request, model)
    steps = [
        {**part, "text": piece} if "text" in part else part
        for part in parts
        for piece in list(iter_pieces(part.get("text", ""))) or [""]
    ]
    chunks = [
        _build_chunk(request, model, reply, [step], is_last=place == len(steps))
        for place, step in enumerate(steps, start=1)
    ]
    if request.query_params.get("alt") != "sse":
        return Response(json.dumps(chunks), media_type="application/json", headers=headers)

    async def events() -> AsyncIterator[str]:
        for chunk in chunks:
            yield format_event(chunk)

    return StreamingResponse(events(), media_type="text/event-stream", headers=headers)


async def _embed_content(request: Request) -> Response:
    body = await read_body(request, ContentEmbedBody, refuse_body)
    mark_billed(request)
    return JSONResponse({"embedding": embed_content(body.content, body.output_dimensionality)})


async def _embed_contents(request: Request) -> Response:
    body = await read_body(request, EmbedBatchRequest, refuse_body)
    mark_billed(request)
    vectors = [embed_content(each.content, each.output_dimensionality) for each in body.requests]
    return JSONResponse({"embeddings": vectors})


def embed_content(content: Content, dimensions: int | None) -> JsonObject:
    """Embed the text of a message."""
    text = _join_parts(content.parts)
    return {"values": embed_text(text, dimensions or EMBEDDING_DIMENSIONS)}


def count_words(content: Content) -> int:
    """Count the tokens of the text of a message."""
    return count_tokens(_join_parts(content.parts))


async def _count_content_tokens(request: Request, _model_name: str) -> Response:
    body = await read_body(request, ContentRequest, refuse_body)
    return JSONResponse({"totalTokens": count_prompt_tokens(_parse_turns(body))})


def _build_chunk(
    request: Request,
    model: str,
    reply: SimulatedReply,
    parts: list[JsonObject],
    *,
    is_last: bool = True,
) -> JsonObject:
    candidate: JsonObject = {"content": {"role": "model", "parts": parts}, "index": 0}
    if is_last:
        candidate["finishReason"] = "MAX_TOKENS" if reply.finish == "length" else "STOP"
    modalities = {"TEXT": reply.prompt_tokens - reply.picture_tokens, "IMAGE": reply.picture_tokens}
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": reply.prompt_tokens,
            "promptTokensDetails": [
                {"modality": modality, "tokenCount": tokens}
                for modality, tokens in modalities.items()
                if tokens
            ],
            "candidatesTokenCount": reply.completion_tokens - reply.reasoning_tokens,
            "thoughtsTokenCount": reply.reasoning_tokens,
            "totalTokenCount": reply.prompt_tokens + reply.completion_tokens,
        },
        "modelVersion": model + MODEL_SUFFIX,
        "responseId": get_request_digest(request)[:22],
    }
