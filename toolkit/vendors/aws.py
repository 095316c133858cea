"""AWS Bedrock (V6): text, embeddings and ranking, with an API key or signed requests."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from toolkit.contract.choices import Tier
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    RECORDED_MODEL,
    Access,
    Cost,
    EmbedReply,
    EmbedRequest,
    Flow,
    InputBound,
    ProviderError,
    RerankBound,
    RerankReply,
    RerankRequest,
    TextReply,
    TextRequest,
    TokenBound,
    Vendor,
    run_in_thread,
    send,
)
from toolkit.plugins.conversation import Turn
from toolkit.vendors import _chat
from toolkit.vendors._aws_access import (
    BASE_URL,
    REGION,
    build_request,
    parse_credentials,
    parse_region,
    resolve_endpoint,
)
from toolkit.vendors._bedrock_batches import make_batch_wire
from toolkit.vendors._converse_stream import make_converse_reader
from toolkit.vendors._embeddings import (
    build_cohere_body,
    make_cohere_reply,
    make_reply,
    read_ranking,
)
from toolkit.vendors._http import (
    KEY_REFUSED,
    OUT_OF_CREDIT,
    REFUSED,
    Classification,
    Json,
    VendorResponse,
    clean_text,
    get_object,
    quote_path_segment,
    read_numbers,
    to_finite_number,
)
from toolkit.vendors._negotiation import (
    OptionalField,
    ask_without_refused_fields,
    choose_effort,
    is_tier_firm,
    list_tier_fields,
    make_temperature_field,
)
from toolkit.vendors._prices import load_models
from toolkit.vendors._wire import VendorWire

_INPUT_TOKENS_HEADER = "x-amzn-bedrock-input-token-count"
# The most of its models: Claude scales a picture to 2,576 pixels (its guide to vision).
MAX_PICTURE_TOKENS = 5_000
# The system prompt that tools add has 804 tokens at most (Claude's guide to tool use).
TOOL_PROMPT_TOKENS = 804
# Newer models are called by an inference profile, which the regions of a part of the world share.
_PROFILE_PREFIXES = {"us": "us", "eu": "eu", "ap": "apac"}
_MODELS = load_models("aws")
_PROFILES = frozenset(model.id for model in _MODELS if model.profile_of)
_TIER_FIELD = OptionalField("serviceTier", "service.?tier", "serviceTier")
_TIERS: Mapping[Tier, str] = {"standard": "default", "flex": "flex"}
_FINISH_REASONS = {"max_tokens": "length", "model_context_window_exceeded": "length"}
_BLOCK_REASONS = frozenset(("guardrail_intervened", "content_filtered"))
_SCHEMA_FIELD = OptionalField("outputConfig", "outputconfig|textformat|schema")
_UNAVAILABLE: Classification = (ErrorCode.PROVIDER_UNAVAILABLE, None)
# By error name, if the HTTP status alone would mislead.
_CLASSIFICATIONS: dict[str, Classification] = {
    "AccessDeniedException": KEY_REFUSED,
    "UnrecognizedClientException": KEY_REFUSED,
    "InvalidSignatureException": KEY_REFUSED,
    "ExpiredTokenException": KEY_REFUSED,
    "ServiceQuotaExceededException": OUT_OF_CREDIT,
    "ThrottlingException": (ErrorCode.PROVIDER_RATE_LIMITED, None),
    "ModelNotReadyException": _UNAVAILABLE,
    "ModelErrorException": _UNAVAILABLE,
    "ModelTimeoutException": (ErrorCode.PROVIDER_TIMEOUT, None),
    "ValidationException": REFUSED,
}


def generate_text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by the Converse API.

    A model is called by the inference profile of the region that the host names, or else of the
    secret's region. A schema that the model refuses goes into the prompt instead, once.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table;
            `SECRET_UNRESOLVED` for a secret that is neither an API key nor credentials.
    """
    optional = list_tier_fields(_TIER_FIELD, access)
    if operation.temperature is not None:
        optional.append(make_temperature_field(operation))
    if operation.schema is not None:
        optional.append(_SCHEMA_FIELD)
    answer = yield from ask_without_refused_fields(
        optional,
        access,
        lambda sent: _send_request(
            access, _build_body(operation, access, sent), stream=operation.stream
        ),
    )
    body = _WIRE.read(answer)
    model = answer.response.extensions.get(RECORDED_MODEL)
    keys = parse_credentials(access.secret)
    model = model or _find_profile(access.model, resolve_endpoint(access, keys)[1])
    return _parse_reply(answer, body, operation, model)


def _build_body(operation: TextRequest, access: Access, sent: frozenset[str]) -> Json:
    native = _SCHEMA_FIELD.name in sent
    is_claude = "claude" in access.model
    config: Json = {"maxTokens": operation.output_cap}
    if "temperature" in sent and not is_claude:
        config["temperature"] = operation.temperature
    if operation.top_p is not None:
        config["topP"] = operation.top_p
    if operation.stop:
        config["stopSequences"] = list(operation.stop)
    note = "" if native else _chat.write_schema_note(operation)
    fields: Json = {
        "messages": _chat.merge_turns(operation.list_turns(note), _iter_blocks),
        "inferenceConfig": config,
    }
    if _TIER_FIELD.name in sent or is_tier_firm(access):
        fields[_TIER_FIELD.name] = {"type": _TIERS[access.tier]}
    if operation.system:
        fields["system"] = [{"text": operation.system}]
    if operation.tools and operation.tool_choice != "none":  # Converse has no way to say "none"
        fields["toolConfig"] = _build_tool_config(operation)
    if operation.reasoning_tokens:
        fields["additionalModelRequestFields"] = _build_reasoning(operation, is_claude)
    if native:
        # Escapes of other scripts could be billed as more tokens than their bytes.
        text = json.dumps(operation.schema, ensure_ascii=False)
        schema = {"schema": text, "name": "answer"}
        fields[_SCHEMA_FIELD.name] = {
            "textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}
        }
    return fields


def _build_reasoning(operation: TextRequest, is_claude: bool) -> Json:
    """Build the fields that let a model reason."""
    effort = choose_effort(operation.reasoning_tokens)
    if is_claude:
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    # Nova's highest effort forbids maxTokens, and a request without any limit is never sent.
    effort = "medium" if effort == "high" else effort
    return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}


def _build_tool_config(operation: TextRequest) -> Json:
    tools = [
        {
            "toolSpec": {
                "name": tool.name,
                "description": tool.description or tool.name,
                "inputSchema": {"json": tool.parameters},
            }
        }
        for tool in operation.tools
    ]
    choice: Json = {"any": {}} if operation.tool_choice == "required" else {"auto": {}}
    if operation.named_tool:
        choice = {"tool": {"name": operation.named_tool}}
    return {"tools": tools, "toolChoice": choice}


def _iter_blocks(turn: Turn) -> Iterator[Json]:
    """Yield the content blocks of the Converse API for a turn of the conversation."""
    if turn.role == "tool":
        content = [{"text": turn.text}]
        yield {"toolResult": {"toolUseId": turn.tool_call_id, "content": content}}
        return
    for picture in turn.pictures:
        source = {"bytes": _chat.encode_picture(picture)}
        yield {"image": {"format": picture.media_type.rpartition("/")[2], "source": source}}
    if turn.text:
        yield {"text": turn.text}
    for call in turn.tool_calls:
        yield {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}}


def resolve_model_name(model: str, base_url: str) -> str:
    """Return a model's id at a host, or its own id if the host does not decide it.

    The default host does not decide it, because a secret may name another region.

    >>> resolve_model_name("amazon.nova-2-lite-v1:0", "https://bedrock-runtime.eu-west-1.amazonaws.com")
    'eu.amazon.nova-2-lite-v1:0'
    """
    region = parse_region(base_url)
    return (
        model
        if region is None or base_url.rstrip("/") == BASE_URL
        else _find_profile(model, region)
    )


def _find_profile(model: str, region: str) -> str:
    """Return a model's inference profile in a region, or the model's own id if it has no profile.

    A profile keeps the work in a part of the world. The `global` profile, which does not, is used
    if the part has none.
    """
    part = _PROFILE_PREFIXES.get(region.partition("-")[0], "global")
    names = (f"{part}.{model}", f"global.{model}")
    return next((name for name in names if name in _PROFILES), model)


def embed_texts(operation: EmbedRequest, access: Access) -> Flow[EmbedReply]:
    """Embed the first texts: up to 24 by a model of Cohere, a single text by Titan.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table;
            `SECRET_UNRESOLVED` for a secret that is neither an API key nor credentials.
    """
    if "cohere" not in access.model:
        fields: Json = {"inputText": operation.texts[0], "normalize": True}
        if operation.dimensions is not None:
            fields["dimensions"] = operation.dimensions
        answer, body = yield from _invoke(access, fields)
        tokens = to_finite_number(body.get("inputTextTokenCount"))
        return make_reply(answer, 1, [body.get("embedding")], tokens)
    answer, body = yield from _invoke(access, build_cohere_body(operation))
    counted = answer.response.headers.get(_INPUT_TOKENS_HEADER, "")
    tokens = float(counted) if counted.isdecimal() else None
    return (yield from run_in_thread(make_cohere_reply, answer, body, operation, tokens))


def rerank_documents(operation: RerankRequest, access: Access) -> Flow[RerankReply]:
    """Rank documents by Cohere's model; its answer names no bill, so the estimate is billed.

    Raises:
        ProviderError: the vendor refused or failed; `PROVIDER_BAD_RESPONSE` without a score for
            each document.
    """
    fields: Json = {
        "query": operation.query,
        "documents": list(operation.documents),
        "api_version": 2,
    }
    answer, body = yield from _invoke(access, fields)
    cost = Cost({"searches": operation.units()["searches"]})
    return read_ranking(answer, body, "results", operation, cost)


def _invoke(access: Access, fields: Json) -> Flow[tuple[VendorResponse, Json]]:
    """Call a model with a body of its own form (InvokeModel); raise the error of a failure."""
    answer = yield from _send_request(access, fields, method="invoke")
    return answer, (yield from run_in_thread(_WIRE.read, answer))


def _send_request(
    access: Access, fields: Json, *, stream: bool = False, method: str = "converse"
) -> Flow[VendorResponse]:
    keys = parse_credentials(access.secret)
    base, region = resolve_endpoint(access, keys)
    reader = make_converse_reader() if stream else None
    method = method if reader is None else "converse-stream"
    # Many model ids contain `:`, which must be signed and sent as %3A.
    url = f"{base}/model/{quote_path_segment(_find_profile(access.model, region))}/{method}"
    content = json.dumps(fields).encode()
    accepted = "application/json" if reader is None else reader.media_type
    headers = {"content-type": "application/json", "accept": accepted}
    request = build_request(access, replace(keys, region=region), url, content, headers)
    # Only the API key or the access key's id is sent, so only they could be echoed.
    sent_access = replace(access, secret=keys.bearer or keys.access_key)
    return VendorResponse(sent_access, (yield from send(request, stream=reader)))


def _build_failure(answer: VendorResponse, body: Json) -> ProviderError:
    error_type = answer.response.headers.get("x-amzn-errortype") or body.get("__type") or ""
    name = str(error_type).partition(":")[0].rpartition("#")[2]
    words = body.get("message") or body.get("Message")
    verdict = _CLASSIFICATIONS.get(name)
    if verdict is None and answer.status == 424:
        verdict = _UNAVAILABLE
    return answer.build_failure(words, verdict=verdict)


def _parse_reply(
    answer: VendorResponse, body: Json, operation: TextRequest, model: str
) -> TextReply:
    reason = str(body.get("stopReason"))
    if reason in _BLOCK_REASONS:
        raise answer.build_error(REFUSED, f"aws refused to answer this: {reason}.")
    blocks = get_object(get_object(body, "output"), "message").get("content")
    if not isinstance(blocks, list) or reason.startswith("malformed"):
        raise answer.build_bad_response("The answer of aws has no message in it.")
    known = [block for block in blocks if isinstance(block, dict)]
    texts = [clean_text(block.get("text")) or "" for block in known]
    calls = [get_object(block, "toolUse") for block in known if "toolUse" in block]
    thoughts = [
        get_object(get_object(block, "reasoningContent"), "reasoningText").get("text")
        for block in known
    ]
    label = answer.read_label(get_object(body, "serviceTier").get("type"))
    reply = TextReply(
        text="".join(texts).strip(),
        finish=_FINISH_REASONS.get(reason, "stop"),
        cost=Cost(_parse_usage(get_object(body, "usage"))),
        vendor_request_id=answer.request_id,
        model=model,
        tier=_chat.read_service_tier(label),
        tool_calls=tuple(
            _chat.read_tool_call(answer, call.get("toolUseId"), call.get("name"), call.get("input"))
            for call in calls
        ),
        reasoning="\n\n".join(text for text in thoughts if isinstance(text, str)),
    )
    return _chat.complete_reply(answer, operation, reply)


def _parse_usage(usage: Json) -> dict[str, float]:
    """Parse the billed tokens, cached input included; returns {} unless both counts are given."""
    cache_reads, cache_writes = read_numbers(usage, "cacheReadInputTokens", "cacheWriteInputTokens")
    return _chat.build_token_units(
        *read_numbers(usage, "inputTokens", "outputTokens"),
        cache_reads=cache_reads,
        cache_writes=cache_writes,
        is_apart=True,
    )


_WIRE = VendorWire(_build_failure)
VENDOR = Vendor(
    id="aws",
    label="V6",
    title="AWS Bedrock",
    variable="AWS_BEARER_TOKEN_BEDROCK",
    base_urls={
        "api": BASE_URL,
        "bedrock": f"https://bedrock.{REGION}.amazonaws.com",
        "s3": f"https://s3.{REGION}.amazonaws.com",
    },
    operations={
        TextRequest: generate_text,
        EmbedRequest: embed_texts,
        RerankRequest: rerank_documents,
    },
    models=_MODELS,
    bounds={
        TextRequest: TokenBound(
            "API reference, InferenceConfiguration: maxTokens limits the output; it is not"
            " documented for models that always reason",
            unless_it_reasons=True,
            picture=MAX_PICTURE_TOKENS,
            tool_prompt=TOOL_PROMPT_TOKENS,
        ),
        EmbedRequest: InputBound("price list: the tokens of the input alone"),
        RerankRequest: RerankBound("price list: a query with up to 100 chunks of documents"),
    },
    telemetry_name="aws.bedrock",
    name_at=resolve_model_name,
    batch=make_batch_wire(_WIRE),
)
