"""The bytes of a body over HTTP: bounded before they are read."""

import re

from starlette.requests import ClientDisconnect, Request

from toolkit.contract.errors import ErrorCode, RequestError


async def read_bytes(request: Request, limit: int) -> bytes:
    """Read the body; a body over `limit` bytes is rejected before it is read whole.

    Raises:
        RequestError: `PAYLOAD_TOO_LARGE`.
        ClientDisconnect: if the caller leaves before its end.
    """
    read_declared_size(request, limit)
    parts: list[bytes] = []
    size, is_whole = 0, False
    while not is_whole:
        message = await request.receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        is_whole = not message.get("more_body", False)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
    return b"".join(parts)


def read_declared_size(request: Request, limit: int) -> int:
    """Read the declared size of a body, or return the limit if none is declared.

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


def check_media_type(request: Request, media_type: str) -> None:
    """Reject a body with any other media type.

    Raises:
        RequestError: `UNSUPPORTED_MEDIA_TYPE`.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != media_type:
        raise RequestError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, f"Send {media_type}.")
