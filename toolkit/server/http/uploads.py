"""Reading an upload's multipart body, and parsing `Range` headers."""

import asyncio
import re

from fastapi import Request

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.server.http.multipart import UploadForm, read_form

FORM_OVERHEAD_BYTES = 64 * 1024


async def read_upload(request: Request, limit: int) -> UploadForm:
    """Read the file of a multipart body, and its `metadata` field as it was sent.

    Raises:
        RequestError: `UNSUPPORTED_MEDIA_TYPE`, `PAYLOAD_TOO_LARGE`, `INVALID_REQUEST`.
    """
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != "multipart/form-data":
        raise RequestError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Send multipart/form-data.")
    form = await asyncio.to_thread(read_form, content_type, request.state.body)
    if form.file.size > limit:
        raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
    return form


def parse_byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Parse the one range that a `Range` header asks for, as start and end; none for all of it.

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
