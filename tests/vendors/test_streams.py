"""Streamed text: each vendor's documented events, cut anywhere, join to the answer."""

import json
import zlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest

from tests.vendors.conftest import VendorDrive, flow, ok
from tests.vendors.test_chat import chat
from toolkit.contract.errors import ErrorCode
from toolkit.contract.events import PieceKind
from toolkit.engine.concurrency.threads import start_thread
from toolkit.engine.transport.answers import OutcomeUnknownError, read_answer
from toolkit.plugins import Cost, ProviderError, TextReply, TextRequest
from toolkit.plugins.streaming import AnswerPiece
from toolkit.sandbox.event_streams import format_event_frame

STREAMED = TextRequest(prompt="Why do tides turn?", max_tokens=64, stream=True)
WORDS = ("Because ", "of the m\u00f6on", ", \U0001f315 twice a day.", "\n")
TEXT = "Because of the m\u00f6on, \U0001f315 twice a day."


class CutStream(httpx.AsyncByteStream):
    """A body in pieces of this many bytes."""

    def __init__(self, body: bytes, size: int) -> None:
        self._pieces = [body[at : at + size] for at in range(0, len(body), size)]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def sse(*events: object, names: bool = False) -> bytes:
    """Return server-sent events, with their names if the vendor sends names."""
    lines = []
    for event in events:
        kind = event.get("type") if isinstance(event, dict) else None
        data = event if isinstance(event, str) else json.dumps(event)
        lines.append(f"event: {kind}\ndata: {data}\n\n" if names else f"data: {data}\n\n")
    return ": a comment\n\n".join(lines).encode()


def chat_events(*, usage: bool = True, finish: str | None = "stop") -> bytes:
    """Chunks of a chat completion, by the API reference of chat completion streams."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m-2026"}

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**head, "choices": [choice], "usage": None}

    first = chunk({"role": "assistant", "content": "", "refusal": None})
    events: list[object] = [first, *(chunk({"content": word}) for word in WORDS)]
    if finish:
        events.append(chunk({}, finish))
    if usage:
        counted = {"prompt_tokens": 19, "completion_tokens": 6, "total_tokens": 25}
        events.append({**head, "choices": [], "usage": counted})
    return sse(*events, "[DONE]")


def chat_tool_events() -> bytes:
    """Chunks with reasoning and two tool calls; DeepSeek's reference has `reasoning_content`."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    def call(index: int, **function: str) -> dict[str, Any]:
        named = {"id": f"call_{index}", "type": "function"} if "name" in function else {}
        return chunk({"tool_calls": [{"index": index, **named, "function": function}]})

    return sse(
        chunk({"role": "assistant", "content": None, "reasoning_content": " I need"}),
        chunk({"reasoning_content": " both.\n"}),
        call(0, name="weather", arguments=""),
        call(0, arguments='{"city": "R'),
        call(0, arguments='\u00f6me"}'),
        call(1, name="time", arguments="{}"),
        chunk({}, "tool_calls"),
        "[DONE]",
    )


def message_tool_events() -> bytes:
    """Events with two blocks of thoughts and two tool calls, by "Streaming messages"."""

    def block(index: int, begun: dict[str, Any], *deltas: dict[str, Any]) -> list[object]:
        kinds = {"thinking": "thinking_delta", "partial_json": "input_json_delta"}
        pieces = [{"type": kinds[next(iter(delta))], **delta} for delta in deltas]
        return [
            {"type": "content_block_start", "index": index, "content_block": begun},
            *({"type": "content_block_delta", "index": index, "delta": piece} for piece in pieces),
            {"type": "content_block_stop", "index": index},
        ]

    def use(id: str, name: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": id, "name": name, "input": {}}

    thought = {"type": "thinking", "thinking": "", "signature": ""}
    cuts = ({"partial_json": ""}, {"partial_json": '{"city": "R'}, {"partial_json": '\u00f6me"}'})
    return sse(
        {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}},
        *block(0, thought, {"thinking": " I need"}, {"thinking": " both."}),
        *block(1, thought, {"thinking": "Now.\n"}),
        *block(2, use("call_0", "weather"), *cuts),
        *block(3, use("call_1", "time")),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
        names=True,
    )


def content_tool_events() -> bytes:
    """Parts with thoughts and two function calls, by the guides to thinking and functions."""

    def chunk(part: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        content = {"role": "model", "parts": [part]}
        return {"candidates": [{"content": content, "finishReason": finish}]}

    return sse(
        chunk({"text": " I need", "thought": True}),
        chunk({"text": " both.\n", "thought": True}),
        chunk({"functionCall": {"id": "call_0", "name": "weather", "args": {"city": "R\u00f6me"}}}),
        chunk({"functionCall": {"name": "time"}}, "STOP"),
    )


def converse_tool_frames() -> bytes:
    """Frames with reasoning and two tool uses, by the API reference of ConverseStream."""

    def delta(place: int, **fields: object) -> bytes:
        return format_event_frame(
            "contentBlockDelta", {"contentBlockIndex": place, "delta": fields}
        )

    def start(place: int, id: str, name: str) -> bytes:
        use = {"toolUse": {"toolUseId": id, "name": name}}
        return format_event_frame("contentBlockStart", {"contentBlockIndex": place, "start": use})

    return b"".join(
        (
            delta(0, reasoningContent={"text": " I need"}),
            delta(0, reasoningContent={"text": " both.\n"}),
            delta(0, reasoningContent={"signature": "c2lnbmVk"}),
            start(1, "call_0", "weather"),
            delta(1, toolUse={"input": '{"city": "R'}),
            delta(1, toolUse={"input": '\u00f6me"}'}),
            start(2, "call_1", "time"),
            delta(2, toolUse={"input": "{}"}),
            format_event_frame("messageStop", {"stopReason": "tool_use"}),
        )
    )


def message_events(end: Sequence[object] | None = None) -> bytes:
    """Events of a message, by the guide "Streaming messages"."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    usage = {"input_tokens": 19, "output_tokens": 1}
    start = {"type": "message_start", "message": {**message, "model": "m-2026", "usage": usage}}
    thought = {"type": "thinking_delta", "thinking": "Hm."}
    opened = {"type": "content_block_start", "content_block": {"type": "text", "text": ""}}
    deltas = [
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": word}}
        for word in WORDS
    ]
    end_events = [
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 6},
        },
        {"type": "message_stop"},
    ]
    return sse(
        start,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": thought},
        {**opened, "index": 1},
        *deltas,
        *(end_events if end is None else end),
        names=True,
    )


def content_events(finish: str | None = "STOP") -> bytes:
    """Parts of a content, by the API reference of streamGenerateContent."""

    def chunk(
        words: str, finish_reason: str | None = None, *, thought: bool = False
    ) -> dict[str, Any]:
        part = {"text": words, **({"thought": True} if thought else {})}
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0}
        usage = {"promptTokenCount": 19, "candidatesTokenCount": 6}
        return {
            "candidates": [
                {**candidate, **({"finishReason": finish_reason} if finish_reason else {})}
            ],
            "usageMetadata": usage,
            "modelVersion": "m-2026",
            "responseId": "r-1",
        }

    *first, last = WORDS
    events = [chunk("Hm.", thought=True), *(chunk(word) for word in first), chunk(last, finish)]
    return sse(*events)


def converse_frames(stop: str | None = "end_turn") -> bytes:
    """Frames of a Converse stream, by the API reference of ConverseStream."""
    deltas = [{"contentBlockIndex": 0, "delta": {"text": word}} for word in WORDS]
    frames = [
        format_event_frame("messageStart", {"role": "assistant"}),
        *(format_event_frame("contentBlockDelta", delta) for delta in deltas),
        format_event_frame("contentBlockStop", {"contentBlockIndex": 0}),
    ]
    if stop:
        counted = {"inputTokens": 19, "outputTokens": 6, "totalTokens": 25}
        frames.append(format_event_frame("messageStop", {"stopReason": stop}))
        frames.append(format_event_frame("metadata", {"usage": counted}))
    return b"".join(frames)


SSE, FRAMES = "text/event-stream; charset=utf-8", "application/vnd.amazon.eventstream"
WHOLE: dict[str, tuple[str, bytes]] = {
    "openai": (SSE, chat_events()),
    "minimax": (SSE, chat_events()),
    "anthropic": (SSE, message_events()),
    "google": (SSE, content_events()),
    "aws": (FRAMES, converse_frames()),
}
WITH_TOOLS: dict[str, bytes] = {
    "openai": chat_tool_events(),
    "minimax": chat_tool_events(),
    "anthropic": message_tool_events(),
    "google": content_tool_events(),
    "aws": converse_tool_frames(),
}
BROKEN_OFF: dict[str, bytes] = {
    "openai": chat_events(usage=False, finish=None).removesuffix(b"data: [DONE]\n\n"),
    "minimax": chat_events(usage=False, finish=None),
    "anthropic": message_events(end=[]),
    "google": content_events(finish=None),
    "aws": converse_frames(stop=None),
}


async def stream(
    vendor: str, body: bytes, *, size: int = 1 << 20, kind: str | None = None, coding: str = ""
) -> tuple[TextReply, list[AnswerPiece]]:
    """Answer a flow's only request by a stream; return the reply and the displayed pieces."""
    pieces: list[AnswerPiece] = []
    running = flow(vendor, STREAMED)
    request = next(running)
    assert isinstance(request, httpx.Request)
    headers = {"content-type": kind or WHOLE[vendor][0], "x-request-id": "req_9"}
    if coding:
        headers["content-encoding"] = coding
    response = httpx.Response(200, headers=headers, stream=CutStream(body, size))
    answer = await read_answer(request, response, 1_000_000, pieces.append, start_thread)
    try:
        step = running.send(answer)
    except StopIteration as stop:
        return stop.value, pieces
    raise AssertionError(f"the flow goes on with {step!r}")


def join(pieces: Sequence[AnswerPiece], kind: PieceKind = "text") -> str:
    """Join the pieces of a kind."""
    return "".join(piece.text for piece in pieces if piece.kind == kind)


each_vendor = pytest.mark.parametrize("vendor", WHOLE)


@each_vendor
@pytest.mark.parametrize("is_ended", [True, False], ids=["ended", "without its trailer"])
@pytest.mark.parametrize("size", [1, 64, 1 << 20])
async def test_reads_a_compressed_stream(vendor: str, size: int, is_ended: bool) -> None:
    """Given a stream by gzip, with or without its trailer, then it is read like plain text."""
    plain = WHOLE[vendor][1]
    compressor = zlib.compressobj(wbits=31)
    body = b"".join(
        compressor.compress(plain[at : at + 40]) + compressor.flush(zlib.Z_SYNC_FLUSH)
        for at in range(0, len(plain), 40)
    )
    body += compressor.flush() if is_ended else b""
    reply, pieces = await stream(vendor, body, size=size, coding="gzip")
    expected, plain_pieces = await stream(vendor, plain, size=40)
    assert (reply, join(pieces)) == (expected, join(plain_pieces))


@each_vendor
@pytest.mark.parametrize("size", [1, 3, 64, 1 << 20])
async def test_joins_the_pieces_of_a_stream(vendor: str, size: int) -> None:
    """Given a stream cut anywhere, then its pieces join to the text, and usage is read."""
    reply, pieces = await stream(vendor, WHOLE[vendor][1], size=size)
    assert reply.text == join(pieces) == TEXT
    assert reply.reasoning == join(pieces, "reasoning")
    assert reply.cost == Cost({"input_tokens": 19.0, "output_tokens": 6.0})
    assert reply.finish == "stop"
    assert vendor == "aws" or reply.model == "m-2026"
    assert len(pieces) >= (3 if size == 1 else 1)


@each_vendor
@pytest.mark.parametrize("size", [1, 64, 1 << 20])
async def test_streams_reasoning_and_tool_calls(vendor: str, size: int) -> None:
    """Given reasoning and tool calls, then the pieces of each kind total the reply's."""
    reply, pieces = await stream(vendor, WITH_TOOLS[vendor], size=size)
    assert reply.text == join(pieces) == ""
    expected = "I need both.\n\nNow." if vendor == "anthropic" else "I need both."
    assert reply.reasoning == join(pieces, "reasoning") == expected
    asked = [piece for piece in pieces if piece.kind == "tool_call"]
    assert {(piece.index, piece.id, piece.name) for piece in asked} == {
        (0, "call_0", "weather"),
        (1, "call_1", "time"),
    }
    for index, call in enumerate(reply.tool_calls):
        spelled = "".join(piece.text for piece in asked if piece.index == index)
        assert json.loads(spelled or "{}") == call.arguments == [{"city": "R\u00f6me"}, {}][index]


@pytest.mark.parametrize("size", [1, 3, 1 << 20])
@pytest.mark.parametrize(
    ("written", "reasoning", "text"),
    [
        (" <think> Hm.\n</think>\n Tea</think> ", "Hm.", "Tea</think>"),
        ("<think>a</b></think><think>b</think>", "a</b>", "<think>b</think>"),
        ("<thin ice", "", "<thin ice"),
    ],
)
async def test_thoughts_in_a_text_are_reasoning(
    written: str, reasoning: str, text: str, size: int
) -> None:
    """Given a text that begins with thoughts, cut anywhere, then they are reasoning."""
    cuts = [written[at : at + size] for at in range(0, len(written), size)]
    chunks: list[object] = [
        {"choices": [{"index": 0, "delta": {"content": cut}, "finish_reason": None}]}
        for cut in cuts
    ]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    reply, pieces = await stream("openai", sse(*chunks, end))
    assert (reply.reasoning, reply.text) == (reasoning, text)
    assert (join(pieces, "reasoning"), join(pieces)) == (reasoning, text)


@each_vendor
async def test_outcome_of_a_broken_stream_is_unknown(vendor: str) -> None:
    """Given a stream without its end, then the outcome is unknown and there is no reply."""
    with pytest.raises(OutcomeUnknownError, match="broke off before its end") as caught:
        await stream(vendor, BROKEN_OFF[vendor])
    assert caught.value.code is ErrorCode.PROVIDER_UNAVAILABLE


@each_vendor
async def test_reads_an_answer_that_is_no_stream(vendor: str) -> None:
    """Given JSON instead of a stream, then it is read as an ordinary answer."""
    body = json.dumps({"error": {"message": "Bad weather.", "code": 400}}).encode()
    with pytest.raises(ProviderError) as caught:
        await stream(vendor, body, kind="application/json")
    assert caught.value.code is ErrorCode.PROVIDER_BAD_RESPONSE


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
LIMITED = {"error": {"message": "Slow down.", "type": "rate_limit_error", "code": None}}
SLOW = {"id": "1", "choices": None, "base_resp": {"status_code": 1002, "status_msg": "Slow"}}
THROTTLED = format_event_frame("throttlingException", {"message": "Slow."}, kind="exception")
BUSY = {"error": {"code": 503, "message": "Busy.", "status": "UNAVAILABLE"}}
FAILURES: dict[str, tuple[bytes, ErrorCode]] = {
    "openai": (sse(LIMITED), ErrorCode.PROVIDER_RATE_LIMITED),
    "minimax": (sse(SLOW), ErrorCode.PROVIDER_RATE_LIMITED),
    "anthropic": (message_events(end=[OVERLOADED]), ErrorCode.PROVIDER_UNAVAILABLE),
    "google": (sse(BUSY), ErrorCode.PROVIDER_UNAVAILABLE),
    "aws": (THROTTLED, ErrorCode.PROVIDER_RATE_LIMITED),
}


@each_vendor
async def test_maps_an_error_event(vendor: str) -> None:
    """Given an error as an event, then it has the code and retry rule of the same status."""
    body, code = FAILURES[vendor]
    with pytest.raises(ProviderError) as caught:
        await stream(vendor, body)
    assert (caught.value.code, caught.value.retryable) == (code, True)


@pytest.mark.parametrize(
    ("vendor", "body"),
    [
        ("openai", b"data: <html>\n\n"),
        ("anthropic", b"data: [1]\n\n"),
        ("aws", converse_frames()[:-3] + b"xyz"),
    ],
)
async def test_rejects_an_invalid_stream(vendor: str, body: bytes) -> None:
    """Given data that no vendor documents, then the answer is a bad response."""
    with pytest.raises(ProviderError, match="could not be read") as caught:
        await stream(vendor, body)
    assert caught.value.code is ErrorCode.PROVIDER_BAD_RESPONSE


@pytest.mark.parametrize("field", ["stream", "stream_options"])
def test_remembers_a_server_that_refuses_to_stream(drive: VendorDrive, field: str) -> None:
    """Given a server that refuses a field of streams, then it is asked without from then on."""
    error = {"message": f"Unknown field: '{field}'", "param": field, "code": "unknown_parameter"}
    refusal = httpx.Response(400, json={"error": error})
    refusals: set[str] = set()
    reply = drive(flow("openai", STREAMED, refusals=refusals), refusal, ok(chat()))
    assert reply.text == "Because of the moon."
    drive(flow("openai", STREAMED, refusals=refusals), ok(chat()))
    assert "stream" not in drive.body()
