"""The frame of a multipart body, looked at in linear time before a parser is let near it."""

import re

from toolkit.contract.errors import Detail, ErrorCode, RequestError

MAX_PARTS = 4
MAX_PART_HEAD = 4 * 1024
MAX_NAME = 64
_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"]*)"|([^;\s]*))\s*(?:;|$)', re.I)
# RFC 2046: up to 70 of these, and no blank at the end.
_PROPER = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
_NAME = re.compile(rb'[;\s]name="?([^";\r\n]*)', re.I)


def check_form(content_type: str, raw: bytes) -> None:
    """Refuse a form that has more of anything than an upload needs.

    Raises:
        RequestError: `INVALID_REQUEST` for a boundary that is none, too many parts, or a part whose
            head or name is too long or has no end.
    """
    found = _BOUNDARY.search(content_type)
    boundary = (found.group(1) or found.group(2) or "") if found else ""
    if not _PROPER.fullmatch(boundary):
        raise refused("", "it has no boundary of 1 to 70 proper characters")
    delimiter = b"--" + boundary.encode()
    if not raw.startswith(delimiter):
        raise refused("", "it does not begin with its boundary")
    delimiter, at = b"\r\n" + delimiter, len(delimiter)
    for _ in range(MAX_PARTS):
        if raw.startswith(b"--", at):
            if raw[at + 2 :].strip(b"\r\n \t"):
                raise refused("", "something follows its end")
            return
        _check_head(raw, at)
        at = raw.find(delimiter, at) + len(delimiter)
        if at < len(delimiter):
            raise refused("", "it has no end")
    raise refused("", f"it has {MAX_PARTS} parts or more")


def _check_head(raw: bytes, at: int) -> None:
    end = raw.find(b"\r\n\r\n", at, at + MAX_PART_HEAD)
    if end < 0:
        raise refused("", f"a part has no head of at most {MAX_PART_HEAD} bytes")
    name = _NAME.search(raw, at, end)
    if name is not None and len(name.group(1)) > MAX_NAME:
        raise refused("", f"the name of a part is longer than {MAX_NAME} bytes")


def refused(path: str, why: str) -> RequestError:
    """Why an upload is not taken, and where."""
    return RequestError(
        ErrorCode.INVALID_REQUEST, "The upload cannot be read.", details=[Detail(path, why)]
    )
