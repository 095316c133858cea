"""A vendor without latency that speaks the chat protocol, to measure the time of a gateway alone.

Run as `python -m benchmarks._fake_vendor`; it prints its port. Every response is the same and
costs next to nothing to send: only the length of a request is parsed.
"""

import asyncio
import json
import sys
from typing import cast

ANSWER = json.dumps(
    {
        "id": "chatcmpl-benchmark",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "gpt-5-mini",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "The tide turns twice a day. " * 4},
            }
        ],
        "usage": {"prompt_tokens": 24, "completion_tokens": 28, "total_tokens": 52},
    }
).encode()
RESPONSE = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_benchmark\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER)
)


class FakeVendor(asyncio.Protocol):
    """Answers each request on a connection as soon as its body is complete."""

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for the responses."""
        # No assertion, because uvloop's transports are no subclass of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer every complete request."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].lower()
            _, _, length = head.partition(b"content-length:")
            size = end + 4 + int(length.split(b"\r\n", 1)[0] or 0)
            if len(self._received) < size:
                return
            self._received = self._received[size:]
            self.answer(head)

    def answer(self, head: bytes) -> None:  # noqa: ARG002 - every request gets the same response
        """Answer a request, whose head is given in lower case."""
        self._transport.write(RESPONSE)


async def main() -> None:
    """Answer until this process ends."""
    server = await asyncio.get_running_loop().create_server(FakeVendor, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        sys.exit(asyncio.run(main()))
    sys.exit(uvloop.run(main()))
