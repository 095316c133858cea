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
    declared = request.headers.get("content-length", "")
    # Too many digits are not converted: the number is too large in any case.
    if re.fullmatch(r"\d+", declared, re.A) and (len(declared) > 18 or int(declared) > limit):
        raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
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


def check_media_type(request: Request) -> None:
    """Refuse a body that is not sent as JSON.

    Raises:
        RequestError: `UNSUPPORTED_MEDIA_TYPE`.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Send application/json.")
