"""The `aws` wire: Bedrock's Converse, with an API key or a signature that is recomputed."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.event_frames import format_event_frame
from toolkit.sandbox.json_http import (
    JsonObject,
    NotJsonError,
    get_bearer_key,
    has_json_type,
    make_response,
    read_json_object,
)
from toolkit.sandbox.keys import SANDBOX_KEYS
from toolkit.sandbox.state import SandboxState, get_request_digest, mark_billed
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
FIELDS = {
    "messages": "array",
    "system": "array|null",
    "inferenceConfig": "object|null",
    "outputConfig": "object|null",
    "toolConfig": "object|null",
    "guardrailConfig": "object|null",
    "additionalModelRequestFields": "object|null",
    "additionalModelResponseFieldPaths": "array|null",
    "requestMetadata": "object|null",
    "performanceConfig": "object|null",
    "serviceTier": "object|null",
}
SERVICE_TIERS = ("priority", "default", "flex", "reserved")
CONFIG_FIELDS = {
    "maxTokens": "integer|null",
    "temperature": "number|null",
    "topP": "number|null",
    "stopSequences": "array|null",
}


@dataclass(slots=True)
class AwsRefusalError(Exception):
    """An error in the vendor's format: its name stands in a header."""

    status: int
    name: str
    message: str

    def to_response(self, request_id: str) -> Response:
        """Make the response that carries the error."""
        headers = {"x-amzn-errortype": self.name, "x-amzn-requestid": request_id}
        return make_response({"message": self.message}, self.status, headers)


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the route of the vendor's path."""

    async def converse(request: Request) -> Response:
        return await answer(request, _converse)

    async def converse_stream(request: Request) -> Response:
        return await answer(request, _stream_converse)

    async def answer(
        request: Request, make_answer: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        digest = state.compute_fresh_digest("aws", get_request_digest(request))
        request_id = str(UUID(digest[:32]))
        try:
            await _check_caller(request)
            reply = await make_answer(request)
        except AwsRefusalError as refusal:
            return refusal.to_response(request_id)
        reply.headers["x-amzn-requestid"] = request_id
        return reply

    return [
        Route("/model/{model:path}/converse", converse, methods=["POST"]),
        Route("/model/{model:path}/converse-stream", converse_stream, methods=["POST"]),
    ]


async def _check_caller(request: Request) -> None:
    key = get_bearer_key(request)
    if key is not None:
        if key != SANDBOX_KEYS["AWS_BEARER_TOKEN_BEDROCK"]:
            raise AwsRefusalError(
                403, "AccessDeniedException", "Authentication failed: bad API key."
            )
        return
    try:
        await check_signature(request, ACCESS_KEY, SIGNING_KEY)
    except SignatureFaultError as fault:
        raise AwsRefusalError(403, fault.name, fault.message) from None


async def _converse(request: Request) -> Response:
    reply, tier = await _generate_answer(request)
    said = {"role": "assistant", "content": [{"text": reply.text}]}
    head = {"output": {"message": said}, "stopReason": _choose_stop_reason(reply)}
    return make_response({**head, **_measure(reply, tier)})


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
    model = str(request.path_params["model"])
    bare = _resolve_model(model, _parse_region(request))
    try:
        body = await read_json_object(request)
    except NotJsonError:
        raise AwsRefusalError(400, "SerializationException", "The body is not JSON.") from None
    _check_fields(body, FIELDS, "")
    config = body.get("inferenceConfig") or {}
    _check_fields(config, CONFIG_FIELDS, "inferenceConfig.")
    if config.get("temperature") is not None and "claude" in bare:
        message = "temperature is not supported by this model."
        raise AwsRefusalError(400, "ValidationException", message)
    turns = [_parse_turn(one, place) for place, one in enumerate(body.get("messages") or ())]
    if not turns:
        raise AwsRefusalError(400, "ValidationException", "messages: at least one is required.")
    for one in body.get("system") or ():
        turns.insert(0, ChatTurn("system", str(one.get("text", ""))))
    schema = _parse_schema(body)
    reply = generate_reply(turns, schema=schema, max_tokens=config.get("maxTokens"))
    tier = (body.get("serviceTier") or {}).get("type", "default")
    if tier not in SERVICE_TIERS:
        raise AwsRefusalError(400, "ValidationException", "serviceTier.type is not valid.")
    mark_billed(request)
    return reply, tier


def _resolve_model(model: str, region: str | None) -> str:
    """Return the model of an id, if it can be called by that id in a region (None: any)."""
    part, _, bare = model.partition(".")
    if model in PROFILES and region not in BARE_MODEL_REGIONS.get(model, ()):
        raise AwsRefusalError(
            400,
            "ValidationException",
            f"Invocation of model ID {model} with on-demand throughput isn\u2019t supported. Retry"
            " your request with the ID or ARN of an inference profile that contains this model.",
        )
    if model in MODELS:
        return model
    here = region is None or part in ("global", REGION_GROUPS.get(region.partition("-")[0]))
    if part in PROFILES.get(bare, ()) and here:
        return bare
    raise AwsRefusalError(400, "ValidationException", "The provided model identifier is invalid.")


def _parse_region(request: Request) -> str | None:
    """Return the region that a request was signed for; an API key's host names none."""
    given = request.headers.get("authorization", "")
    scope = given.partition("Credential=")[2].partition(",")[0].split("/")
    return scope[2] if len(scope) > 2 else None


def _check_fields(body: JsonObject, known: Mapping[str, str], where: str) -> None:
    for name, value in body.items():
        if name not in known or not has_json_type(value, known[name]):
            raise AwsRefusalError(400, "ValidationException", f"{where}{name} is not valid.")


def _parse_turn(one: object, place: int) -> ChatTurn:
    if not isinstance(one, dict) or one.get("role") not in ("user", "assistant"):
        raise AwsRefusalError(400, "ValidationException", f"messages.{place}.role is not valid.")
    blocks = one.get("content")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise AwsRefusalError(400, "ValidationException", f"messages.{place}.content is not valid.")
    return ChatTurn(one["role"], "\n".join(str(block.get("text", "")) for block in blocks))


def _parse_schema(body: JsonObject) -> JsonObject | None:
    wanted = (body.get("outputConfig") or {}).get("textFormat")
    if wanted is None:
        return None
    try:
        schema = json.loads(wanted["structure"]["jsonSchema"]["schema"])
    except (KeyError, TypeError, ValueError):
        message = "outputConfig.textFormat.structure.jsonSchema.schema is no JSON schema."
        raise AwsRefusalError(400, "ValidationException", message) from None
    return schema if isinstance(schema, dict) else None
