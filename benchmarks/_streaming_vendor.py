"""A vendor that streams at a model's pace; each piece of its text is the time at which it was sent.

Run as `python -m benchmarks._streaming_vendor`; it prints its port. It speaks the chat protocol,
and streams the same text for every request.
"""

import asyncio
import json
import time

FIRST_S, PIECE_S, PIECES = 0.2, 0.02, 20
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def make_chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    """Make an event of a stream, as a chunk of HTTP."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    usage = None if finish is None else {"prompt_tokens": 24, "completion_tokens": PIECES}
    data = {"id": "chatcmpl-benchmark", "model": "gpt-6-luna", "choices": [choice], "usage": usage}
    event = f"data: {json.dumps(data)}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(event), event)


def read_stamps(text: str) -> tuple[list[float], str]:
    """Read the times at which the pieces of a text were sent, in seconds of the monotonic clock.

    Returns:
        the times of the complete pieces, and the start of the next piece.
    """
    *stamps, remainder = text.split(";")
    return [int(stamp) / 1e9 for stamp in stamps], remainder


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request of a connection."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
            await reader.readexactly(int(length or 0))
            writer.write(HEAD)
            await asyncio.sleep(FIRST_S)
            for _ in range(PIECES):
                writer.write(make_chunk({"content": f"{time.monotonic_ns()};"}))
                await asyncio.sleep(PIECE_S)
            writer.write(make_chunk({}, "stop") + b"0\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    """Answer until this process ends."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
