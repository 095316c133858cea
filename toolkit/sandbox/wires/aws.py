"""The `aws` wire: Bedrock's Converse, with an API key or a signature that is recomputed."""

import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.event_streams import format_event_frame
from toolkit.sandbox.json_http import (
    BodyFault,
    JsonObject,
    RefusalError,
    RequestBody,
    get_bearer_key,
    read_body,
)
from toolkit.sandbox.pictures.sight import count_patches
from toolkit.sandbox.state import SandboxState, get_call, mark_billed
from toolkit.sandbox.text.chat import (
    ChatTurn,
    SimulatedReply,
    count_tokens,
    decode_picture,
    generate_reply,
    iter_pieces,
)
from toolkit.sandbox.text.tool_use import NO_TOOLS, OfferedTool, ToolOffer
from toolkit.sandbox.text.vectors import embed_text, rank_documents
from toolkit.sandbox.vendor_paths import ACCESS_KEY, SANDBOX_KEYS, SIGNING_KEY
from toolkit.sandbox.wires.aws_signature import check_signature

THOUGHT_TOKENS = 32
_count_picture = partial(count_patches, patch=28, longest=2_576, most=4_784)
RERANK_MODEL = "cohere.rerank-v3-5:0"
TITAN_MODEL, COHERE_MODEL = "amazon.titan-embed-text-v2:0", "cohere.embed-v4:0"
MODELS = (
    "amazon.nova-2-lite-v1:0",
    "amazon.nova-micro-v1:0",
    "anthropic.claude-haiku-5-5",
    "openai.gpt-oss-120b-1:0",
)
# Models that are called by an inference profile, and the prefixes of the profiles.
PROFILES = {
    "amazon.nova-2-lite-v1:0": ("us", "eu", "global"),
    "amazon.nova-micro-v1:0": ("us", "eu", "apac"),
    "anthropic.claude-haiku-5-5": ("us", "eu", "global"),
}
BARE_MODEL_REGIONS = {
    "amazon.nova-micro-v1:0": ("us-east-1",)
}  # regions in which no profile is needed
REGION_GROUPS = {"us": "us", "eu": "eu", "ap": "apac"}


class ConverseMessage(RequestBody, extra="ignore"):
    """A message of a conversation."""

    role: Literal["user", "assistant"]
    content: list[JsonObject]


class InferenceConfig(RequestBody, alias_generator=to_camel):
    """The settings of an answer."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: list[str] | None = None


class ServiceTier(RequestBody, extra="ignore"):
    """The tier that serves a request."""

    type: Literal["priority", "default", "flex", "reserved"] = "default"


class TitanEmbedRequest(RequestBody, alias_generator=to_camel):
    """The body of a request for the vector of one text, to Titan Text Embeddings V2."""

    input_text: str = Field(min_length=1, max_length=50_000)
    dimensions: Literal[256, 512, 1024] | None = None
    normalize: bool | None = None
    embedding_types: list[Literal["float", "binary"]] | None = None


class CohereEmbedRequest(RequestBody):
    """The body of a request for vectors, to Cohere's Embed v4."""

    texts: list[str] = Field(min_length=1, max_length=96)
    input_type: Literal["search_document", "search_query", "classification", "clustering"]
    embedding_types: list[Literal["float", "int8", "uint8", "binary", "ubinary"]] | None = None
    output_dimension: Literal[256, 512, 1024, 1536] | None = None
    truncate: Literal["NONE", "LEFT", "RIGHT"] | None = None
    max_tokens: int | None = None


class CohereRerankRequest(RequestBody):
    """The body of a request to rank documents, to Cohere's Rerank 3.5."""

    query: str = Field(min_length=1)
    documents: list[str] = Field(min_length=1, max_length=1_000)
    api_version: Literal[2]
    top_n: int | None = Field(None, ge=1)


class ConverseRequest(RequestBody, alias_generator=to_camel):
    """The body of a request for a turn of a conversation."""

    messages: list[ConverseMessage] = Field(min_length=1)
    system: list[JsonObject] | None = None
    inference_config: InferenceConfig | None = None
    output_config: JsonObject | None = None
    tool_config: JsonObject | None = None
    guardrail_config: JsonObject | None = None
    additional_model_request_fields: JsonObject | None = None
    additional_model_response_field_paths: list[Any] | None = None
    request_metadata: JsonObject | None = None
    performance_config: JsonObject | None = None
    service_tier: ServiceTier | None = None


def refuse(status: int, name: str, message: str) -> RefusalError:
    """Make a refusal in the vendor's format: the name of the error is in a header."""
    return RefusalError({"message": message}, status, {"x-amzn-errortype": name})


def build_routes(_: SandboxState) -> list[BaseRoute]:
    """Build the routes of the vendor's paths."""
    return [
        Route("/model/{model:path}/converse", _converse, methods=["POST"]),
        Route("/model/{model:path}/converse-stream", _stream_converse, methods=["POST"]),
        Route("/model/{model:path}/invoke", _invoke, methods=["POST"]),
    ]


async def check_caller(request: Request) -> None:
    """Check the API key or the signature of a request."""
    key = get_bearer_key(request)
    if key is None:
        await check_signature(request, ACCESS_KEY, SIGNING_KEY)
    elif key != SANDBOX_KEYS["AWS_BEARER_TOKEN_BEDROCK"]:
        raise refuse(403, "AccessDeniedException", "Authentication failed: bad API key.")


async def _converse(request: Request) -> Response:
    reply, tier = await _generate_answer(request)
    message = {"role": "assistant", "content": _build_content(reply)}
    head = {"output": {"message": message}, "stopReason": _choose_stop_reason(reply)}
    return JSONResponse({**head, **_measure(reply, tier)})


async def _stream_converse(request: Request) -> Response:
    reply, tier = await _generate_answer(request)

    async def frames() -> AsyncIterator[bytes]:
        yield format_event_frame("messageStart", {"role": "assistant"})
        for index, block in enumerate(_build_content(reply)):
            place = {"contentBlockIndex": index}
            if "toolUse" in block:
                named = {name: block["toolUse"][name] for name in ("toolUseId", "name")}
                yield format_event_frame(
                    "contentBlockStart", {**place, "start": {"toolUse": named}}
                )
            for delta in _split_block(block):
                yield format_event_frame("contentBlockDelta", {**place, "delta": delta})
            yield format_event_frame("contentBlockStop", place)
        yield format_event_frame("messageStop", {"stopReason": _choose_stop_reason(reply)})
        yield format_event_frame("metadata", _measure(reply, tier))

    return StreamingResponse(frames(), media_type="application/vnd.amazon.eventstream")


async def _invoke(request: Request) -> Response:
    """Embed or rank texts: only such models are called by their own bodies here."""
    await check_caller(request)
    model = str(request.path_params["model"]).removeprefix("global.").removeprefix("us.")
    if model == TITAN_MODEL:
        titan = await read_body(request, TitanEmbedRequest, refuse_body)
        mark_billed(request)
        tokens = count_tokens(titan.input_text)
        vector = embed_text(titan.input_text, titan.dimensions or 1024)
        return JSONResponse({"embedding": vector, "inputTextTokenCount": tokens})
    if model == RERANK_MODEL:
        rerank = await read_body(request, CohereRerankRequest, refuse_body)
        mark_billed(request)
        rows = rank_documents(rerank.query, rerank.documents)
        return JSONResponse({"results": rows[: rerank.top_n]})
    if model != COHERE_MODEL:
        raise refuse(400, "ValidationException", "The provided model identifier is invalid.")
    body = await read_body(request, CohereEmbedRequest, refuse_body)
    mark_billed(request)
    tokens = sum(map(count_tokens, body.texts))
    vectors = [embed_text(text, body.output_dimension or 1536) for text in body.texts]
    answer = {"id": "embedding", "embeddings": {"float": vectors}, "texts": body.texts}
    return JSONResponse(answer, headers={"x-amzn-bedrock-input-token-count": str(tokens)})


def _choose_stop_reason(reply: SimulatedReply) -> str:
    return {"length": "max_tokens", "tool_calls": "tool_use"}.get(reply.finish, "end_turn")


def _build_content(reply: SimulatedReply) -> list[JsonObject]:
    """Build the blocks of an answer: its thoughts, its text and its calls to tools."""
    blocks: list[JsonObject] = []
    if reply.reasoning_tokens:
        blocks.append({"reasoningContent": {"reasoningText": {"text": reply.reasoning}}})
    if reply.text or not reply.calls:
        blocks.append({"text": reply.text})
    for place, call in enumerate(reply.calls):
        use = {"toolUseId": f"tooluse_{place}", "name": call.name, "input": call.arguments}
        blocks.append({"toolUse": use})
    return blocks


def _split_block(block: JsonObject) -> Iterator[JsonObject]:
    """Yield the deltas of a block; the input of a tool comes as pieces of JSON."""
    if "text" in block:
        yield from ({"text": piece} for piece in iter_pieces(block["text"]))
    elif "toolUse" in block:
        for piece in iter_pieces(json.dumps(block["toolUse"]["input"], ensure_ascii=False)):
            yield {"toolUse": {"input": piece}}
    else:
        thought = block["reasoningContent"]["reasoningText"]["text"]
        yield from ({"reasoningContent": {"text": piece}} for piece in iter_pieces(thought))


def _measure(reply: SimulatedReply, tier: str) -> JsonObject:
    usage = {
        "inputTokens": reply.prompt_tokens,
        "outputTokens": reply.completion_tokens,
        "totalTokens": reply.prompt_tokens + reply.completion_tokens,
    }
    return {"usage": usage, "metrics": {"latencyMs": 1}, "serviceTier": {"type": tier}}


async def _generate_answer(request: Request) -> tuple[SimulatedReply, str]:
    """Generate the answer to a request, and return it with the service tier that serves it."""
    await check_caller(request)
    bare = resolve_model(str(request.path_params["model"]), parse_region(request))
    body = await read_body(request, ConverseRequest, refuse_body)
    config = body.inference_config or InferenceConfig()
    if config.temperature is not None and "claude" in bare:
        raise refuse(400, "ValidationException", "temperature is not supported by this model.")
    if body.tool_config is not None and get_call(request).custom_id:
        raise refuse(400, "ValidationException", "Batch inference does not support toolConfig.")
    turns = _parse_turns(body.messages)
    if body.system:
        turns.insert(0, ChatTurn("system", _join_texts(body.system)))
    reply = generate_reply(
        turns,
        schema=_parse_schema(body),
        max_tokens=config.max_tokens,
        reasoning_tokens=_count_thoughts(body, config),
        offer=_make_offer(body.tool_config),
        stop=config.stop_sequences or (),
        count_picture=_count_picture,
    )
    mark_billed(request)
    return reply, (body.service_tier or ServiceTier()).type


def _parse_turns(messages: list[ConverseMessage]) -> list[ChatTurn]:
    """Parse the messages: answers of tools become turns of their own."""
    turns: list[ChatTurn] = []
    for message in messages:
        results = [block["toolResult"] for block in message.content if "toolResult" in block]
        turns += [ChatTurn("tool", _join_texts(result["content"])) for result in results]
        images = [block["image"] for block in message.content if "image" in block]
        try:
            pictures = tuple(decode_picture(image["source"]["bytes"]) for image in images)
        except (KeyError, TypeError, ValueError):
            raise refuse(400, "ValidationException", "The image could not be read.") from None
        text = _join_texts([block for block in message.content if "text" in block])
        if text or pictures or not results:
            turns.append(ChatTurn(message.role, text, pictures))
    return turns


def _count_thoughts(body: ConverseRequest, config: InferenceConfig) -> int:
    """Count the tokens of the thoughts that a request allows."""
    fields = body.additional_model_request_fields or {}
    effort = (fields.get("reasoningConfig") or {}).get("maxReasoningEffort")
    if effort == "high" and config.max_tokens is not None:
        message = "maxTokens must be unset when maxReasoningEffort is high."
        raise refuse(400, "ValidationException", message)
    thinks = effort is not None or (fields.get("thinking") or {}).get("type") == "adaptive"
    return THOUGHT_TOKENS if thinks else 0


def _make_offer(config: JsonObject | None) -> ToolOffer:
    if config is None:
        return NO_TOOLS
    try:
        specs = [tool["toolSpec"] for tool in config["tools"]]
        tools = [
            OfferedTool(spec["name"], spec["description"], spec["inputSchema"]["json"])
            for spec in specs
        ]
        choice = config.get("toolChoice") or {"auto": {}}
        named = choice["tool"]["name"] if "tool" in choice else ""
    except (KeyError, TypeError):
        raise refuse(400, "ValidationException", "toolConfig is not valid.") from None
    return ToolOffer(tools, is_required="auto" not in choice, named=named)


def refuse_body(faults: list[BodyFault]) -> RefusalError:
    """Make the refusal of a body with these faults."""
    if not faults:
        return refuse(400, "SerializationException", "The body is not JSON.")
    message = f"{faults[0].name} is not valid: {faults[0].message}."
    return refuse(400, "ValidationException", message)


def _join_texts(blocks: list[JsonObject]) -> str:
    return "\n".join(str(block.get("text", "")) for block in blocks)


def resolve_model(model: str, region: str | None) -> str:
    """Return the model of an id if the id is valid in the region; a region of None means any."""
    part, _, bare = model.partition(".")
    if model in PROFILES and region not in BARE_MODEL_REGIONS.get(model, ()):
        raise refuse(
            400,
            "ValidationException",
            f"Invocation of model ID {model} with on-demand throughput isn\u2019t supported. Retry"
            " your request with the ID or ARN of an inference profile that contains this model.",
        )
    if model in MODELS:
        return model
    is_in_region = region is None or part in ("global", REGION_GROUPS.get(region.partition("-")[0]))
    if part in PROFILES.get(bare, ()) and is_in_region:
        return bare
    raise refuse(400, "ValidationException", "The provided model identifier is invalid.")


def parse_region(request: Request) -> str | None:
    """Return the region that a request was signed for; an API key's host names none."""
    header = request.headers.get("authorization", "")
    scope = header.partition("Credential=")[2].partition(",")[0].split("/")
    return scope[2] if len(scope) > 2 else None


def _parse_schema(body: ConverseRequest) -> JsonObject | None:
    spec = (body.output_config or {}).get("textFormat")
    if spec is None:
        return None
    try:
        schema = json.loads(spec["structure"]["jsonSchema"]["schema"])
    except (KeyError, TypeError, ValueError):
        message = "outputConfig.textFormat.structure.jsonSchema.schema is no JSON schema."
        raise refuse(400, "ValidationException", message) from None
    return schema if isinstance(schema, dict) else None
