"""Decoding of compressed answers: one coding, and a bounded number of bytes at a time.

A few kilobytes of gzip may unpack to gigabytes, and applied twice to any number. So `gzip` is the
only coding that is asked for and read, and it is unpacked in pieces, of which the caller may refuse
the next at any time.
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
    """

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(_GZIP_WINDOW)
        self._input = b""
        self._is_full = False
        self._has_begun = False

    @property
    def is_drained(self) -> bool:
        """True if nothing more can be read before the next `feed`."""
        return not self._input and not self._is_full

    @property
    def is_complete(self) -> bool:
        """True if the last member has ended, or nothing was there to decode."""
        return self._inflater.eof or not self._has_begun

    def feed(self, data: bytes) -> None:
        """Add input; all of the input before it has been read."""
        self._input = data

    def read(self, max_bytes: int) -> bytes:
        """Return the next decoded bytes; empty if more input is needed.

        Raises:
            UnreadableCodingError: the input is not gzip, or is damaged.
        """
        try:
            while not self.is_drained:
                if self._inflater.eof and not self._begin_member():
                    break
                self._has_begun = True
                piece = self._inflater.decompress(self._input, max_bytes)
                self._input = self._inflater.unconsumed_tail or self._inflater.unused_data
                self._is_full = len(piece) == max_bytes
                if piece:
                    return piece
        except zlib.error:
            raise UnreadableCodingError from None
        return b""

    def _begin_member(self) -> bool:
        """Begin the next member; false if the rest of the input is padding."""
        self._is_full = False
        if not _GZIP_MAGIC.startswith(self._input[: len(_GZIP_MAGIC)]):
            self._input = b""
        if not self._input:
            return False
        self._inflater = zlib.decompressobj(_GZIP_WINDOW)
        return True


def is_compressed(headers: httpx.Headers) -> bool:
    """Return whether an answer is compressed.

    Raises:
        UnreadableCodingError: it is so in another way than by `gzip`, once.
    """
    named = headers.get_list("content-encoding", split_commas=True)
    codings = [name for value in named if (name := value.strip().lower()) not in ("", "identity")]
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
        until_complete: whether a body that ends before its last member does is refused.

    Raises:
        UnreadableCodingError: the body is not gzip, or is damaged.
    """
    decoder = _GzipDecoder()
    async for chunk in chunks:
        decoder.feed(chunk)
        if len(chunk) <= MAX_INLINE_BYTES and (piece := decoder.read(INLINE_PIECE_BYTES)):
            yield piece
        while not decoder.is_drained:
            if piece := await run_in_thread(lambda: decoder.read(PIECE_BYTES)):
                yield piece
    if until_complete and not decoder.is_complete:
        raise UnreadableCodingError
