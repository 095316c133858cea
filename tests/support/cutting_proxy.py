"""A proxy before PostgreSQL that cuts connections in the middle of a commit, or all connections."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from tests.support.socket_server import stop_listening

# A commit passes, or is lost before the server, or its response is lost; or it is lost without a
# sign, as in a network partition.
CommitFate = Literal["passes", "lost", "unanswered", "stuck"]
CHUNK_BYTES = 65_536


class CuttingProxy:
    """A proxy on loopback that decides on each commit.

    Args:
        port: port of the server.
        decide: function that returns the fate of the next commit; by default all pass.

    Attributes:
        is_down: True if the proxy lets no connection through.
    """

    def __init__(self, port: int, decide: Callable[[], CommitFate] = lambda: "passes") -> None:
        self._server_port = port
        self.decide = decide
        self.is_down = False
        self._streams: set[asyncio.StreamWriter] = set()
        self._listening: asyncio.Server | None = None
        self._is_closing = asyncio.Event()

    async def start(self) -> int:
        """Start to listen, and return the port."""
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._listening.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Cut all connections, and stop listening."""
        self._is_closing.set()
        if self._listening is not None:
            await stop_listening(self._listening)
        self.cut()
        if self._listening is not None:
            await self._listening.wait_closed()

    def cut(self) -> None:
        """Cut all connections."""
        for stream in list(self._streams):
            stream.close()

    async def _serve(self, caller: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        if self.is_down:
            answers.close()
            return
        replies, server = await asyncio.open_connection("127.0.0.1", self._server_port)
        self._streams |= {answers, server}
        try:
            is_silent = asyncio.Event()
            back = asyncio.create_task(self._pass_back(replies, answers, is_silent))
            with suppress(OSError):
                while chunk := await caller.read(CHUNK_BYTES):
                    fate = self.decide() if b"COMMIT\0" in chunk else "passes"
                    if fate == "lost":
                        break
                    if fate == "stuck":
                        await self._is_closing.wait()
                        break
                    if fate == "unanswered":
                        is_silent.set()
                    server.write(chunk)
                    await server.drain()
            back.cancel()
        finally:
            for stream in (answers, server):
                stream.close()
            self._streams -= {answers, server}

    async def _pass_back(
        self, replies: asyncio.StreamReader, answers: asyncio.StreamWriter, silent: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while chunk := await replies.read(CHUNK_BYTES):
                if silent.is_set():
                    break  # the commit was made, but the caller gets no response
                answers.write(chunk)
                await answers.drain()
        answers.close()
