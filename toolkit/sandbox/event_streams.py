"""The events in which vendors stream the answers of text models: server-sent, or AWS's frames."""

import json
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Any
from zlib import crc32

from toolkit.sandbox.chat_tools import split_calls
from toolkit.sandbox.json_http import RequestBody
from toolkit.sandbox.text.chat import SimulatedReply, iter_pieces


class StreamOptions(RequestBody, extra="ignore"):
    """Options of a streamed chat completion."""

    include_usage: bool | None = None


def format_event(data: object) -> str:
    """Format a server-sent event."""
    body = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"data: {body}\n\n"


def format_named_event(name: str, data: dict[str, Any]) -> str:
    """Format a server-sent event with a name, which its data repeats as `type`."""
    return f"event: {name}\n{format_event({'type': name, **data})}"


def format_event_frame(name: str, data: object, kind: str = "event") -> bytes:
    """Format an event, or an `exception`, as a frame of the stream.

    A frame consists of its lengths, their checksum, its headers, its JSON, and a total checksum.

    Source: AWS SDK reference, "Event stream encoding".
    """
    headers = b"".join(
        bytes([len(key)]) + key.encode() + struct.pack("!BH", 7, len(value)) + value  # 7: a string
        for key, value in (
            (":message-type", kind.encode()),
            (f":{kind}-type", name.encode()),
            (":content-type", b"application/json"),
        )
    )
    payload = json.dumps(data).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    frame = prelude + struct.pack("!I", crc32(prelude)) + headers + payload
    return frame + struct.pack("!I", crc32(frame))


async def stream_completion(
    head: dict[str, Any],
    reply: SimulatedReply,
    usage: dict[str, Any] | None,
    text: str = "",
    calls: Sequence[dict[str, Any]] = (),
) -> AsyncIterator[str]:
    """Stream a chat completion as OpenAI and vLLM do.

    Args:
        head: members that every chunk begins with.
        usage: last chunk, or None if it was not asked for.
        text: content, if it is more than the text of the reply.
        calls: the calls to tools, as the whole answer has them.
    """

    def chunk(delta: dict[str, Any], finish: str | None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        extra = {} if usage is None else {"usage": None}
        return format_event({**head, "choices": [choice], **extra})

    yield chunk({"role": "assistant", "content": "", "refusal": None}, None)
    for piece in iter_pieces(text or reply.text):
        yield chunk({"content": piece}, None)
    for delta in split_calls(calls):
        yield chunk(delta, None)
    yield chunk({}, reply.finish)
    if usage is not None:
        yield format_event({**head, "choices": [], "usage": usage})
    yield format_event("[DONE]")
