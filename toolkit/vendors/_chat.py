"""The chat API (wire) that OpenAI-compatible vendors share: request bodies, answers and usage."""

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Access, Cost, TextReply, TextRequest
from toolkit.plugins.conversation import Picture, ToolCall, Turn
from toolkit.plugins.pricing import (
    CACHE_WRITE_TOKENS,
    CACHED_INPUT_TOKENS,
    IMAGE_TOKENS,
    REASONED_TOKENS,
    STANDARD_TIER,
)
from toolkit.vendors._http import (
    REFUSED,
    Json,
    VendorResponse,
    clean_text,
    get_first,
    get_object,
    list_objects,
    read_numbers,
    to_finite_number,
)

_THOUGHTS = re.compile(r"\A\s*<think>(.*?)</think>\s*", re.S)
_UNCLOSED_THOUGHTS = re.compile(r"\A\s*<think>(?!.*</think>).*", re.S)
_FENCED = re.compile(r"\A\s*```[\w-]*\s*\n(.*?)\n?\s*```\s*\Z", re.S)
# Names that vendors and servers use for the tier of their list prices.
_STANDARD_TIER_WORDS = frozenset(("auto", "default", "on_demand", "standard", "unspecified"))
# A limit, because each brace that begins no JSON may be read to the end of the answer.
_MAX_FALSE_STARTS = 64
_FINISH_REASONS = {
    "stop": "stop",
    "length": "length",
    "model_length": "length",  # Mistral's name of a full context
    "content_filter": "filtered",
}


def build_body(operation: TextRequest, access: Access, *, schema_in_prompt: bool = False) -> Json:
    """Build the body of a chat request, of fields that all OpenAI-compatible vendors accept.

    Args:
        operation: the requested operation.
        access: access to the vendor, with the model and the vendor's differences.
        schema_in_prompt: whether the operation's schema is written into the prompt, for models
            that accept no schema otherwise.
    """
    note = write_schema_note(operation) if schema_in_prompt else ""
    reasoning_member = access.dialect.reasoning_member
    messages = [_build_message(turn, reasoning_member) for turn in operation.list_turns(note)]
    if operation.system:
        messages.insert(0, {"role": "system", "content": operation.system})
    fields: Json = {
        "model": access.model,
        "messages": messages,
        "max_completion_tokens": operation.output_cap,
        "temperature": operation.temperature,
        "top_p": operation.top_p,
        "seed": operation.seed,
        "stop": list(operation.stop) or None,
        "logprobs": operation.confidence or None,
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


def _build_message(turn: Turn, reasoning_member: str) -> Json:
    """Build a message of the chat API from a turn of the conversation."""
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
        message = {"role": "assistant", "content": turn.text or None, "tool_calls": calls}
        return (
            message | {reasoning_member: turn.tool_calls[0].reasoning}
            if reasoning_member
            else message
        )
    if turn.pictures:
        parts: list[Json] = [
            {"type": "image_url", "image_url": {"url": build_data_url(picture), "detail": "high"}}
            for picture in turn.pictures
        ]
        texts: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
        return {"role": turn.role, "content": [*texts, *parts]}
    return {"role": turn.role, "content": turn.text}


def merge_turns(turns: Iterable[Turn], iter_blocks: Callable[[Turn], Iterator[Json]]) -> list[Json]:
    """Build messages of blocks by turns of user and model; answers of tools are the user's."""
    groups = groupby(turns, lambda turn: "assistant" if turn.role == "assistant" else "user")
    return [
        {"role": role, "content": [block for turn in group for block in iter_blocks(turn)]}
        for role, group in groups
    ]


def build_data_url(picture: Picture) -> str:
    """Build the URL that holds a picture itself (RFC 2397)."""
    return f"data:{picture.media_type};base64,{encode_picture(picture)}"


def encode_picture(picture: Picture) -> str:
    """Return the bytes of a picture in base64."""
    return base64.b64encode(picture.data).decode()


def write_schema_note(operation: TextRequest) -> str:
    """Return an instruction to answer by the request's schema; "" if it has no schema."""
    if operation.schema is None:
        return ""
    schema = json.dumps(operation.schema, ensure_ascii=False)
    return f"Answer with JSON only, no fences, matching this JSON schema:\n{schema}"


def read_tool_calls(answer: VendorResponse, calls: object) -> tuple[ToolCall, ...]:
    """Read the `tool_calls` of a chat message; none if they are no list.

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
        raise answer.build_bad_response(
            f"The answer of {answer.vendor} asks for a tool without a name or without arguments.",
        )
    named = answer.read_label(id) or answer.read_label(name) or "call"
    return ToolCall(named, clean_text(name) or "", arguments)


def parse_reply(answer: VendorResponse, body: Json, operation: TextRequest) -> TextReply:
    """Parse the body of a chat answer, which is no failure by its status, into a reply.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if the answer has no message or is truncated before
            its first word; `PROVIDER_REJECTED` for a refusal.
    """
    request_id = answer.request_id or answer.read_label(body.get("id"))
    choice = get_first(body, "choices")
    message = get_object(choice, "message")
    if not message:
        raise answer.build_bad_response(
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
    message = split_content(message)
    text, thoughts = _extract_text(message.get("content"), finish)
    reasoning = message.get("reasoning_content") or message.get("reasoning") or thoughts
    reasoning = reasoning if isinstance(reasoning, str) else ""
    calls = read_tool_calls(answer, message.get("tool_calls"))
    if calls and answer.access.dialect.reasoning_member:
        calls = (calls[0].sign(clean_text(reasoning) or ""), *calls[1:])
    reply = TextReply(
        text=text,
        finish=finish,
        cost=Cost(_parse_usage(body)),
        vendor_request_id=request_id,
        model=answer.read_label(body.get("model")) or answer.access.model,
        tier=read_service_tier(answer.read_label(body.get("service_tier"))),
        upstream=answer.read_label(body.get("provider")),  # OpenRouter's name of its host
        tool_calls=calls,
        reasoning=reasoning,
        confidence=_read_confidence(choice) if operation.confidence else None,
    )
    return complete_reply(answer, operation, reply)


def _read_confidence(choice: Json) -> float | None:
    """Read the probability of an answer, the product over its tokens; None if not reported."""
    rows = list_objects(get_object(choice, "logprobs"), "content")
    logs = [row.get("logprob") for row in rows]
    numbers = [log for log in logs if isinstance(log, int | float)]
    if not numbers or len(numbers) < len(logs) or not math.isfinite(sum(numbers)):
        return None
    return math.exp(min(0.0, sum(numbers)))


def read_service_tier(label: str | None) -> str | None:
    """Return our name of the service tier that an answer names; None if it names no tier.

    >>> read_service_tier("default"), read_service_tier("PRIORITY")
    ('standard', 'priority')
    """
    word = (label or "").lower()
    return STANDARD_TIER if word in _STANDARD_TIER_WORDS else word or None


def complete_reply(answer: VendorResponse, operation: TextRequest, reply: TextReply) -> TextReply:
    """Complete the reply of an answer: only the JSON that was asked for, and a clean reasoning.

    If the request has a schema, only the JSON in the text is kept.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` if it was truncated before its first word.
    """
    if reply.finish == "length" and not reply.text and not reply.tool_calls:
        # No retry, because reasoning that used up the limit would do so again.
        raise answer.build_error(
            (ErrorCode.PROVIDER_BAD_RESPONSE, False),
            f"The answer of {answer.vendor} was truncated before its first word: raise max_tokens.",
            request_id=reply.vendor_request_id,
        )
    schema = operation.schema
    if schema is None and not reply.tool_calls and not reply.reasoning:
        return reply
    return replace(
        reply,
        text=reply.text if schema is None else extract_json(reply.text, schema),
        finish="tool_calls" if reply.tool_calls else reply.finish,
        reasoning=(clean_text(reply.reasoning) or "").strip(),
    )


def extract_json(text: str, schema: Json) -> str:
    """Return the longest JSON object, or array for such a schema, in an answer, or else all of it.

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


def split_content(message: Json) -> Json:
    """Return a message whose content is a text; Mistral's may be parts of thoughts and text."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = [part for part in content if isinstance(part, dict)]
    thoughts = "".join(join_parts(part.get("thinking")) for part in parts)
    known = message.get("reasoning_content") or message.get("reasoning")
    return {**message, "content": join_parts(parts), "reasoning_content": known or thoughts}


def join_parts(content: object) -> str:
    """Join the texts of a content, which is a text or a list of parts.

    >>> join_parts([{"type": "text", "text": "Tea"}, {"type": "text", "text": " time"}])
    'Tea time'
    """
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _extract_text(content: object, finish: str) -> tuple[str, str]:
    """Return the text of a message's content, and the `<think>` part before it, "" without any."""
    text = clean_text(join_parts(content)) or ""
    thoughts = _THOUGHTS.match(text)
    if thoughts is not None:
        return text[thoughts.end() :].strip(), thoughts[1]
    if finish == "length":
        text = _UNCLOSED_THOUGHTS.sub("", text)
    return text.strip(), ""


def _parse_usage(body: Json) -> dict[str, float]:
    """Parse the billed tokens; returns {} unless the answer counts both input and output."""
    usage = get_object(body, "usage")
    input_tokens, output_tokens = read_numbers(usage, "prompt_tokens", "completion_tokens")
    if input_tokens is None or output_tokens is None:
        return {}
    total, hits = read_numbers(usage, "total_tokens", "prompt_cache_hit_tokens")
    # xAI counts reasoning, which it bills as output, in the total alone.
    output_tokens = max(output_tokens, (total or 0.0) - input_tokens)
    details = get_object(usage, "prompt_tokens_details")
    parts = read_numbers(details, "cached_tokens", "cache_write_tokens", "image_tokens")
    cache_reads, cache_writes, images = parts
    answer_details = get_object(usage, "completion_tokens_details")
    cache_reads = hits if cache_reads is None else cache_reads  # DeepSeek's name
    return build_token_units(
        input_tokens,
        output_tokens,
        cache_reads=cache_reads,
        cache_writes=cache_writes,
        images=images,
        reasoning=to_finite_number(answer_details.get("reasoning_tokens")),
    )


def build_token_units(
    input_tokens: float | None,
    output_tokens: float | None,
    *,
    cache_reads: float | None = None,
    cache_writes: float | None = None,
    images: float | None = None,
    reasoning: float | None = None,
    is_apart: bool = False,
) -> dict[str, float]:
    """Build the billed units of a text from counts of tokens, without those not reported.

    Args:
        input_tokens: number of input tokens.
        output_tokens: number of output tokens, reasoning included.
        cache_reads: input tokens that the vendor read from its prompt cache; None if not reported.
        cache_writes: input tokens that the vendor wrote to its prompt cache; None if not reported.
        images: input tokens of pictures; None if not reported.
        reasoning: output tokens of reasoning; None if not reported.
        is_apart: True if the vendor's input tokens leave out those of the cache.

    >>> build_token_units(120, 30, cache_reads=100)
    {'input_tokens': 120, 'output_tokens': 30, 'cached_input_tokens': 100}
    """
    if input_tokens is None or output_tokens is None:
        return {}
    if is_apart:
        input_tokens += (cache_reads or 0.0) + (cache_writes or 0.0)
    units = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    parts = {
        CACHED_INPUT_TOKENS: cache_reads,
        CACHE_WRITE_TOKENS: cache_writes,
        IMAGE_TOKENS: images,
        REASONED_TOKENS: reasoning,
    }
    return units | {name: count for name, count in parts.items() if count is not None}
