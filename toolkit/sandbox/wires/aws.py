"""The `aws` wire: Bedrock's Converse, with an API key or a signature that is recomputed."""

import json
from collections.abc import AsyncIterator
from typing import Any, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.event_frames import format_event_frame
from toolkit.sandbox.json_http import (
    BodyFault,
    JsonObject,
    RefusalError,
    RequestBody,
    get_bearer_key,
    read_body,
)
from toolkit.sandbox.keys import SANDBOX_KEYS
from toolkit.sandbox.state import SandboxState, mark_billed
from toolkit.sandbox.text.chat import ChatTurn, SimulatedReply, generate_reply, iter_pieces
from toolkit.sandbox.wires.aws_signature import SignatureFaultError, check_signature

ACCESS_KEY = "SANDBOXACCESSKEY"
SIGNING_KEY = "sandbox-aws-secret"
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
    stop_sequences: list[Any] | None = None


class ServiceTier(RequestBody, extra="ignore"):
    """The tier that serves a request."""

    type: Literal["priority", "default", "flex", "reserved"] = "default"


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
    ]


async def _check_caller(request: Request) -> None:
    key = get_bearer_key(request)
    if key is not None:
        if key != SANDBOX_KEYS["AWS_BEARER_TOKEN_BEDROCK"]:
            raise refuse(403, "AccessDeniedException", "Authentication failed: bad API key.")
        return
    try:
        await check_signature(request, ACCESS_KEY, SIGNING_KEY)
    except SignatureFaultError as fault:
        raise refuse(403, fault.name, fault.message) from None


async def _converse(request: Request) -> Response:
    reply, tier = await _generate_answer(request)
    message = {"role": "assistant", "content": [{"text": reply.text}]}
    head = {"output": {"message": message}, "stopReason": _choose_stop_reason(reply)}
    return JSONResponse({**head, **_measure(reply, tier)})


async def _stream_converse(request: Request) -> Response:
    reply, tier = await _generate_answer(request)

    async def frames() -> AsyncIterator[bytes]:
        yield format_event_frame("messageStart", {"role": "assistant"})
        for piece in iter_pieces(reply.text):
            delta = {"contentBlockIndex": 0, "delta": {"text": piece}}
            yield format_event_frame("contentBlockDelta", delta)
        yield format_event_frame("contentBlockStop", {"contentBlockIndex": 0})
        yield format_event_frame("messageStop", {"stopReason": _choose_stop_reason(reply)})
        yield format_event_frame("metadata", _measure(reply, tier))

    return StreamingResponse(frames(), media_type="application/vnd.amazon.eventstream")


def _choose_stop_reason(reply: SimulatedReply) -> str:
    return "max_tokens" if reply.finish == "length" else "end_turn"


def _measure(reply: SimulatedReply, tier: str) -> JsonObject:
    usage = {
        "inputTokens": reply.prompt_tokens,
        "outputTokens": reply.completion_tokens,
        "totalTokens": reply.prompt_tokens + reply.completion_tokens,
    }
    return {"usage": usage, "metrics": {"latencyMs": 1}, "serviceTier": {"type": tier}}


async def _generate_answer(request: Request) -> tuple[SimulatedReply, str]:
    """Generate the answer to a request, and return it with the service tier that serves it."""
    await _check_caller(request)
    bare = _resolve_model(str(request.path_params["model"]), _parse_region(request))
    body = await read_body(request, ConverseRequest, _refuse_body)
    config = body.inference_config or InferenceConfig()
    if config.temperature is not None and "claude" in bare:
        raise refuse(400, "ValidationException", "temperature is not supported by this model.")
    turns = [ChatTurn(message.role, _join_texts(message.content)) for message in body.messages]
    if body.system:
        turns.insert(0, ChatTurn("system", _join_texts(body.system)))
    reply = generate_reply(turns, schema=_parse_schema(body), max_tokens=config.max_tokens)
    mark_billed(request)
    return reply, (body.service_tier or ServiceTier()).type


def _refuse_body(faults: list[BodyFault]) -> RefusalError:
    if not faults:
        return refuse(400, "SerializationException", "The body is not JSON.")
    message = f"{faults[0].name} is not valid: {faults[0].message}."
    return refuse(400, "ValidationException", message)


def _join_texts(blocks: list[JsonObject]) -> str:
    return "\n".join(str(block.get("text", "")) for block in blocks)


def _resolve_model(model: str, region: str | None) -> str:
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


def _parse_region(request: Request) -> str | None:
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
