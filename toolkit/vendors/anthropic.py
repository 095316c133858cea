"""Anthropic (V2): text by its messages API."""

from collections.abc import Iterator

from toolkit.plugins import (
    Access,
    Cost,
    Flow,
    ProviderError,
    TextReply,
    TextRequest,
    TokenBound,
    Vendor,
)
from toolkit.plugins.conversation import Turn
from toolkit.plugins.streaming import AnswerPiece, JsonEventReader, WholeAnswer, build_answer
from toolkit.vendors import _chat
from toolkit.vendors._anthropic_batches import make_batch_wire
from toolkit.vendors._http import (
    OUT_OF_CREDIT,
    REFUSED,
    Json,
    VendorResponse,
    check_header_safe,
    clean_text,
    get_object,
    read_numbers,
    to_finite_number,
)
from toolkit.vendors._negotiation import (
    OptionalField,
    ask_without_refused_fields,
    choose_effort,
)
from toolkit.vendors._prices import load_models
from toolkit.vendors._wire import VendorWire

# Under this version `temperature` is refused even at its default value, so it is never sent.
API_VERSION = "2026-10-21"
# The largest models scale a picture to 2,576 pixels, others to 1,568 (guide to vision).
MAX_PICTURE_TOKENS = 5_000
# The system prompt that tools add has 804 tokens at most (guide to tool use, "Pricing").
TOOL_PROMPT_TOKENS = 804
# The parts of a block by the pieces of a stream; the input of a tool comes as pieces of JSON.
_PARTS_OF_DELTAS = {"text": "text", "thinking": "thinking", "partial_json": "input"}
_TOOL_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_FINISH_REASONS = {"max_tokens": "length", "model_context_window_exceeded": "length"}
# Errors in the middle of a stream have no status of their own (API reference, "Errors").
_STATUSES_OF_ERRORS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
# Without this field, an account with priority capacity is served from that capacity.
_TIER_FIELD = OptionalField("service_tier", "service_tier", "service_tier")
_SCHEMA_FIELD = OptionalField("output_config", "output_config|schema")


def generate_text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by the messages API.

    A schema that the vendor refuses goes into the prompt instead, once.

    Raises:
        ProviderError: the vendor refused or failed, classified by its documented error table.
    """
    optional = [_TIER_FIELD]
    if operation.schema is not None:
        optional.append(_SCHEMA_FIELD)
    answer = yield from ask_without_refused_fields(
        optional, access, lambda sent: _send_request(access, _build_body(operation, access, sent))
    )
    body = _WIRE.read(answer)
    return _parse_reply(answer, body, operation)


def _build_headers(access: Access) -> dict[str, str]:
    return {"x-api-key": check_header_safe(access.secret), "anthropic-version": API_VERSION}


class _MessageReader(JsonEventReader):
    """A reader of streamed messages (the vendor's guide "Streaming messages")."""

    def __init__(self) -> None:
        super().__init__()
        self._message: Json = {}
        self._blocks: dict[int, Json] = {}
        self._is_complete = False
        self._failure: Json | None = None

    def _add_event(self, event: Json) -> list[AnswerPiece]:
        place = event.get("index")
        match event.get("type"):
            case "message_start":
                self._message = get_object(event, "message")
            case "content_block_start" if isinstance(place, int):
                block = self._blocks[place] = {**get_object(event, "content_block")}
                if block.get("type") == "tool_use":
                    return self._pieces.add_call(place, id=block.get("id"), name=block.get("name"))
                return self._pieces.add_text(block.get("text"))
            case "content_block_delta" if isinstance(place, int):
                return self._add_delta(place, get_object(event, "delta"))
            case "message_delta":
                usage = {**get_object(self._message, "usage"), **get_object(event, "usage")}
                self._message = {**self._message, **get_object(event, "delta"), "usage": usage}
            case "message_stop":
                self._is_complete = True
            case "error":
                self._failure = event
        return []  # skip unknown kinds of events, which the vendor may add later

    def _add_delta(self, place: int, delta: Json) -> list[AnswerPiece]:
        block = self._blocks.setdefault(place, {})
        for name, part in _PARTS_OF_DELTAS.items():
            piece = delta.get(name)
            if isinstance(piece, str):
                text = block.get(part)
                block[part] = f"{text if isinstance(text, str) else ''}{piece}"
        if block.get("type") == "tool_use":
            return self._pieces.add_call(place, delta.get("partial_json"))
        thoughts = self._pieces.add_reasoning(delta.get("thinking"), place)
        return thoughts + self._pieces.add_text(delta.get("text"))

    def assemble(self) -> WholeAnswer | None:
        """Assemble the message or the reported failure; None if the stream ended before either."""
        if self._failure is not None:
            kind = get_object(self._failure, "error").get("type")
            return build_answer(self._failure, _STATUSES_OF_ERRORS.get(str(kind), 500))
        if not self._is_complete:
            return None
        blocks = [self._blocks[place] for place in sorted(self._blocks)]
        return build_answer({**self._message, "content": blocks})


def _build_body(operation: TextRequest, access: Access, sent: frozenset[str]) -> Json:
    native = _SCHEMA_FIELD.name in sent
    note = "" if native else _chat.write_schema_note(operation)
    fields: Json = {
        "model": access.model,
        "max_tokens": operation.output_cap,
        "messages": _build_messages(operation.list_turns(note)),
    }
    if _TIER_FIELD.name in sent:
        fields[_TIER_FIELD.name] = "standard_only"
    if operation.stream:
        fields["stream"] = True
    if operation.system:
        fields["system"] = operation.system
    if operation.stop:
        fields["stop_sequences"] = list(operation.stop)
    if operation.tools:
        fields["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in operation.tools
        ]
        fields["tool_choice"] = {"type": _TOOL_CHOICES[operation.tool_choice]}
        if operation.named_tool:
            fields["tool_choice"] = {"type": "tool", "name": operation.named_tool}
    output: Json = {}
    if native:
        output["format"] = {"type": "json_schema", "schema": operation.schema}
    if operation.reasoning_tokens and operation.tool_choice != "required":
        # Models choose how much to think by themselves; max_tokens bounds thoughts and answer. A
        # forced tool forbids thoughts.
        fields["thinking"] = {"type": "adaptive", "display": "summarized"}
        output["effort"] = choose_effort(operation.reasoning_tokens)
    elif operation.reasoning is not None:
        fields["thinking"] = {"type": "disabled"}
    if output:
        fields[_SCHEMA_FIELD.name] = output
    return fields


def _build_messages(turns: tuple[Turn, ...]) -> list[Json]:
    """Build the messages; one with a text alone is that text."""
    messages = _chat.merge_turns(turns, _iter_blocks)
    for message in messages:
        match message["content"]:
            case [{"type": "text", "text": text}]:
                message["content"] = text
    return messages


def _iter_blocks(turn: Turn) -> Iterator[Json]:
    """Yield the content blocks of the messages API for a turn of the conversation."""
    if turn.role == "tool":
        yield {"type": "tool_result", "tool_use_id": turn.tool_call_id, "content": turn.text}
        return
    for picture in turn.pictures:
        source = {
            "type": "base64",
            "media_type": picture.media_type,
            "data": _chat.encode_picture(picture),
        }
        yield {"type": "image", "source": source}
    if turn.text:
        yield {"type": "text", "text": turn.text}
    for call in turn.tool_calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


def _send_request(access: Access, fields: Json) -> Flow[VendorResponse]:
    reader = _MessageReader() if fields.get("stream") else None
    return _WIRE.ask(access, "/v1/messages", fields, stream=reader)


def _build_failure(answer: VendorResponse, body: Json) -> ProviderError:
    error = get_object(body, "error")
    is_spent = get_object(error, "details").get("error_code") == "enforced_spend_limit_reached"
    return answer.build_failure(
        error.get("message"),
        verdict=OUT_OF_CREDIT if is_spent or error.get("type") == "billing_error" else None,
        request_id=answer.read_label(body.get("request_id")),
    )


def _parse_reply(answer: VendorResponse, body: Json, operation: TextRequest) -> TextReply:
    reason, blocks = str(body.get("stop_reason")), body.get("content")
    if reason == "refusal":
        category = answer.redact_excerpt(get_object(body, "stop_details").get("category"))
        raise answer.build_error(
            REFUSED,
            f"anthropic refused to answer this{': ' + category if category else ''}.",
            request_id=answer.request_id or answer.read_label(body.get("id")),
        )
    if not isinstance(blocks, list):
        raise answer.build_bad_response("The answer of anthropic has no content in it.")
    # Skip unknown kinds of blocks, as the vendor asks.
    known = [block for block in blocks if isinstance(block, dict)]
    texts = [clean_text(b.get("text")) or "" for b in known if b.get("type") == "text"]
    thoughts = [clean_text(b.get("thinking")) or "" for b in known if b.get("type") == "thinking"]
    calls = [b for b in known if b.get("type") == "tool_use"]
    usage = get_object(body, "usage")
    reply = TextReply(
        text="".join(texts).strip(),
        finish=_FINISH_REASONS.get(reason, "stop"),
        cost=Cost(_parse_usage(usage)),
        vendor_request_id=answer.request_id or answer.read_label(body.get("id")),
        model=answer.read_label(body.get("model")) or answer.access.model,
        tier=_chat.read_service_tier(answer.read_label(usage.get("service_tier"))),
        tool_calls=tuple(
            _chat.read_tool_call(answer, block.get("id"), block.get("name"), block.get("input"))
            for block in calls
        ),
        reasoning="\n\n".join(filter(None, thoughts)),
    )
    return _chat.complete_reply(answer, operation, reply)


def _parse_usage(usage: Json) -> dict[str, float]:
    """Parse the billed tokens, cached input included; returns {} unless both counts are given."""
    parts = ("cache_creation_input_tokens", "cache_read_input_tokens")
    cache_writes, cache_reads = read_numbers(usage, *parts)
    details = get_object(usage, "output_tokens_details")
    return _chat.build_token_units(
        *read_numbers(usage, "input_tokens", "output_tokens"),
        cache_reads=cache_reads,
        cache_writes=cache_writes,
        reasoning=to_finite_number(details.get("thinking_tokens")),
        is_apart=True,
    )


_WIRE = VendorWire(_build_failure, _build_headers)
VENDOR = Vendor(
    id="anthropic",
    label="V2",
    title="Anthropic",
    variable="ANTHROPIC_API_KEY",
    base_urls={"api": "https://api.anthropic.com"},
    operations={TextRequest: generate_text},
    models=load_models("anthropic"),
    bounds={
        TextRequest: TokenBound(
            "API reference, messages: max_tokens limits the output, thinking included;"
            " guide to structured outputs: a schema adds a system prompt to the input; guide to"
            " vision: a picture is scaled down to at most so many tokens",
            picture=MAX_PICTURE_TOKENS,
            tool_prompt=TOOL_PROMPT_TOKENS,
        )
    },
    probe=_WIRE.make_probe("/v1/models"),
    batch=make_batch_wire(_WIRE, _STATUSES_OF_ERRORS),
)
