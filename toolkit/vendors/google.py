"""Google (V3): text and embeddings by the Gemini API."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Access,
    EmbedReply,
    EmbedRequest,
    Flow,
    InputBound,
    ProviderError,
    TextReply,
    TextRequest,
    TokenBound,
    Vendor,
    run_in_thread,
    send,
)
from toolkit.plugins.conversation import ToolCall, Turn
from toolkit.plugins.streaming import JsonEventReader, VisibleText, WholeAnswer, build_answer
from toolkit.vendors import _chat
from toolkit.vendors._chat_stream import find_error_status
from toolkit.vendors._embeddings import MAX_JSON_TEXTS, make_reply
from toolkit.vendors._http import (
    KEY_REFUSED,
    OUT_OF_CREDIT,
    REFUSED,
    Json,
    VendorResponse,
    build_json_request,
    check_header_safe,
    clean_text,
    get_first,
    get_object,
    quote_path_segment,
    read_numbers,
    send_probe,
    to_finite_number,
)
from toolkit.vendors._negotiation import OptionalField, ask_without_refused_fields
from toolkit.vendors._prices import load_models

_FINISH_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
# Finish reasons that mean a refusal; an unknown reason does not.
_BLOCK_REASONS = frozenset(
    ("SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "LANGUAGE", "IMAGE_SAFETY")
)
_MODELS = load_models("google")
_REASONING_MODELS = frozenset(model.id for model in _MODELS if model.reasons)
# A range that all thinking models of the vendor's guide accept; it excludes the dearest budgets.
MIN_THINKING_BUDGET, MAX_THINKING_BUDGET = 512, 8_192
# The largest budget that all models accept of a caller who asks for reasoning.
MAX_REQUESTED_BUDGET = 24_576
# At the default resolution a picture has at most so many tokens (guide to media resolution).
MAX_PICTURE_TOKENS = 1_120
_TOOL_CHOICES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
# The documented text for calls that another model made (guide to thought signatures).
_NO_SIGNATURE = "skip_thought_signature_validator"
_STABLE_VERSION = OptionalField("v1", "unknown name", "v1")
_TIER_FIELD = OptionalField("serviceTier", "service.?tier", "serviceTier")
_THINKING_FIELD = OptionalField("thinkingConfig", "thinking", "thinkingConfig")
_TIER_HEADER = "x-gemini-service-tier"
_SCHEMA_FIELD = OptionalField("responseJsonSchema", "schema|mime_?type")


def generate_text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by generateContent.

    A schema that the vendor refuses goes into the prompt instead, once. A field that the stable
    version of the API does not know is sent to the beta version.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    optional = [_STABLE_VERSION, _TIER_FIELD]
    if access.model in _REASONING_MODELS:
        optional.append(_THINKING_FIELD)
    if operation.schema is not None:
        optional.append(_SCHEMA_FIELD)
    answer = yield from ask_without_refused_fields(
        optional,
        access,
        lambda sent: _send_request(
            access,
            _build_body(operation, sent),
            beta=_STABLE_VERSION.name not in sent,
            stream=operation.stream,
        ),
    )
    body = answer.json()
    if answer.is_failure:
        raise _build_failure(answer, body)
    return _parse_reply(answer, body, operation)


def embed_texts(operation: EmbedRequest, access: Access) -> Flow[EmbedReply]:
    """Embed texts by batchEmbedContents.

    The API reports no tokens, so the estimate of the texts is billed.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    texts, name = operation.texts[:MAX_JSON_TEXTS], f"models/{access.model}"
    task = "RETRIEVAL_QUERY" if operation.purpose == "query" else "RETRIEVAL_DOCUMENT"
    size = {} if operation.dimensions is None else {"outputDimensionality": operation.dimensions}
    requests = [
        {"model": name, "content": {"parts": [{"text": text}]}, "taskType": task, **size}
        for text in texts
    ]
    path = f"/v1beta/models/{quote_path_segment(access.model)}:batchEmbedContents"
    request = build_json_request(access.url(path), {"requests": requests}, _build_headers(access))
    answer = VendorResponse("google", access, (yield from send(request)))
    body = yield from run_in_thread(answer.json)
    if answer.is_failure:
        raise _build_failure(answer, body)
    rows = body.get("embeddings")
    rows = rows if isinstance(rows, list) else []
    vectors = [row.get("values") for row in rows if isinstance(row, dict)]
    tokens = to_finite_number(get_object(body, "usageMetadata").get("promptTokenCount"))
    estimated = replace(operation, texts=texts).units()
    units = estimated if tokens is None else {"input_tokens": tokens}
    return (yield from run_in_thread(make_reply, answer, len(texts), vectors, units))


def probe(access: Access) -> Flow[None]:
    """List the models, which is free and needs a key.

    Raises:
        ProviderError: `PROVIDER_AUTH_FAILED` if the key is refused.
    """
    answer = yield from send_probe("google", access, "/v1/models", _build_headers(access))
    body = answer.json()
    if answer.is_failure:
        raise _build_failure(answer, body)


def _build_headers(access: Access) -> dict[str, str]:
    return {"x-goog-api-key": check_header_safe(access.secret)}


def choose_thinking_budget(max_tokens: int) -> int:
    """Return the maximum thinking tokens before an answer of at most `max_tokens`.

    >>> [choose_thinking_budget(cap) for cap in (64, 4_096, 60_000)]
    [512, 2048, 8192]
    """
    return min(max(max_tokens // 2, MIN_THINKING_BUDGET), MAX_THINKING_BUDGET)


def _build_body(operation: TextRequest, sent: frozenset[str]) -> Json:
    native = _SCHEMA_FIELD.name in sent
    config: Json = {
        "maxOutputTokens": operation.max_tokens,
        "temperature": operation.temperature,
        "topP": operation.top_p,
        "seed": operation.seed,
        "stopSequences": list(operation.stop) or None,
    }
    if _THINKING_FIELD.name in sent:
        config[_THINKING_FIELD.name] = _build_thinking(operation)
    if native:
        config["responseMimeType"] = "application/json"
        config[_SCHEMA_FIELD.name] = operation.schema
    note = "" if native else _chat.write_schema_note(operation)
    fields: Json = {
        "contents": _build_contents(operation.list_turns(note)),
        "generationConfig": {name: value for name, value in config.items() if value is not None},
    }
    if _TIER_FIELD.name in sent:
        fields[_TIER_FIELD.name] = "standard"
    if operation.system:
        fields["systemInstruction"] = {"parts": [{"text": operation.system}]}
    if operation.tools:
        fields["tools"] = [
            {
                "functionDeclarations": [
                    {
                        "name": tool.name,
                        "description": tool.description,
                        "parametersJsonSchema": tool.parameters,
                    }
                    for tool in operation.tools
                ]
            }
        ]
        calling: Json = {"mode": _TOOL_CHOICES[operation.tool_choice]}
        if operation.named_tool:
            calling["allowedFunctionNames"] = [operation.named_tool]
        fields["toolConfig"] = {"functionCallingConfig": calling}
    return fields


def _build_thinking(operation: TextRequest) -> Json:
    """Build the budget of thoughts, which the cap of the answer does not count."""
    if operation.reasoning is None:
        return {"thinkingBudget": choose_thinking_budget(operation.max_tokens)}
    tokens = min(operation.reasoning_tokens, MAX_REQUESTED_BUDGET)
    return {"thinkingBudget": max(tokens, MIN_THINKING_BUDGET), "includeThoughts": tokens > 0}


def _build_contents(turns: tuple[Turn, ...]) -> list[Json]:
    """Build the messages; answers of tools are parts of one message, and name their tools."""
    contents: list[Json] = []
    names: dict[str, str] = {}
    for turn in turns:
        names |= {call.id: call.name for call in turn.tool_calls}
        role = "model" if turn.role == "assistant" else "user"
        parts = list(_iter_parts(turn, names))
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": role, "parts": parts})
    return contents


def _iter_parts(turn: Turn, names: Mapping[str, str]) -> Iterator[Json]:
    """Yield the parts of a message."""
    if turn.role == "tool":
        response = {"result": turn.text}
        name = names.get(turn.tool_call_id, turn.tool_call_id)
        yield {"functionResponse": {"id": turn.tool_call_id, "name": name, "response": response}}
        return
    for picture in turn.pictures:
        data = _chat.encode_picture(picture)
        yield {"inlineData": {"mimeType": picture.media_type, "data": data}}
    if turn.text:
        yield {"text": turn.text}
    for place, call in enumerate(turn.tool_calls):
        part: Json = {"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}}
        if place == 0:  # the vendor signs the first of parallel calls
            part["thoughtSignature"] = call.signature or _NO_SIGNATURE
        yield part


class _ContentReader(JsonEventReader):
    """A reader of streamed content: each event is an answer with a part of the text."""

    def __init__(self) -> None:
        super().__init__()
        self._body: Json = {}
        self._candidate: Json = {}
        self._parts: list[Json] = []
        self._visible = VisibleText()

    def _add_event(self, event: Json) -> str:
        self._body |= {name: value for name, value in event.items() if name != "candidates"}
        choice = get_first(event, "candidates")
        self._candidate |= choice
        parts = get_object(choice, "content").get("parts")
        new = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        self._parts += new
        texts = (part.get("text") for part in new if part.get("thought") is not True)
        return "".join(self._visible.add(text) for text in texts if isinstance(text, str))

    def assemble(self) -> WholeAnswer | None:
        """Assemble the answer; returns None if the stream ended without a finish reason."""
        if "error" in self._body:
            return build_answer(self._body, find_error_status(self._body))
        blocked = get_object(self._body, "promptFeedback").get("blockReason")
        if not blocked and not self._candidate.get("finishReason"):
            return None
        content = {**get_object(self._candidate, "content"), "parts": self._parts}
        candidates = [{**self._candidate, "content": content}] if self._candidate else []
        return build_answer({**self._body, "candidates": candidates})


def _send_request(
    access: Access, fields: Json, *, beta: bool, stream: bool
) -> Flow[VendorResponse]:
    # Only the beta version knows the aliases of the latest models.
    version = "v1beta" if beta or access.model.endswith("-latest") else "v1"
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    path = f"/{version}/models/{quote_path_segment(access.model)}:{method}"
    request = build_json_request(access.url(path), fields, _build_headers(access))
    reader = _ContentReader() if stream else None
    return VendorResponse("google", access, (yield from send(request, stream=reader)))


def _build_failure(answer: VendorResponse, body: Json) -> ProviderError:
    error = get_object(body, "error")
    details = error.get("details")
    rows = details if isinstance(details, list) else []
    reasons = [row.get("reason") for row in rows if isinstance(row, dict)]
    verdict = None
    if "API_KEY_INVALID" in reasons:  # this vendor reports a bad key as an invalid argument
        verdict = KEY_REFUSED
    elif error.get("status") == "FAILED_PRECONDITION":
        verdict = OUT_OF_CREDIT
    return answer.build_failure(error.get("message"), verdict=verdict)


def _parse_reply(answer: VendorResponse, body: Json, operation: TextRequest) -> TextReply:
    request_id = answer.read_label(body.get("responseId")) or answer.request_id
    blocked = answer.redact_excerpt(get_object(body, "promptFeedback").get("blockReason"))
    choice = get_first(body, "candidates")
    reason = str(choice.get("finishReason"))
    if blocked or reason in _BLOCK_REASONS:
        raise answer.build_error(
            REFUSED, f"google refused to answer this: {blocked or reason}.", request_id=request_id
        )
    if not choice:
        raise answer.build_error(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None),
            "The answer of google has no candidate in it.",
            request_id=request_id,
        )
    parts = get_object(choice, "content").get("parts")
    known = [part for part in (parts if isinstance(parts, list) else ()) if isinstance(part, dict)]
    texts = [clean_text(p.get("text")) or "" for p in known if p.get("thought") is not True]
    thoughts = [clean_text(p.get("text")) or "" for p in known if p.get("thought") is True]
    label = answer.read_label(answer.response.headers.get(_TIER_HEADER))
    return _chat.build_reply(
        answer,
        operation,
        "".join(texts).strip(),
        _FINISH_REASONS.get(reason, "stop"),
        _parse_usage(get_object(body, "usageMetadata")),
        request_id,
        answer.read_label(body.get("modelVersion")),
        tier=_chat.read_service_tier(label),
        tool_calls=tuple(
            _read_tool_call(answer, part, place)
            for place, part in enumerate(part for part in known if "functionCall" in part)
        ),
        reasoning="".join(thoughts).strip(),
    )


def _read_tool_call(answer: VendorResponse, part: Json, place: int) -> ToolCall:
    asked = get_object(part, "functionCall")
    named = asked.get("id") or f"call_{place}"  # some models give no id
    call = _chat.read_tool_call(answer, named, asked.get("name"), asked.get("args") or {})
    return replace(call, signature=clean_text(part.get("thoughtSignature")) or "")


def _parse_usage(usage: Json) -> dict[str, float]:
    """Parse the billed tokens, thoughts included; returns {} unless input and output are given."""
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
    input_tokens, output_tokens, thoughts = read_numbers(usage, *names)
    if input_tokens is None or (output_tokens is None and thoughts is None):
        return {}
    cache_reads = to_finite_number(usage.get("cachedContentTokenCount"))
    return _chat.build_token_units(
        input_tokens, (output_tokens or 0.0) + (thoughts or 0.0), cache_reads=cache_reads
    )


VENDOR = Vendor(
    id="google",
    label="V3",
    title="Google Gemini",
    variable="GEMINI_API_KEY",
    base_urls={"api": "https://generativelanguage.googleapis.com"},
    operations={TextRequest: generate_text, EmbedRequest: embed_texts},
    models=_MODELS,
    bounds={
        # Gemini 3 was seen to exceed its thinking budget, but never the cap on thoughts and answer.
        # The guide says that the cap is the answer's alone. The sum of both holds either way.
        TextRequest: TokenBound(
            "guide to thinking: thoughts are billed as output, and thinkingBudget limits them;"
            " googleapis/python-genai issue 2062: maxOutputTokens limits thoughts and answer",
            capped=False,
            reasoning=choose_thinking_budget,
            picture=MAX_PICTURE_TOKENS,
        ),
        EmbedRequest: InputBound("price list: the tokens of the input alone"),
    },
    probe=probe,
    telemetry_name="gcp.gemini",
)
