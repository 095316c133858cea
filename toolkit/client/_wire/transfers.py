"""Transfers: files that are sent, and artifacts that are written to files."""

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from toolkit.contract.errors import ErrorCode, ServiceError

# Records are made where they are asked for: reading JSON alone needs neither them nor pydantic.
if TYPE_CHECKING:
    from toolkit.contract.artifacts import Artifact

PIECE_BYTES = 1024 * 1024  # of an artifact that is saved, each requested separately
MAX_PIECE_BYTES = 8 * 1024 * 1024
PIECES = 16  # of a large one, as far as its pieces may be so large


@contextmanager
def open_source(source: bytes | str | Path) -> Iterator[bytes | IO[bytes]]:
    """Open what is to be uploaded: a file is read as it is sent."""
    if isinstance(source, bytes):
        yield source
        return
    with Path(source).open("rb") as file:
        yield file


class ArtifactDownload:
    """A download that writes an artifact to a file piece by piece, whole or not at all.

    Args:
        path: the file, or a folder that it is saved in under its own name.
        artifact: the artifact that is written.
    """

    def __init__(self, path: str | Path, artifact: "Artifact") -> None:
        target = Path(path)
        self._target = target / Path(artifact.filename).name if target.is_dir() else target
        self._partial = self._target.with_name(f".{secrets.token_hex(8)}.partial")
        self._artifact = artifact
        self._size = 0
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        """Create the file, under a temporary name."""
        self._file = self._partial.open("wb")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the file unless it is complete."""
        self._file.close()
        self._partial.unlink(missing_ok=True)

    @property
    def is_complete(self) -> bool:
        """True if all bytes are there."""
        return self._size >= self._artifact.size_bytes

    @property
    def next_span(self) -> tuple[int, int | None]:
        """The bytes that come next, as start and end; without an end where one piece is all."""
        if self._artifact.size_bytes <= PIECE_BYTES:
            return 0, None
        share = min(self._artifact.size_bytes // PIECES, MAX_PIECE_BYTES)
        return self._size, self._size + max(PIECE_BYTES, share)

    def write_bytes(self, data: bytes) -> None:
        """Write bytes.

        Raises:
            ServiceError: `UNAVAILABLE` for no bytes, or more than there are.
        """
        self._file.write(data)
        self._digest.update(data)
        self._size += len(data)
        if not data or self._size > self._artifact.size_bytes:
            raise self._make_damage_error()

    def finish(self) -> Path:
        """Give the file its name.

        Raises:
            ServiceError: `UNAVAILABLE` where these are not the bytes of the artifact.
        """
        if self._digest.hexdigest() != self._artifact.sha256:
            raise self._make_damage_error()
        self._file.close()
        return self._partial.replace(self._target)

    def _make_damage_error(self) -> ServiceError:
        return ServiceError(
            ErrorCode.UNAVAILABLE,
            f"The bytes of `{self._artifact.id}` came otherwise than they were kept, so nothing was"
            " saved: try again, and ask whoever runs the server for `toolkit doctor`.",
        )
