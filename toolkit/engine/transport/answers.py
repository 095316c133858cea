"""Reading vendors' answers: whole or streamed, decoded, and within the size limit."""

import io
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import TypeAlias, cast

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.engine.transport.decoding import (
    ThreadRunner,
    UnreadableCodingError,
    is_compressed,
    iter_unpacked,
)
from toolkit.plugins import RECORDED_MODEL, ProviderError
from toolkit.plugins.streaming import STREAM_READER, AnswerPiece, BrokenStreamError, StreamReader

OnPiece: TypeAlias = Callable[[AnswerPiece], None]

# The extension of a response whose stream began well and then reported a failure.
FAILED_IN_STREAM = "toolkit.failed_in_stream"
_BODY_HEADERS = (b"content-encoding", b"content-length", b"transfer-encoding")


class OutcomeUnknownError(ProviderError):
    """Raised when a request was sent and no answer came: the work may be done and billed."""


async def read_answer(
    request: httpx.Request,
    response: httpx.Response,
    limit: int,
    on_piece: OnPiece,
    run_in_thread: ThreadRunner,
) -> httpx.Response:
    """Read the whole of an answer and close it.

    Args:
        request: the request that was sent; its stream reader, if any, reads a streamed answer.
        response: the answer, of which the head has come.
        limit: maximum bytes of the answer, as it is received and as it is decoded.
        on_piece: is called with each piece of a streamed answer, as it comes.
        run_in_thread: runs the decoding of large answers.

    Returns:
        the answer with its body; for a stream, the body that its reader put together.

    Raises:
        ProviderError: `PROVIDER_BAD_RESPONSE` for an answer that is over the limit or cannot be
            decoded, or a stream in an invalid format.
        OutcomeUnknownError: a stream ended before the answer in it did.
    """
    reader = _find_stream_reader(request, response)
    if reader is None and response.is_closed and not is_compressed(response.headers):
        if len(response.content) > limit:
            raise _make_size_error(response, limit)
        response.request = request
        return response  # the transport has read its body
    # Its value is not copied; to join chunks would copy everything at once.
    body, size = io.BytesIO(), 0
    try:
        async for chunk in _iter_decoded(response, limit, run_in_thread, is_streamed=bool(reader)):
            size += len(chunk)
            if size > limit:
                raise _make_size_error(response, limit)
            if reader is None:
                body.write(chunk)
            else:
                for piece in _read_stream(reader, chunk, response):
                    on_piece(piece)
    except UnreadableCodingError:
        raise ProviderError(
            ErrorCode.PROVIDER_BAD_RESPONSE,
            f"The answer of {request.url.host} could not be decoded.",
            retryable=False,
            status=response.status_code,
        ) from None
    finally:
        await response.aclose()
    headers = [
        (name, value)
        for name, value in response.headers.raw
        # The body is decoded by now, so these headers no longer describe it.
        if name.lower() not in _BODY_HEADERS
    ]
    if reader is not None:
        return _assemble_response(request, headers, reader)
    extensions = {n: v for n, v in response.extensions.items() if n == RECORDED_MODEL}
    return httpx.Response(
        response.status_code,
        headers=headers,
        content=body.getvalue(),
        request=request,
        extensions=extensions,
    )


def _find_stream_reader(request: httpx.Request, response: httpx.Response) -> StreamReader | None:
    """Find the reader of an answer, or None if it is not streamed, such as a refusal."""
    reader: StreamReader | None = request.extensions.get(STREAM_READER)
    if reader is None or not response.is_success:
        return None
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return reader if kind == reader.media_type else None


def _iter_decoded(
    response: httpx.Response, limit: int, run_in_thread: ThreadRunner, *, is_streamed: bool
) -> AsyncIterator[bytes]:
    """Iterate over the decoded body of an answer; as it comes, if it is not compressed."""
    stream = cast("httpx.AsyncByteStream", response.stream)
    if not is_compressed(response.headers):
        return aiter(stream)
    # The reader of a stream knows by itself whether that is complete.
    return iter_unpacked(
        _limit_received(stream, response, limit), run_in_thread, until_complete=not is_streamed
    )


async def _limit_received(
    stream: AsyncIterable[bytes], response: httpx.Response, limit: int
) -> AsyncIterator[bytes]:
    """Yield a body as it is received, and raise above the limit.

    A limit on the decoded bytes is not enough, because a body may decode to nothing for ever.
    """
    size = 0
    async for chunk in stream:
        size += len(chunk)
        if size > limit:
            raise _make_size_error(response, limit)
        yield chunk


def _make_size_error(response: httpx.Response, limit: int) -> ProviderError:
    return ProviderError(
        ErrorCode.PROVIDER_BAD_RESPONSE,
        f"The answer is larger than {limit} bytes.",
        retryable=False,
        status=response.status_code,
    )


def _read_stream(reader: StreamReader, chunk: bytes, response: httpx.Response) -> list[AnswerPiece]:
    try:
        return reader.read(chunk)
    except BrokenStreamError as error:
        raise ProviderError(
            ErrorCode.PROVIDER_BAD_RESPONSE,
            f"The answer could not be read: {error}.",
            status=response.status_code,
        ) from None


def _assemble_response(
    request: httpx.Request, headers: list[tuple[bytes, bytes]], reader: StreamReader
) -> httpx.Response:
    """Make the response that the vendor would have given without a stream.

    Raises:
        OutcomeUnknownError: the stream ended before the answer in it did.
    """
    answer = reader.assemble()
    if answer is None:
        raise OutcomeUnknownError(
            ErrorCode.PROVIDER_UNAVAILABLE,
            f"The answer of {request.url.host} broke off before its end.",
        )
    vendor_headers = [(name, value) for name, value in headers if name.lower() != b"content-type"]
    return httpx.Response(
        answer.status,
        headers=[*vendor_headers, (b"content-type", b"application/json")],
        content=answer.body,
        request=request,
        extensions={FAILED_IN_STREAM: True} if answer.status >= 400 else {},
    )
