"""Links between two programs of a test, which can be cut, held as by a pulled cable, or slow.

A link may also keep a copy of what passes, lose commits of PostgreSQL, or drop its notices.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Self

from typing_extensions import override

from tests.support.socket_server import stop_listening
from tests.support.timing import yield_turns

CHUNK_BYTES = 64 * 1024
CLOSING_TURNS = 5
Direction = Literal["there", "back"]
# A commit passes, or is lost before the server, or its response is lost; or it is lost without a
# sign, as in a network partition.
CommitFate = Literal["passes", "lost", "unanswered", "stuck"]
NOTICE = b"A"
# Each response of PostgreSQL is then a message: a type, the length of the rest, and the rest.
PLAIN = "sslmode=disable&gssencmode=disable"


@dataclass
class LinkConnection:
    """A connection over a link; `is_silent` if its next response is lost."""

    is_silent: bool = False


class NetworkLink:
    """Forwards bytes between callers and a port on loopback, on its own thread.

    Args:
        target_port: port of the other program.

    Attributes:
        port: port for the callers.
        refused: monotonic times at which connections were refused.
        counts: number of bytes that were forwarded in each direction.
    """

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.refused: list[float] = []
        self.counts: dict[Direction, int] = {"there": 0, "back": 0}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = self._call(self._start()).result()

    def _call(self, work: Any) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _start(self) -> int:
        self._flowing: dict[Direction, asyncio.Event] = {
            "there": asyncio.Event(),
            "back": asyncio.Event(),
        }
        self._delay_s = 0.0
        await self._heal()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._is_cut:
            self.refused.append(time.monotonic())
            writer.transport.abort()
            return
        connection = LinkConnection()
        self._writers.add(writer)
        try:
            with suppress(OSError):
                to, out = await asyncio.open_connection("127.0.0.1", self._target_port)
                self._writers.add(out)
                await asyncio.gather(
                    self._pass_on(reader, out, "there", connection),
                    self._pass_on(to, writer, "back", connection),
                )
                self._writers.discard(out)
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        direction: Direction,
        connection: LinkConnection,
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while data := await self.read_part(reader, direction):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                await self._flowing[direction].wait()
                if not await self.note(data, direction, connection):
                    break
                self.counts[direction] += len(data)
                writer.write(data)
                await writer.drain()
        writer.close()

    async def read_part(self, reader: asyncio.StreamReader, direction: Direction) -> bytes:
        """Read the bytes to forward together; empty at the end."""
        return await reader.read(CHUNK_BYTES)

    async def note(self, data: bytes, direction: Direction, connection: LinkConnection) -> bool:
        """Note bytes before they are forwarded; return False to end their connection instead."""
        return True

    def cut(self) -> None:
        """Cut all connections, and refuse new connections."""
        self._call(self._cut()).result()

    async def _cut(self) -> None:
        self._is_cut = True
        await self._drop()

    def refuse(self) -> None:
        """Refuse new connections, without cutting others."""
        self._is_cut = True

    def drop(self) -> None:
        """Cut all connections; new connections are still accepted."""
        self._call(self._drop()).result()

    async def _drop(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def hold(self, *directions: Direction) -> None:
        """Forward nothing more without closing connections, as if a cable was pulled.

        Args:
            directions: to the other program, back from it, or both; both by default.
        """
        for direction in directions or ("there", "back"):
            self._loop.call_soon_threadsafe(self._flowing[direction].clear)

    def describe(self) -> str:
        """Describe the state of the link."""
        flows = {direction: flowing.is_set() for direction, flowing in self._flowing.items()}
        return f"cut: {self._is_cut}, flows: {flows}, delay: {self._delay_s} s"

    def slow_down(self, delay_s: float) -> None:
        """Delay everything by some seconds, in both directions."""
        self._delay_s = delay_s

    def heal(self) -> None:
        """Forward everything again, at once."""
        self._call(self._heal()).result()

    async def _heal(self) -> None:
        self._is_cut = False
        self._delay_s = 0.0
        for flowing in self._flowing.values():
            flowing.set()

    def close(self) -> None:
        """Close the link."""
        self._call(self._close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        await self._heal()
        await stop_listening(self._server)
        await self._cut()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await yield_turns(CLOSING_TURNS)  # the loop closes aborted connections in these

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RecordingLink(NetworkLink):
    """A link that keeps a copy of all bytes in `recorded`."""

    def __init__(self, target_port: int) -> None:
        self.recorded = bytearray()
        super().__init__(target_port)

    @override
    async def note(self, data: bytes, direction: Direction, connection: LinkConnection) -> bool:
        self.recorded += data
        return True


class CommitLink(NetworkLink):
    """A link to PostgreSQL that decides on each commit.

    Attributes:
        decide: function that returns the fate of the next commit; by default all pass.
    """

    decide: Callable[[], CommitFate] = staticmethod(lambda: "passes")

    @override
    async def note(self, data: bytes, direction: Direction, connection: LinkConnection) -> bool:
        if direction == "back":
            return not connection.is_silent  # the commit was made, but the caller gets no response
        fate = self.decide() if b"COMMIT\0" in data else "passes"
        if fate == "stuck":
            await asyncio.Event().wait()  # until the link is closed
        connection.is_silent |= fate == "unanswered"
        return fate != "lost"


class DeafLink(NetworkLink):
    """A link to PostgreSQL that drops notifications, as a connection pool does."""

    @override
    async def read_part(self, reader: asyncio.StreamReader, direction: Direction) -> bytes:
        if direction == "there":
            return await super().read_part(reader, direction)
        while True:
            head = await reader.readexactly(5)
            payload = await reader.readexactly(int.from_bytes(head[1:], "big") - 4)
            if not head.startswith(NOTICE):
                return head + payload
