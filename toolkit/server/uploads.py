"""Uploads in, ranges out: multipart bodies, media types told from bytes, `Range` headers."""

import json
import re

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.types import Message

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.server.body import read_bytes
from toolkit.server.forms import check_form, refused

FORM_OVERHEAD = 64 * 1024
_SIGNATURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"RIFF....WEBP", re.S), "image/webp"),
    (re.compile(rb"RIFF....WAVE", re.S), "audio/wav"),
    (re.compile(rb"ID3|\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff]"), "audio/mpeg"),
    (re.compile(rb"....ftyp", re.S), "audio/mp4"),
)


async def read_upload(request: Request, limit: int) -> tuple[bytes, str]:
    """The file of a multipart body, and its `metadata` field as it was sent.

    Raises:
        RequestError: `UNSUPPORTED_MEDIA_TYPE`, `PAYLOAD_TOO_LARGE`, `INVALID_REQUEST`.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        raise RequestError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Send multipart/form-data.")
    raw = await read_bytes(request, limit + FORM_OVERHEAD)
    check_form(request.headers["content-type"], raw)

    async def again() -> Message:
        return {"type": "http.request", "body": raw, "more_body": False}

    try:
        form = await Request(request.scope, again).form(
            max_files=1, max_fields=1, max_part_size=FORM_OVERHEAD
        )
    except (MultiPartException, HTTPException, KeyError, ValueError):
        raise refused("", "the body is not a form that can be read") from None
    try:
        file, metadata = form.get("file"), form.get("metadata", "")
        if not isinstance(file, UploadFile) or not isinstance(metadata, str):
            raise refused("file", "is missing, or is not a file")
        data = await file.read()
    finally:
        await form.close()
    if not data:
        raise refused("file", "is empty")
    if len(data) > limit:
        raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
    return data, metadata


def media_type_of(data: bytes) -> str:
    """The media type that bytes have, whatever the caller says of them.

    >>> media_type_of(b"hello")
    'text/plain'
    """
    for signature, media_type in _SIGNATURES:
        if signature.match(data):
            return media_type
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "application/octet-stream"
    if "\0" in text:
        return "application/octet-stream"
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return "text/plain"
    return "application/json"


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The one range that a `Range` header asks for, as start and end; none for all of it.

    >>> byte_range("bytes=-3", 10)
    (7, 10)
    """
    match = re.fullmatch(r"bytes=(\d{0,15})-(\d{0,15})", header or "")
    if match is None or not any(match.groups()):
        return None
    first, last = match.groups()
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1) if last else size
