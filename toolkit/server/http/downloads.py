"""Downloads: an artifact's bytes, or a range of them, read as they are sent."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from toolkit.contract.artifacts import Artifact
from toolkit.contract.errors import ErrorCode
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.server.errors import make_range_error
from toolkit.server.http.responses import render_error
from toolkit.server.load_shedding import InFlightLimit

CHUNK_BYTES = 256 * 1024
# Of artifacts larger than a chunk; each has a chunk or two in memory.
MAX_DOWNLOADS_PER_KEY = 32


class DownloadReader:
    """Reader of artifacts' bytes as they are sent, with a limit on each key's downloads at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._active_downloads = InFlightLimit(
            MAX_DOWNLOADS_PER_KEY,
            ErrorCode.RATE_LIMITED,
            f"This key already has {MAX_DOWNLOADS_PER_KEY} downloads in progress: retry when one of"
            " them has ended.",
        )

    async def respond(
        self, request: Request, context: RequestContext, artifact: Artifact
    ) -> Response:
        """Answer with an artifact's bytes, a range of them (416 if it is empty), or a redirect.

        Raises:
            ServiceError: `RATE_LIMITED`, `UNAVAILABLE`.
        """
        headers = {
            "Accept-Ranges": "bytes",
            "Content-Disposition": f'attachment; filename="{artifact.filename}"',
            # A browser must never run it in this service's name.
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "ETag": f'"{artifact.sha256}"',
        }
        byte_range = parse_byte_range(request.headers.get("range"), artifact.size_bytes)
        start, end = byte_range or (0, artifact.size_bytes)
        if byte_range is not None and start >= end:
            headers = {"Content-Range": f"bytes */{artifact.size_bytes}"}
            error = make_range_error()
            return render_error(error, request.state.request_id, status=416, headers=headers)
        if byte_range is not None:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{artifact.size_bytes}"
        link = await self._engine.artifacts.find_link(context, artifact)
        if link is not None:
            # The bytes bypass the server. The link is as good as a key, so nobody may store it.
            fields = {"Location": link, "ETag": headers["ETag"], "Cache-Control": "no-store"}
            return Response(status_code=307, headers={**fields, "Referrer-Policy": "no-referrer"})
        status = 200 if byte_range is None else 206
        pieces = self._engine.artifacts.stream_content(context, artifact, start, end)
        if end - start > CHUNK_BYTES:
            self._active_downloads.check(context.key_id)
        # Read first, because a response that has begun cannot report missing bytes.
        first = await anext(pieces, b"")
        headers["Content-Length"] = str(end - start)
        if len(first) >= end - start or request.method == "HEAD":
            await pieces.aclose()
            return Response(first, status, headers, media_type=artifact.media_type)
        body = self._stream_content(context, first, pieces)
        return StreamingResponse(body, status, headers, media_type=artifact.media_type)

    async def _stream_content(
        self, context: RequestContext, first: bytes, pieces: AsyncGenerator[bytes]
    ) -> AsyncIterator[bytes]:
        """Yield the bytes that were read already, and then the rest; count them as one download."""
        with self._active_downloads.hold(context.key_id):
            async with aclosing(pieces):
                yield first
                async for piece in pieces:
                    yield piece


def parse_byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Parse the only range of a `Range` header to start and end; None means all bytes.

    A range outside the bytes has a start that is not below its end.

    >>> parse_byte_range("bytes=-3", 10)
    (7, 10)
    """
    match = re.fullmatch(r"bytes=(\d{0,15})-(\d{0,15})", header or "")
    if match is None or not any(match.groups()):
        return None
    first, last = match.groups()
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1) if last else size
