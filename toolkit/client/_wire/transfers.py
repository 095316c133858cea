"""Transfers: files that are sent, and artifacts that are written to files."""

import errno
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError

# Records are imported on use: reading JSON alone needs neither them nor pydantic.
if TYPE_CHECKING:
    from toolkit.contract.artifacts import Artifact

PIECE_BYTES = 1024 * 1024  # of an artifact that is saved, each requested separately
MAX_PIECE_BYTES = 8 * 1024 * 1024
PIECES = 16  # of a large artifact, unless pieces would exceed MAX_PIECE_BYTES


@contextmanager
def open_source(source: bytes | str | Path) -> Iterator[bytes | IO[bytes]]:
    """Yield the bytes of an upload, or its open file, which is read while it is sent."""
    if isinstance(source, bytes):
        yield source
        return
    with Path(source).open("rb") as file:
        yield file


class ArtifactDownload:
    """A download that writes an artifact to a file piece by piece, completely or not at all.

    Args:
        path: the file, which is replaced if it exists, or a folder.
        artifact: the artifact; in a folder, its file has the name from the server.
        overwrite: whether a file in the folder is replaced, too.
    """

    def __init__(self, path: str | Path, artifact: "Artifact", *, overwrite: bool = False) -> None:
        from toolkit.contract.file_names import make_file_name

        target = Path(path)
        is_folder = target.is_dir()
        if is_folder:
            target /= make_file_name(artifact.filename, artifact.media_type)
        self._target = target
        # The caller chose the name of a file; the server chose the name of a file in a folder.
        self._replaces = overwrite or not is_folder
        self._partial = self._target.with_name(f".{secrets.token_hex(8)}.partial")
        self._artifact = artifact
        self._size = 0
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        """Create the file, under a temporary name.

        Raises:
            FileNotFoundError: the folder of the file does not exist.
            RequestError: `CONFLICT` if the folder has another file of its name.
        """
        folder = self._target.parent
        if not folder.is_dir():  # otherwise the error would name the temporary file
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
        if not self._replaces and os.path.lexists(self._target):
            self._require_same()
        self._file = self._partial.open("wb")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the temporary file, and remove it if it still exists."""
        self._file.close()
        self._partial.unlink(missing_ok=True)

    @property
    def is_complete(self) -> bool:
        """True once all bytes of the artifact have been written."""
        return self._size >= self._artifact.size_bytes

    @property
    def next_span(self) -> tuple[int, int | None]:
        """The bytes to request next, as start and end; the end is None if one request takes all."""
        if self._artifact.size_bytes <= PIECE_BYTES:
            return 0, None
        share = min(self._artifact.size_bytes // PIECES, MAX_PIECE_BYTES)
        return self._size, self._size + max(PIECE_BYTES, share)

    def write_bytes(self, data: bytes) -> None:
        """Append received bytes to the file.

        Raises:
            ServiceError: `UNAVAILABLE` for no bytes, or for more than the artifact has.
        """
        self._file.write(data)
        self._digest.update(data)
        self._size += len(data)
        if not data or self._size > self._artifact.size_bytes:
            raise self._make_damage_error()

    def finish(self) -> Path:
        """Check the digest of all bytes, and give the file its final name.

        Raises:
            RequestError: `CONFLICT` if the folder has another file of its name by now.
            ServiceError: `UNAVAILABLE` if these are not the bytes of the artifact.
        """
        if self._digest.hexdigest() != self._artifact.sha256:
            raise self._make_damage_error()
        self._file.close()
        if self._replaces:
            return self._partial.replace(self._target)
        try:
            os.link(self._partial, self._target)  # fails if there is any file or link
        except FileExistsError:
            self._require_same()
        except OSError:  # the file system has no hard links
            if os.path.lexists(self._target):
                self._require_same()
            else:
                self._partial.replace(self._target)
        return self._target

    def _require_same(self) -> None:
        """Raise an error unless the existing file has the same bytes as the artifact.

        Raises:
            RequestError: `CONFLICT` if it has others, or is no file.
        """
        target = self._target
        is_file = target.is_file() and not target.is_symlink()
        if is_file and target.stat().st_size == self._artifact.size_bytes:
            with target.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            if sha256 == self._artifact.sha256:
                return
        raise RequestError(
            ErrorCode.CONFLICT,
            f"{target} exists, and is not this artifact. Name another file, or"
            " replace it with `overwrite=True` (`--overwrite`).",
        )

    def _make_damage_error(self) -> ServiceError:
        return ServiceError(
            ErrorCode.UNAVAILABLE,
            f"The received bytes of `{self._artifact.id}` differ from the stored"
            " bytes, so nothing was saved: try again, or ask the server's operator"
            " to run `toolkit doctor`.",
        )
