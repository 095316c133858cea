"""The bytes of a body over HTTP: bounded before they are read."""

import re

from starlette.requests import ClientDisconnect, Request

from toolkit.contract.errors import ErrorCode, RequestError


async def read_bytes(request: Request, limit: int) -> bytes:
    """Read the body, refusing it before it is read whole when it is larger than `limit` bytes.

    Raises:
        RequestError: `PAYLOAD_TOO_LARGE`.
        ClientDisconnect: it did not come to its end.
    """
    read_declared_size(request, limit)
    chunks, size, is_whole = list[bytes](), 0, False
    while not is_whole:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
        chunks.append(chunk)
        is_whole = not message.get("more_body", False)
    return b"".join(chunks)


def read_declared_size(request: Request, limit: int) -> int:
    """Read the declared size of a body; the most it may be, where none is declared.

    Raises:
        RequestError: `PAYLOAD_TOO_LARGE`.
    """
    declared = request.headers.get("content-length", "")
    if not re.fullmatch(r"\d+", declared, re.A):
        return limit
    # Too many digits are not converted: the number is too large in any case.
    if len(declared) > 18 or int(declared) > limit:
        raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
    return int(declared)


def check_media_type(request: Request, wanted: str) -> None:
    """Refuse a body that is sent as anything else.

    Raises:
        RequestError: `UNSUPPORTED_MEDIA_TYPE`.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != wanted:
        raise RequestError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, f"Send {wanted}.")
