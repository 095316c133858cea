"""Multipart bodies, parsed within their file in linear time: no part of one is in memory."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from python_multipart.multipart import parse_options_header

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.store import FileSection, iter_chunks

MAX_PARTS = 4
MAX_PART_HEAD_BYTES = 4 * 1024
MAX_NAME_BYTES = 64
MAX_FIELD_BYTES = 64 * 1024
_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"]*)"|([^;\s]*))\s*(?:;|$)', re.I)
# RFC 2046: up to 70 of these, and no blank at the end.
_VALID_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
_DISPOSITION = re.compile(rb"\r\ncontent-disposition:[ \t]*([^\r\n]*)", re.I)
_END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class UploadForm:
    """The parts of an upload.

    Attributes:
        file: the bytes of its field `file`.
        metadata: its field `metadata` as it was sent; empty without one.
    """

    file: FileSection
    metadata: bytes


def read_form(content_type: str, body: FileSection) -> UploadForm:
    """Parse an upload; blocks, so it belongs in a thread.

    Raises:
        RequestError: `INVALID_REQUEST` for a boundary that is none, for more of anything than an
            upload needs, for a part whose head or name is too long or has no end, and without a
            file.
    """
    delimiter = b"--" + _parse_boundary(content_type).encode()
    files: list[tuple[str, FileSection]] = []
    fields: list[tuple[str, bytes]] = []
    for head, content in _iterate_parts(body, delimiter):
        name, is_file = _parse_part_name(head)
        if is_file:
            files.append((name, content))
        elif content.size > MAX_FIELD_BYTES:
            raise make_upload_error(name, f"is larger than {MAX_FIELD_BYTES} bytes")
        else:
            fields.append((name, content.read()))
        if len(files) > 1 or len(fields) > 1:
            raise make_upload_error("", "it has more than one file and one field")
    file = dict(files).get("file")
    if file is None:
        raise make_upload_error("file", "is missing, or is not a file")
    if not file.size:
        raise make_upload_error("file", "is empty")
    return UploadForm(file, dict(fields).get("metadata", b""))


def _parse_boundary(content_type: str) -> str:
    found = _BOUNDARY.search(content_type)
    boundary = (found.group(1) or found.group(2) or "") if found else ""
    if not _VALID_BOUNDARY.fullmatch(boundary):
        raise make_upload_error("", "it has no boundary of 1 to 70 proper characters")
    return boundary


def _iterate_parts(body: FileSection, delimiter: bytes) -> Iterator[tuple[bytes, FileSection]]:
    """Yield the head of each part, and where its content lies."""
    if _peek(body, 0, len(delimiter)) != delimiter:
        raise make_upload_error("", "it does not begin with its boundary")
    delimiter, at = b"\r\n" + delimiter, len(delimiter)
    for _ in range(MAX_PARTS):
        if _peek(body, at, 2) == b"--":
            rest = FileSection(body.file, body.start + at + 2, body.size - at - 2)
            if any(bytes(piece).strip(b"\r\n \t") for piece in iter_chunks(rest)):
                raise make_upload_error("", "something follows its end")
            return
        head, _, rest_of_it = _peek(body, at, MAX_PART_HEAD_BYTES).partition(_END_OF_HEAD)
        if not rest_of_it and _peek(body, at + len(head), 4) != _END_OF_HEAD:
            raise make_upload_error(
                "", f"a part has no head of at most {MAX_PART_HEAD_BYTES} bytes"
            )
        begin = at + len(head) + len(_END_OF_HEAD)
        # The line break before a delimiter may be the one that ends a head.
        end = _find(body, delimiter, begin - 2)
        if end < 0:
            raise make_upload_error("", "it has no end")
        yield head, FileSection(body.file, body.start + begin, max(0, end - begin))
        at = end + len(delimiter)
    raise make_upload_error("", f"it has {MAX_PARTS} parts or more")


def _parse_part_name(head: bytes) -> tuple[str, bool]:
    """Parse the name of a part, and whether it is a file."""
    found = _DISPOSITION.search(head)
    _, options = parse_options_header(found.group(1) if found else b"")
    name = options.get(b"name")
    if name is None:
        raise make_upload_error("", "a part has no name")
    if len(name) > MAX_NAME_BYTES:
        raise make_upload_error("", f"the name of a part is longer than {MAX_NAME_BYTES} bytes")
    return name.decode("utf-8", "replace"), b"filename" in options


def _peek(body: FileSection, at: int, size: int) -> bytes:
    size = min(size, body.size - at)
    return FileSection(body.file, body.start + at, size).read() if size > 0 else b""


def _find(body: FileSection, sought: bytes, at: int) -> int:
    """Return the offset of the first occurrence of some bytes from `at` on; -1 for none."""
    before = b""
    for piece in FileSection(body.file, body.start + at, body.size - at).iter_chunks():
        window = before + piece
        found = window.find(sought)
        if found >= 0:
            return at - len(before) + found
        at += len(piece)
        before = window[1 - len(sought) :]
    return -1


def make_upload_error(path: str, why: str) -> RequestError:
    """Make the error for an upload that is refused: why, and where."""
    return RequestError(
        ErrorCode.INVALID_REQUEST, "The upload cannot be read.", details=[Detail(path, why)]
    )
