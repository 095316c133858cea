"""Uploads, stored in a file on disk until complete, and downloads, read as they are sent."""

import asyncio
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import IO

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, ToolkitError
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.server.auth import authenticate_request, check_scope
from toolkit.server.errors import render_error
from toolkit.server.http.uploads import FORM_OVERHEAD_BYTES
from toolkit.store import FileSection

UPLOAD_PATH = "/v1/artifacts"
CHUNK_BYTES = 256 * 1024
# The most that one key may be uploading, in uploads of the largest size.
MAX_UPLOADS_PER_KEY = 4
# Of artifacts larger than a chunk; each has a chunk or two in memory.
MAX_DOWNLOADS_PER_KEY = 32
RETRY_AFTER_S = 5.0


class UploadMiddleware:
    """ASGI middleware that writes uploads to a temporary file, so many bytes for each key."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self._app = app
        self._engine = engine
        self._limit = engine.settings.upload_limit_bytes + FORM_OVERHEAD_BYTES
        self._incoming_bytes: Counter[str | None] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != UPLOAD_PATH:
            await self._app(scope, receive, send)
            return
        try:
            caller = await authenticate_request(scope, self._engine)
            check_scope(caller, "write")
            with (
                self._count_upload(caller.key_id, self._read_declared_size(scope)),
                self._open_temporary_file() as file,
            ):
                size = await self._receive_body(receive, file)
                scope["state"]["body"] = FileSection(file, 0, size)
                await self._app(scope, _receive_nothing, send)
        except ToolkitError as error:
            await render_error(error, scope["state"]["request_id"])(scope, receive, send)

    def _read_declared_size(self, scope: Scope) -> int:
        """Read the declared size of a body; the most it may be, where none is declared.

        Raises:
            RequestError: `PAYLOAD_TOO_LARGE`.
        """
        declared = Headers(scope=scope).get("content-length", "")
        if not re.fullmatch(r"\d+", declared, re.A):
            return self._limit
        # Too many digits are not converted: the number is too large in any case.
        if len(declared) > 18 or int(declared) > self._limit:
            raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
        return int(declared)

    @contextmanager
    def _count_upload(self, key_id: str | None, size_bytes: int) -> Iterator[None]:
        """Count an upload while it is under way.

        Raises:
            ServiceError: `RATE_LIMITED` for more than one key may be uploading.
        """
        if self._incoming_bytes[key_id] + size_bytes > MAX_UPLOADS_PER_KEY * self._limit:
            raise ServiceError(
                ErrorCode.RATE_LIMITED,
                "Too much is being uploaded with this key: send it again when some of it is there.",
                retry_after=RETRY_AFTER_S,
            )
        self._incoming_bytes[key_id] += size_bytes
        try:
            yield
        finally:
            self._incoming_bytes[key_id] -= size_bytes
            if not self._incoming_bytes[key_id]:
                del self._incoming_bytes[key_id]

    @contextmanager
    def _open_temporary_file(self) -> Iterator[IO[bytes]]:
        # In the data directory, as other folders may be in memory; without a name, so that it is
        # removed when this process ends.
        try:
            with tempfile.TemporaryFile(dir=self._engine.settings.data_dir) as file:
                yield file
        except OSError as error:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                f"The upload cannot be taken in: {error.strerror}.",
                retry_after=RETRY_AFTER_S,
            ) from error

    async def _receive_body(self, receive: Receive, file: IO[bytes]) -> int:
        """Write a body to a file, and return its size.

        Raises:
            RequestError: `PAYLOAD_TOO_LARGE`, `INVALID_REQUEST` for one that breaks off.
        """
        size, waiting, more = 0, bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestError(ErrorCode.INVALID_REQUEST, "The upload broke off: send it anew.")
            waiting += message.get("body", b"")
            more = message.get("more_body", False)
            if size + len(waiting) > self._limit:
                raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
            if len(waiting) >= CHUNK_BYTES or not more:
                size += len(waiting)
                await asyncio.to_thread(file.write, bytes(waiting))
                waiting.clear()
        return size


async def _receive_nothing() -> Message:
    """Wait for a message after the body, which never comes."""
    await asyncio.Event().wait()  # until the waiting task is cancelled
    raise AssertionError("unreachable")


class DownloadReader:
    """Reader of artifacts' bytes as they are sent, so many downloads at once for each key.

    Args:
        engine: the engine that has the artifacts.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._active_downloads: Counter[str | None] = Counter()

    def check_capacity(self, key_id: str | None) -> None:
        """Refuse a download where the key has as many under way as it may.

        Raises:
            ServiceError: `RATE_LIMITED`.
        """
        if self._active_downloads[key_id] >= MAX_DOWNLOADS_PER_KEY:
            raise ServiceError(
                ErrorCode.RATE_LIMITED,
                f"{MAX_DOWNLOADS_PER_KEY} downloads are under way with this key: ask again when one"
                " of them is done.",
                retry_after=RETRY_AFTER_S,
            )

    async def stream_content(
        self, context: RequestContext, artifact_id: str, first: bytes, start: int, end: int
    ) -> AsyncIterator[bytes]:
        """Yield the bytes chunk by chunk, each once the one before was taken.

        Args:
            context: who asks.
            artifact_id: the artifact.
            first: the bytes that were read already.
            start: the offset at which they end.
            end: the offset at which all bytes end.
        """
        self._active_downloads[context.key_id] += 1
        try:
            yield first
            while start < end:
                upto = min(end, start + CHUNK_BYTES)
                read = self._engine.artifacts.read_content
                chunk = await read(context, artifact_id, start, upto)
                if not chunk:
                    raise ServiceError(
                        ErrorCode.UNAVAILABLE, "The bytes of this artifact end too early."
                    )
                yield chunk
                start += len(chunk)
        finally:
            self._active_downloads[context.key_id] -= 1
            if not self._active_downloads[context.key_id]:
                del self._active_downloads[context.key_id]
