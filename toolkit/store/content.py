"""Content that is read in chunks: a section of an open file, or bytes in memory."""

import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TypeAlias

CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class FileSection:
    """A section of a file, readable while that stays open, by one reader at a time.

    Attributes:
        file: open to be read, in bytes.
        on_read: called before each chunk is read.
    """

    file: IO[bytes]
    start: int
    size: int
    on_read: Callable[[], object] = lambda: None

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        """Read all of it."""
        return b"".join(self.iter_chunks())

    def iter_chunks(self, size: int = CHUNK_BYTES) -> Iterator[bytes]:
        """Read it chunk by chunk.

        Raises:
            EOFError: the file has become shorter.
        """
        at, end = self.start, self.start + self.size
        while at < end:
            self.on_read()
            self.file.seek(at)
            piece = self.file.read(min(size, end - at))
            if not piece:
                raise EOFError
            yield piece
            at += len(piece)


Content: TypeAlias = bytes | FileSection


def iter_chunks(content: Content, size: int = CHUNK_BYTES) -> Iterator[bytes | memoryview]:
    """Iterate over bytes chunk by chunk.

    >>> [bytes(piece) for piece in iter_chunks(b"abcde", 2)]
    [b'ab', b'cd', b'e']
    """
    if isinstance(content, FileSection):
        yield from content.iter_chunks(size)
        return
    view = memoryview(content)
    for at in range(0, len(view), size):
        yield view[at : at + size]


def watch_content(content: Content, on_read: Callable[[], object]) -> FileSection:
    """Return the same content, which calls a function before each of its chunks is read."""
    if isinstance(content, FileSection):
        return FileSection(content.file, content.start, content.size, on_read)
    return FileSection(io.BytesIO(content), 0, len(content), on_read)


def compute_sha256(content: Content) -> str:
    """Compute the SHA-256 of bytes; call it in a thread for large content."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    digest = hashlib.sha256()
    for piece in iter_chunks(content):
        digest.update(piece)
    return digest.hexdigest()
