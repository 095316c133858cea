"""Decoding of compressed answers: one coding, and a bounded number of bytes at a time.

A few kilobytes of gzip may unpack to gigabytes, and applied twice to any number. So `gzip` is the
only coding that is requested and read. It is unpacked in pieces, and the caller may refuse the next
piece at any time.
"""

import zlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

import httpx

T = TypeVar("T")
CODING = "gzip"
PIECE_BYTES = 1024 * 1024
# Unpacking more than this takes longer than it takes to hand the work to a thread.
MAX_INLINE_BYTES = 4 * 1024
INLINE_PIECE_BYTES = 64 * 1024
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"


class ThreadRunner(Protocol):
    """Runs quick work in a thread, and returns its result."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        """Run the work."""
        ...


class UnreadableCodingError(Exception):
    """Raised for an answer that is not `gzip`, has several codings, or is damaged."""


class _GzipDecoder:
    """A decoder of gzip that returns a bounded number of bytes at a time.

    A file may have several members, which are decoded one after the other. Padding behind the last
    member is ignored.

    Attributes:
        has_more: True if more can be read before the next `feed`.
        is_complete: True if the last member has ended, or nothing was there to decode.
    """

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(_GZIP_WINDOW)
        self._input = b""
        self.has_more = False
        self.is_complete = True

    def feed(self, data: bytes) -> None:
        """Replace the input by new data; call it only once `has_more` is False."""
        self._input, self.has_more = data, bool(data)

    def read(self, max_bytes: int) -> bytes:
        """Return up to `max_bytes` decoded bytes; empty if more input is needed or all is decoded.

        Raises:
            UnreadableCodingError: the input is not gzip, or is damaged.
        """
        piece = b""
        while self.has_more and not piece:
            if self._inflater.eof:
                if not _GZIP_MAGIC.startswith(self._input[: len(_GZIP_MAGIC)]):
                    self.has_more = False
                    break
                self._inflater = zlib.decompressobj(_GZIP_WINDOW)
            try:
                piece = self._inflater.decompress(self._input, max_bytes)
            except zlib.error:
                raise UnreadableCodingError from None
            self._input = self._inflater.unconsumed_tail or self._inflater.unused_data
            self.is_complete = self._inflater.eof
            is_full = len(piece) == max_bytes and not self.is_complete
            self.has_more = is_full or bool(self._input)
        return piece


def is_compressed(headers: httpx.Headers) -> bool:
    """Return whether an answer is compressed.

    Raises:
        UnreadableCodingError: it is compressed other than by `gzip`, once.
    """
    values = headers.get_list("content-encoding", split_commas=True)
    codings = [name for value in values if (name := value.strip().lower()) not in ("", "identity")]
    if codings and codings not in ([CODING], [f"x-{CODING}"]):
        raise UnreadableCodingError
    return bool(codings)


async def iter_unpacked(
    chunks: AsyncIterable[bytes], run_in_thread: ThreadRunner, *, until_complete: bool
) -> AsyncIterator[bytes]:
    """Iterate over the decoded bytes of a compressed body, in pieces of `PIECE_BYTES` at most.

    Args:
        chunks: the body as it is received.
        run_in_thread: runs work that would hold the event loop.
        until_complete: whether to refuse a body that ends before its last member does.

    Raises:
        UnreadableCodingError: the body is not gzip, or is damaged.
    """
    decoder = _GzipDecoder()
    async for chunk in chunks:
        decoder.feed(chunk)
        if len(chunk) <= MAX_INLINE_BYTES and (piece := decoder.read(INLINE_PIECE_BYTES)):
            yield piece
        while decoder.has_more:
            if piece := await run_in_thread(lambda: decoder.read(PIECE_BYTES)):
                yield piece
    if until_complete and not decoder.is_complete:
        raise UnreadableCodingError
