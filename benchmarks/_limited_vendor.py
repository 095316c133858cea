"""A vendor with a rate limit that rejects calls above it; it speaks the chat protocol.

Run as `python -m benchmarks._limited_vendor RATE BURST`; it prints its port. `GET /counts` returns
the number of responses by status, and resets it.
"""

import asyncio
import json
import sys
import time
from collections import Counter

from benchmarks._fake_vendor import RESPONSE, FakeVendor

LATENCY_S = 0.05


class CallLimit:
    """A token bucket: a rate of calls per second, with a burst."""

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s, self._burst = per_s, burst
        self._left, self._at = burst, time.monotonic()
        self.counts: Counter[int] = Counter()

    def find_wait_s(self) -> float:
        """Count a call and return 0, or return the seconds until the next call is allowed."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / self._per_s
        self._left -= 1
        return 0.0

    def make_answer(self) -> tuple[bytes, float]:
        """Return the response to a call, and the seconds after which to send it."""
        wait_s = self.find_wait_s()
        self.counts[429 if wait_s else 200] += 1
        if not wait_s:
            return RESPONSE, LATENCY_S
        body = b'{"error": {"message": "Rate limit reached.", "code": "rate_limit_exceeded"}}'
        head = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n"
        head += f"retry-after-ms: {wait_s * 1000:.0f}\r\ncontent-length: {len(body)}\r\n\r\n"
        return head.encode() + body, 0.0

    def take_counts(self) -> bytes:
        """Return the response that holds the counts, and reset them."""
        body = json.dumps(self.counts).encode()
        self.counts.clear()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        return head.encode() + b"\r\n\r\n" + body


class LimitedVendor(FakeVendor):
    """Answers each request within the limit shared by all connections."""

    def __init__(self, limit: CallLimit) -> None:
        super().__init__()
        self._limit = limit

    def answer(self, head: bytes) -> None:
        """Answer a request, or count and reject it."""
        if head.startswith(b"get /counts"):
            self._transport.write(self._limit.take_counts())
            return
        if head.startswith(b"get "):  # the test of a key, which is free
            self._transport.write(RESPONSE)
            return
        answer, after_s = self._limit.make_answer()
        asyncio.get_running_loop().call_later(after_s, self._transport.write, answer)


async def main(per_s: float, burst: float) -> None:
    """Answer until this process ends."""
    limit = CallLimit(per_s, burst)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: LimitedVendor(limit), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(float(sys.argv[1]), float(sys.argv[2]))))
