"""A link between two programs of a test, which can be cut, held as by a pulled cable, or slow."""

import asyncio
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Literal

from tests.support.socket_server import stop_listening
from tests.support.timing import yield_turns

CHUNK_BYTES = 64 * 1024
CLOSING_TURNS = 5
Direction = Literal["there", "back"]


class NetworkLink:
    """Forwards bytes between callers and a port on loopback, on its own thread.

    Args:
        target_port: port of the other program.

    Attributes:
        port: port for the callers.
    """

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
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
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            with suppress(OSError):
                to, out = await asyncio.open_connection("127.0.0.1", self._target_port)
                self._writers.add(out)
                await asyncio.gather(
                    self._pass_on(reader, out, "there"), self._pass_on(to, writer, "back")
                )
                self._writers.discard(out)
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                await self._flowing[direction].wait()
                writer.write(data)
                await writer.drain()
        writer.transport.abort()

    def cut(self) -> None:
        """Cut all connections, and refuse new connections."""
        self._call(self._cut()).result()

    async def _cut(self) -> None:
        self._is_cut = True
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
