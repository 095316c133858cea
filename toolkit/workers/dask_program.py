"""The program of the process that holds the client of a Dask cluster, and none of our secrets.

Dask's client unpickles the answers of the scheduler and the workers, so that the cluster can run
any code in its process. The parent sends requests as messages of plain values, and reads answers of
plain values. The program ends as a worker process does: when its parent closes the pipe or dies.
"""

import asyncio
import logging
import os
import queue
import re
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from io import FileIO
from typing import Any

CLOSE_TIMEOUT_S = 2.0
RUNNING_STATUS, CLOSED_STATUS = "running", "closed"  # of Dask's client
MAX_LINE_CHARS = 1_000
# Dask logs a traceback here if it loses a connection. The parent logs each loss in one line.
_LOSS_LOGGERS = (
    "distributed.batched", "distributed.client", "distributed.comm.core", "distributed.comm.tcp",
    "distributed.core", "distributed.utils", "distributed.utils_comm",
)  # fmt: skip
_DASK_LOGGERS = ("distributed", "distributed.client", "bokeh", "tornado", "tornado.application")


class _RefusedError(Exception):
    """An error to report to the parent by its kind: `lost`, `untrusted` or `failed`."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind)
        self.kind = kind
        self.detail = detail


class SchedulerClient:
    """The client of a cluster, opened anew for each connection."""

    def __init__(self) -> None:
        self._client: Any = None
        self._futures: dict[str, Any] = {}

    async def start(self) -> None:
        """Do nothing: an answer says that the process has started."""

    async def open(
        self,
        address: str,
        certificates: Mapping[str, str],
        connect_s: float,
        plugins: list[list[Any]],
    ) -> None:
        """Close the earlier client, open another, and register plugins of workers.

        Args:
            address: address of the scheduler, as Dask writes it.
            certificates: arguments of Dask's `Security`; empty to use Dask's configuration.
            plugins: module, class and arguments of each plugin.
        """
        from distributed import Client, Security
        from distributed.comm.core import FatalCommClosedError

        await self.close()
        security = Security(require_encryption=bool(certificates) or None, **certificates)
        client = self._client = Client(
            address,
            asynchronous=True,
            set_as_default=False,
            timeout=connect_s,
            security=security,
        )
        try:
            await client
            for module, name, arguments in plugins:
                await self.register_plugin(module, name, arguments)
        except BaseException as error:
            await self.close()
            if isinstance(error, FatalCommClosedError):
                raise _RefusedError("untrusted") from None
            raise

    async def register_plugin(self, module: str, name: str, arguments: dict[str, Any]) -> str:
        """Register a plugin with all workers, and return its name."""
        from toolkit.workers.serialization import find_function

        make: Callable[..., Any] = find_function(module, name)
        plugin = make(**arguments)
        await self._get_client().register_plugin(plugin)
        return str(plugin.name)

    async def list_workers(self) -> list[dict[str, object]]:
        """List the threads and the resources of each worker."""
        identity = await self._get_client().scheduler.identity()
        return [
            {
                "threads": int(worker["nthreads"]),
                "resources": {
                    str(name): float(amount)
                    for name, amount in (worker.get("resources") or {}).items()
                },
            }
            for worker in identity["workers"].values()
        ]

    async def run(
        self, key: str, module: str, name: str, args: list[object], resources: Mapping[str, float]
    ) -> object:
        """Have a worker call a function, and return its answer, which must be bytes or text."""
        from toolkit.workers.serialization import find_function

        client = self._get_client()
        future = client.submit(
            find_function(module, name),
            *args,
            key=key,
            resources=dict(resources) or None,
            pure=False,
        )
        self._futures[key] = future
        try:
            answer = await future
        finally:
            del self._futures[key]
            future.release()
        if type(answer) not in (bytes, str):
            raise _RefusedError("failed", type(answer).__name__)
        return answer

    async def cancel(self, key: str) -> None:
        """Cancel a call, if it is still in progress."""
        future = self._futures.get(key)
        if future is not None:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._get_client().cancel(
                    [future], reason="the work was cancelled", force=True
                )

    async def unregister_plugin(self, name: str) -> None:
        """Remove a plugin from all workers, by its name."""
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await self._get_client().unregister_worker_plugin(name)

    async def close(self) -> None:
        """Close the client, whether its scheduler is there or not."""
        client, self._client = self._client, None
        if client is None:
            return
        try:
            with suppress(Exception):
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await client.close()
        finally:
            # Otherwise it would close again on deletion, when its loop may already be closed.
            client.status = CLOSED_STATUS

    @property
    def is_lost(self) -> bool:
        """True if the connection to the scheduler is gone."""
        return self._client is None or self._client.status != RUNNING_STATUS

    def _get_client(self) -> Any:
        if self.is_lost:
            raise _RefusedError("lost")
        return self._client


class _Server:
    """Serves the requests of the parent, many at once."""

    def __init__(self, sink: FileIO) -> None:
        self._sink = sink
        self._cluster = SchedulerClient()
        self._answers: queue.SimpleQueue[dict[str, object]] = queue.SimpleQueue()
        self._tasks: set[asyncio.Task[None]] = set()
        threading.Thread(target=self._write_answers, daemon=True).start()

    async def serve(self, source: FileIO) -> None:
        """Answer the requests that come through a pipe; disconnect once the parent closes it."""
        end = asyncio.Event()
        loop = asyncio.get_running_loop()

        def read() -> None:
            from toolkit.workers.serialization import read_message

            with suppress(EOFError, OSError, RuntimeError):  # the loop may be closed
                while True:
                    loop.call_soon_threadsafe(self._start, read_message(source))
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end.set)

        threading.Thread(target=read, daemon=True).start()
        await end.wait()
        await self._cluster.close()

    def tell(self, message: dict[str, object]) -> None:
        """Send a message to the parent."""
        self._answers.put(message)

    def _start(self, request: Any) -> None:
        task = asyncio.ensure_future(self._answer(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: Any) -> None:
        number, operation, arguments = request["id"], request["operation"], request["arguments"]
        perform: Callable[..., Awaitable[object]] = getattr(self._cluster, operation)
        try:
            self.tell({"id": number, "value": await perform(**arguments)})
        except (Exception, asyncio.CancelledError) as error:
            kind, detail = self._explain(error)
            self.tell({"id": number, "error": kind, "detail": detail})

    def _explain(self, error: BaseException) -> tuple[str, str]:
        """Return the kind of an error for the parent, such as `lost`, and the name of its class."""
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        name = re.sub(r"\W", "", type(error).__name__)[:MAX_LINE_CHARS]
        if isinstance(error, _RefusedError):
            return error.kind, re.sub(r"\W", "", error.detail)[:MAX_LINE_CHARS]
        if isinstance(error, KilledWorker):
            return "killed", name
        if isinstance(error, (FutureCancelledError, asyncio.CancelledError, OSError)):
            return "lost", name  # a TimeoutError is an OSError, too
        return ("lost" if self._cluster.is_lost else "failed"), name

    def _write_answers(self) -> None:
        from toolkit.workers.serialization import encode_message, write_message

        while True:
            message = self._answers.get()
            try:
                pieces = encode_message(message)
            except TypeError as error:
                message = {"id": message.get("id"), "error": "failed", "detail": str(error)[:80]}
                pieces = encode_message(message)
            with suppress(OSError, ValueError):  # the parent has gone, as the reader will see
                write_message(self._sink, pieces)


class _LogHandler(logging.Handler):
    """Sends Dask's log records to the parent, each as one short line."""

    def __init__(self, server: _Server) -> None:
        super().__init__(logging.WARNING)
        self._server = server

    def emit(self, record: logging.LogRecord) -> None:
        """Send a log record to the parent process."""
        with suppress(Exception):
            line = " ".join(f"{record.name}: {record.getMessage()}".split())[:MAX_LINE_CHARS]
            line = "".join(char if char.isprintable() else "?" for char in line)
            level = logging.DEBUG if record.name in _LOSS_LOGGERS else record.levelno
            self._server.tell({"log": line, "level": int(level)})


def main() -> None:
    """Answer the requests of the parent process from stdin until the parent closes it or ends."""
    source, sink = FileIO(os.dup(0)), FileIO(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # no output may mix with the answers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the parent says when to end
    sys.path[:] = sys.argv[2:]
    from toolkit.workers.program import die_with_parent

    die_with_parent(int(sys.argv[1]))
    import distributed  # noqa: F401 - it sets up its loggers

    server = _Server(sink)
    for name in _DASK_LOGGERS:
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    logging.getLogger().addHandler(_LogHandler(server))
    asyncio.run(server.serve(source))


if __name__ == "__main__":
    main()
