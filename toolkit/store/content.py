"""Content that is read in chunks: a section of an open file, or bytes in memory."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TypeAlias

CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class FileSection:
    """A section of a file, readable while that stays open, by one reader at a time.

    Attributes:
        file: open to be read, in bytes.
        start: the offset of the first byte.
        size: how many bytes there are.
    """

    file: IO[bytes]
    start: int
    size: int

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


def compute_sha256(content: Content) -> str:
    """Compute the SHA-256 of bytes; large ones belong in a thread."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    digest = hashlib.sha256()
    for piece in iter_chunks(content):
        digest.update(piece)
    return digest.hexdigest()
