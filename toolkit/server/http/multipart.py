"""Multipart bodies, parsed within their file in linear time: the uploaded file stays on disk."""

import re
from collections.abc import Iterator

from multipart import (
    MultipartError,
    MultipartSegment,
    PushMultipartParser,
    parse_options_header,
)

from toolkit.server.errors import make_upload_error
from toolkit.store import FileSection

MAX_PARTS = 3  # a file and its metadata, and one more to reject it by name
MAX_HEADERS = 4  # of a part
MAX_HEADER_BYTES = 4 * 1024
MAX_NAME_BYTES = 64
MAX_FIELD_BYTES = 64 * 1024
# RFC 2046: up to 70 of these, and no blank at the end.
_VALID_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
_END_OF_HEAD = b"\r\n\r\n"


def read_form(content_type: str, body: FileSection) -> tuple[FileSection, bytes]:
    """Parse an upload; blocks, so it belongs in a thread.

    Returns:
        the bytes of its field `file`; its field `metadata` as it was sent, empty without one.

    Raises:
        RequestError: `INVALID_REQUEST` for an invalid boundary, more parts than an upload needs, a
            part whose head or name is too long or has no end, and for a missing file.
    """
    files: list[tuple[str, FileSection]] = []
    fields: list[tuple[str, bytes]] = []
    try:
        for head, content in _iterate_parts(body, _parse_boundary(content_type)):
            name = head.name or ""
            if len(name.encode()) > MAX_NAME_BYTES:
                why = f"the name of a part is longer than {MAX_NAME_BYTES} bytes"
                raise make_upload_error("", why)
            if head.filename is not None:
                files.append((name, content))
            elif content.size > MAX_FIELD_BYTES:
                raise make_upload_error(name, f"is larger than {MAX_FIELD_BYTES} bytes")
            else:
                fields.append((name, content.read()))
            if len(files) > 1 or len(fields) > 1:
                raise make_upload_error("", "it has more than one file and one field")
    except MultipartError as error:
        # The parser's message is in its own words: it quotes nothing of the data.
        raise make_upload_error("", str(error.args[0])) from None
    file = dict(files).get("file")
    if file is None:
        raise make_upload_error("file", "is missing, or is not a file")
    if not file.size:
        raise make_upload_error("file", "is empty")
    return file, dict(fields).get("metadata", b"")


def _parse_boundary(content_type: str) -> str:
    boundary: str = parse_options_header(content_type)[1].get("boundary", "")
    if not _VALID_BOUNDARY.fullmatch(boundary):
        raise make_upload_error("", "its boundary is missing or invalid: use 1 to 70 characters")
    return boundary


def _iterate_parts(
    body: FileSection, boundary: str
) -> Iterator[tuple[MultipartSegment, FileSection]]:
    """Yield the head and the content of each part of a body.

    Raises:
        MultipartError: if the body is no form, or exceeds a limit.
    """
    delimiter = b"\r\n--" + boundary.encode()
    if _peek(body, 0, len(delimiter) - 2) != delimiter[2:]:
        raise make_upload_error("", "it does not begin with its boundary")
    parser = PushMultipartParser(
        boundary,
        max_header_size=MAX_HEADER_BYTES,
        max_header_count=MAX_HEADERS,
        max_segment_count=MAX_PARTS,
        strict=True,
    )
    longest_head = len(delimiter) + MAX_HEADERS * (MAX_HEADER_BYTES + 2) + len(_END_OF_HEAD)
    head, end = None, 0
    for piece in body.iter_chunks():
        for event in parser.parse(piece):
            if isinstance(event, MultipartSegment):
                head = event
            elif event is None and head is not None:
                # The parser gives the length of a part, not its place: its head ends at the
                # first empty line after the part before it.
                start = end + _peek(body, end, longest_head).index(_END_OF_HEAD) + len(_END_OF_HEAD)
                content = FileSection(body.file, body.start + start, head.size)
                end = start + content.size
                yield head, content
                after = end + len(delimiter) + 2
                if _peek(body, after - 2, 2) == b"--":
                    _check_end(body, after)
                    return
    parser.close()


def _check_end(body: FileSection, at: int) -> None:
    """Reject a body that goes on after its last delimiter."""
    epilogue = FileSection(body.file, body.start + at, body.size - at)
    if any(bytes(piece).strip(b"\r\n \t") for piece in epilogue.iter_chunks()):
        raise make_upload_error("", "it continues after its last delimiter")


def _peek(body: FileSection, at: int, size: int) -> bytes:
    size = min(size, body.size - at)
    return FileSection(body.file, body.start + at, size).read() if size > 0 else b""
