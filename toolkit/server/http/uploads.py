"""Uploads: stored in a file on disk until complete, then parsed as multipart within it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import IO

from starlette.requests import ClientDisconnect, Request

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine import Engine
from toolkit.engine.concurrency.pacing import Pacer
from toolkit.engine.request_context import RequestContext
from toolkit.server.bodies import check_json
from toolkit.server.calls import Upload
from toolkit.server.errors import make_upload_error
from toolkit.server.http.body import check_media_type, read_declared_size
from toolkit.server.http.multipart import read_form
from toolkit.server.load_shedding import InFlightLimit
from toolkit.server.operations import open_upload_file
from toolkit.store import FileSection

FORM_OVERHEAD_BYTES = 64 * 1024
CHUNK_BYTES = 256 * 1024
# The maximum that a key may upload at once, in uploads of the largest size.
MAX_UPLOADS_PER_KEY = 4


class UploadReader:
    """Reader of uploads, with a limit on each key's bytes at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._limit = engine.settings.upload_limit_bytes + FORM_OVERHEAD_BYTES
        self._incoming_bytes = InFlightLimit(
            MAX_UPLOADS_PER_KEY * self._limit,
            ErrorCode.RATE_LIMITED,
            "This key has too many uploads in progress: retry when one of them has ended.",
        )

    @asynccontextmanager
    async def receive(
        self, request: Request, context: RequestContext
    ) -> AsyncIterator[FileSection]:
        """Write the body to a temporary file, which exists until the block ends.

        Raises:
            RequestError: `PAYLOAD_TOO_LARGE`, `INVALID_REQUEST` if it breaks off.
            ServiceError: `RATE_LIMITED`, `UNAVAILABLE`.
        """
        size = read_declared_size(request, self._limit)
        self._incoming_bytes.check(context.key_id, size)
        with (
            self._incoming_bytes.hold(context.key_id, size),
            open_upload_file(self._engine) as file,
        ):
            yield FileSection(file, 0, await self._write_body(request, file))

    async def parse(self, request: Request, body: FileSection, context: RequestContext) -> Upload:
        """Parse the body that was received: the file, and its metadata.

        Raises:
            RequestError: `UNSUPPORTED_MEDIA_TYPE`, `PAYLOAD_TOO_LARGE`, `INVALID_REQUEST`.
        """
        settings = self._engine.settings
        check_media_type(request, "multipart/form-data")
        kind = request.headers["content-type"]
        file, raw = await asyncio.to_thread(read_form, kind, body)
        if file.size > settings.upload_limit_bytes:
            raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
        try:
            async with Pacer(context.account_id) as pacer:
                metadata = await check_json(raw or b"{}", settings, pacer)
        except RequestError:
            raise make_upload_error("metadata", "is not a valid JSON object") from None
        return Upload(file, metadata)

    async def _write_body(self, request: Request, file: IO[bytes]) -> int:
        size, waiting = 0, bytearray()
        try:
            async for chunk in request.stream():
                waiting += chunk
                if size + len(waiting) > self._limit:
                    raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
                if len(waiting) >= CHUNK_BYTES:
                    size += len(waiting)
                    await asyncio.to_thread(file.write, bytes(waiting))
                    waiting.clear()
        except ClientDisconnect:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "The upload was interrupted: send it again."
            ) from None
        await asyncio.to_thread(file.write, bytes(waiting))
        return size + len(waiting)
