"""The chat wire that OpenAI-compatible vendors share: bodies, answers and usage."""

import base64
import json
import re

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Access, Cost, TextReply, TextRequest
from toolkit.plugins.conversation import Picture, ToolCall, Turn
from toolkit.plugins.pricing import CACHE_WRITE_TOKENS, CACHED_INPUT_TOKENS, STANDARD_TIER
from toolkit.vendors._http import (
    REFUSED,
    Json,
    VendorResponse,
    build_bearer_headers,
    build_json_request,
    clean_text,
    get_first,
    get_object,
    read_numbers,
)

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>\s*", re.S)
_UNCLOSED_THOUGHTS = re.compile(r"\A\s*<think>(?!.*</think>).*", re.S)
_FENCED = re.compile(r"\A\s*```[\w-]*\s*\n(.*?)\n?\s*```\s*\Z", re.S)
# Names that vendors and servers use for the tier of their list prices.
_STANDARD_TIER_WORDS = frozenset(("auto", "default", "on_demand", "standard", "unspecified"))
# A limit, because each brace that begins no JSON may be read to the end of the answer.
_MAX_FALSE_STARTS = 64
_FINISH_REASONS = {"stop": "stop", "length": "length", "content_filter": "filtered"}


def build_body(operation: TextRequest, model: str, *, schema_in_prompt: bool = False) -> Json:
    """Build the fields that all of these vendors accept.

    Args:
        operation: the requested operation.
        model: id of the model.
        schema_in_prompt: whether the operation's schema is written into the prompt, for models
            that accept no schema otherwise.
    """
    note = write_schema_note(operation) if schema_in_prompt else ""
    messages = [_build_message(turn) for turn in operation.list_turns(note)]
    if operation.system:
        messages.insert(0, {"role": "system", "content": operation.system})
    fields: Json = {
        "model": model,
        "messages": messages,
        "max_completion_tokens": operation.output_cap,
        "temperature": operation.temperature,
        "top_p": operation.top_p,
        "seed": operation.seed,
        "stop": list(operation.stop) or None,
    }
    if operation.tools:
        fields["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in operation.tools
        ]
        fields["tool_choice"] = operation.tool_choice
        if operation.named_tool:
            named = {"name": operation.named_tool}
            fields["tool_choice"] = {"type": "function", "function": named}
    return {name: value for name, value in fields.items() if value is not None}


def _build_message(turn: Turn) -> Json:
    """Build a message of the conversation."""
    if turn.role == "tool":
        return {"role": "tool", "tool_call_id": turn.tool_call_id, "content": turn.text}
    if turn.role == "assistant" and turn.tool_calls:
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.spelled_arguments},
            }
            for call in turn.tool_calls
        ]
        return {"role": "assistant", "content": turn.text or None, "tool_calls": calls}
    if turn.pictures:
        parts: list[Json] = [
            {"type": "image_url", "image_url": {"url": build_data_url(picture), "detail": "high"}}
            for picture in turn.pictures
        ]
        texts: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
        return {"role": turn.role, "content": [*texts, *parts]}
    return {"role": turn.role, "content": turn.text}


def build_data_url(picture: Picture) -> str:
    """Build the URL that holds a picture itself (RFC 2397)."""
    return f"data:{picture.media_type};base64,{encode_picture(picture)}"


def encode_picture(picture: Picture) -> str:
    """Return the bytes of a picture in base64."""
    return base64.b64encode(picture.data).decode()


def write_schema_note(operation: TextRequest) -> str:
    """Return the instruction to answer by the schema, for models without a schema field."""
    if operation.schema is None:
        return ""
    schema = json.dumps(operation.schema, ensure_ascii=False)
    return f"Answer with JSON only, no fences, matching this JSON schema:\n{schema}"


def read_tool_calls(answer: VendorResponse, calls: object) -> tuple[ToolCall, ...]:
    """Read the tools that a message of the chat wire asks for.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if a request has no name, or its arguments are no
            JSON object.
    """
    return tuple(
        read_tool_call(
            answer,
            call.get("id") if isinstance(call, dict) else None,
            get_object(call, "function").get("name") if isinstance(call, dict) else None,
            get_object(call, "function").get("arguments") if isinstance(call, dict) else None,
        )
        for call in (calls if isinstance(calls, list) else ())
    )


def read_tool_call(answer: VendorResponse, id: object, name: object, arguments: object) -> ToolCall:
    """Read a request to call a tool; its arguments are an object, or the JSON of an object.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if it has no name, or other arguments.
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            arguments = None
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        raise answer.build_error(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None),
            f"The answer of {answer.vendor} asks for a tool without a name or without arguments.",
        )
    named = answer.read_label(id) or answer.read_label(name) or "call"
    return ToolCall(named, clean_text(name) or "", arguments)


def build_request(access: Access, path: str, fields: Json) -> httpx.Request:
    """Build a chat request."""
    return build_json_request(access.url(path), fields, build_bearer_headers(access))


def parse_reply(answer: VendorResponse, body: Json, operation: TextRequest) -> TextReply:
    """Parse the reply of an answer that did not fail.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if the answer has no message or is truncated before
            its first word; `PROVIDER_REJECTED` for a refusal.
    """
    request_id = answer.request_id or answer.read_label(body.get("id"))
    choice = get_first(body, "choices")
    message = get_object(choice, "message")
    if not message:
        raise answer.build_error(
            (ErrorCode.PROVIDER_BAD_RESPONSE, None),
            f"The answer of {answer.vendor} has no message in it.",
            request_id=request_id,
        )
    finish = _FINISH_REASONS.get(str(choice.get("finish_reason")), "stop")
    if message.get("refusal") or finish == "filtered":
        words = answer.redact_excerpt(message.get("refusal"))
        raise answer.build_error(
            REFUSED,
            f"{answer.vendor} refused to answer this{': ' + words if words else '.'}",
            request_id=request_id,
        )
    said_model = answer.read_label(body.get("model"))
    text = _extract_text(message.get("content"), finish)
    return build_reply(
        answer,
        operation,
        text,
        finish,
        _parse_usage(body),
        request_id,
        said_model,
        tier=read_service_tier(answer.read_label(body.get("service_tier"))),
        tool_calls=read_tool_calls(answer, message.get("tool_calls")),
        reasoning=message.get("reasoning_content") or message.get("reasoning"),
    )


def read_service_tier(label: str | None) -> str | None:
    """Return our name of the service tier that an answer names; None if it names no tier.

    >>> read_service_tier("default"), read_service_tier("PRIORITY")
    ('standard', 'priority')
    """
    word = (label or "").lower()
    return STANDARD_TIER if word in _STANDARD_TIER_WORDS else word or None


def build_reply(
    answer: VendorResponse,
    operation: TextRequest,
    text: str,
    finish: str,
    units: dict[str, float],
    request_id: str | None,
    model: str | None = None,
    *,
    tier: str | None = None,
    tool_calls: tuple[ToolCall, ...] = (),
    reasoning: object = "",
) -> TextReply:
    """Build the reply of a vendor that answered with this text.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if it was truncated before its first word.
    """
    if tool_calls:
        finish = "tool_calls"
    elif not text and finish == "length":
        # No retry, because reasoning that used up the limit would do so again.
        raise answer.build_error(
            (ErrorCode.PROVIDER_BAD_RESPONSE, False),
            f"The answer of {answer.vendor} was truncated before its first word: raise max_tokens.",
            request_id=request_id,
        )
    return TextReply(
        text=text if operation.schema is None else extract_json(text, operation.schema),
        finish=finish,
        tool_calls=tool_calls,
        reasoning=clean_text(reasoning) or "",
        model=model or answer.access.model,
        vendor_request_id=request_id,
        tier=tier,
        cost=Cost(units),
    )


def extract_json(text: str, schema: Json) -> str:
    """Return the longest JSON in an answer, or the whole answer if it has no JSON.

    >>> extract_json('Of {"a": 1}: {"title": "Tides"} Enjoy!', {"type": "object"})
    '{"title": "Tides"}'
    """
    fenced = _FENCED.match(text)
    bare = fenced.group(1) if fenced else text
    mark = "[" if schema.get("type") == "array" else "{"
    decoder, longest = json.JSONDecoder(), ""
    start, false_starts = bare.find(mark), 0
    while start >= 0 and false_starts < _MAX_FALSE_STARTS:
        try:
            _, end = decoder.raw_decode(bare, start)
        except (ValueError, RecursionError):
            false_starts += 1
            end = start + 1
        else:
            longest = max(longest, bare[start:end], key=len)
        start = bare.find(mark, end)
    return longest or bare


def _extract_text(content: object, finish: str) -> str:
    """Return the text of a message's content, a text or a list of parts, without thoughts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    text = _THOUGHTS.sub("", clean_text(content) or "")
    if finish == "length":
        text = _UNCLOSED_THOUGHTS.sub("", text)
    return text.strip()


def _parse_usage(body: Json) -> dict[str, float]:
    """Parse the billed tokens; returns {} unless the answer has both counts."""
    usage = get_object(body, "usage")
    input_tokens, output_tokens = read_numbers(usage, "prompt_tokens", "completion_tokens")
    if input_tokens is None or output_tokens is None:
        return {}
    details = get_object(usage, "prompt_tokens_details")
    cache_reads, cache_writes = read_numbers(details, "cached_tokens", "cache_write_tokens")
    return build_token_units(
        input_tokens, output_tokens, cache_reads=cache_reads, cache_writes=cache_writes
    )


def build_token_units(
    input_tokens: float,
    output_tokens: float,
    *,
    cache_reads: float | None = None,
    cache_writes: float | None = None,
) -> dict[str, float]:
    """Build the units of a text.

    Args:
        input_tokens: number of input tokens.
        output_tokens: number of output tokens, reasoning included.
        cache_reads: input tokens that the vendor read from its prompt cache; None if not reported.
        cache_writes: input tokens that the vendor wrote to its prompt cache; None if not reported.

    >>> build_token_units(120, 30, cache_reads=100)
    {'input_tokens': 120, 'output_tokens': 30, 'cached_input_tokens': 100}
    """
    units = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    parts = {CACHED_INPUT_TOKENS: cache_reads, CACHE_WRITE_TOKENS: cache_writes}
    return units | {name: count for name, count in parts.items() if count is not None}
