"""Uploads: stored in a file on disk until complete, then parsed as multipart within it."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import IO

from starlette.requests import ClientDisconnect, Request

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.engine import Engine
from toolkit.engine.concurrency.pacing import Pacer
from toolkit.engine.request_context import RequestContext
from toolkit.server.bodies import BodyLimits, check_json
from toolkit.server.calls import Upload
from toolkit.server.errors import make_upload_error
from toolkit.server.http.multipart import read_form
from toolkit.server.operations import open_upload_file
from toolkit.store import FileSection

FORM_OVERHEAD_BYTES = 64 * 1024
CHUNK_BYTES = 256 * 1024
# The most that one key may be uploading, in uploads of the largest size.
MAX_UPLOADS_PER_KEY = 4
RETRY_AFTER_S = 5.0


class UploadReader:
    """Reader of uploads, so many bytes at once for each key.

    Args:
        engine: the engine that stores them.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._limit = engine.settings.upload_limit_bytes + FORM_OVERHEAD_BYTES
        self._incoming_bytes: Counter[str | None] = Counter()

    @asynccontextmanager
    async def receive(
        self, request: Request, context: RequestContext
    ) -> AsyncIterator[FileSection]:
        """Write the body to a temporary file, which is there until the upload is answered.

        Raises:
            RequestError: `PAYLOAD_TOO_LARGE`, `INVALID_REQUEST` for one that breaks off.
            ServiceError: `RATE_LIMITED`, `UNAVAILABLE`.
        """
        with (
            self._count_upload(context.key_id, self._read_declared_size(request)),
            open_upload_file(self._engine) as file,
        ):
            yield FileSection(file, 0, await self._write_body(request, file))

    async def parse(self, request: Request, body: FileSection, context: RequestContext) -> Upload:
        """Parse the body that was received: the file, and its metadata.

        Raises:
            RequestError: `UNSUPPORTED_MEDIA_TYPE`, `PAYLOAD_TOO_LARGE`, `INVALID_REQUEST`.
        """
        settings = self._engine.settings
        content_type = request.headers.get("content-type", "")
        if content_type.partition(";")[0].strip().lower() != "multipart/form-data":
            raise RequestError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Send multipart/form-data.")
        form = await asyncio.to_thread(read_form, content_type, body)
        if form.file.size > settings.upload_limit_bytes:
            raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
        try:
            async with Pacer(context.account_id) as pacer:
                sizes = BodyLimits.of(settings)
                metadata = await check_json(form.metadata or b"{}", sizes, pacer)
        except RequestError:
            raise make_upload_error("metadata", "is not a JSON object that can be kept") from None
        return Upload(form.file, metadata)

    def _read_declared_size(self, request: Request) -> int:
        """Read the declared size of a body; the most it may be, where none is declared.

        Raises:
            RequestError: `PAYLOAD_TOO_LARGE`.
        """
        declared = request.headers.get("content-length", "")
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

    async def _write_body(self, request: Request, file: IO[bytes]) -> int:
        """Write the body to a file, and return its size."""
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
                ErrorCode.INVALID_REQUEST, "The upload broke off: send it anew."
            ) from None
        await asyncio.to_thread(file.write, bytes(waiting))
        return size + len(waiting)
