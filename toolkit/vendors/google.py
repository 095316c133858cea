"""Google (V3): text by the Gemini API."""

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Access,
    Flow,
    ProviderError,
    TextReply,
    TextRequest,
    TokenBound,
    Vendor,
    send,
)
from toolkit.plugins.streaming import JsonEventReader, VisibleText, WholeAnswer, build_answer
from toolkit.vendors import _chat
from toolkit.vendors._chat_stream import find_error_status
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
    prompt = operation.prompt if native else _chat.add_schema_to_prompt(operation)
    config: Json = {"maxOutputTokens": operation.max_tokens}
    if operation.temperature is not None:
        config["temperature"] = operation.temperature
    if _THINKING_FIELD.name in sent:
        budget = choose_thinking_budget(operation.max_tokens)
        config[_THINKING_FIELD.name] = {"thinkingBudget": budget}
    if native:
        config["responseMimeType"] = "application/json"
        config[_SCHEMA_FIELD.name] = operation.schema
    fields: Json = {
        "contents": [{"role": "user", "parts": [{"text": prompt}]}],
        "generationConfig": config,
    }
    if _TIER_FIELD.name in sent:
        fields[_TIER_FIELD.name] = "standard"
    if operation.system:
        fields["systemInstruction"] = {"parts": [{"text": operation.system}]}
    return fields


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
    texts = [
        clean_text(part.get("text")) or ""
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict) and part.get("thought") is not True
    ]
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
    )


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
    operations={TextRequest: generate_text},
    models=_MODELS,
    bounds={
        # Gemini 3 was seen to exceed its thinking budget, but never the cap on thoughts and answer.
        # The guide says that the cap is the answer's alone. The sum of both holds either way.
        TextRequest: TokenBound(
            "guide to thinking: thoughts are billed as output, and thinkingBudget limits them;"
            " googleapis/python-genai issue 2062: maxOutputTokens limits thoughts and answer",
            capped=False,
            reasoning=choose_thinking_budget,
        )
    },
    probe=probe,
    telemetry_name="gcp.gemini",
)
