"""Values that pass between functions and other nodes as artifacts: text, JSON, bytes, tables."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from toolkit.functions.frames import (
    FRAME_MEDIA_TYPES,
    FrameError,
    is_frame,
    read_frame,
    write_frame,
)
from toolkit.media.signatures import match_signature
from toolkit.plugins import Blob

BYTES_MEDIA_TYPE = "application/octet-stream"
MAX_SHOWN_BYTES = 64 * 1024  # of a text or JSON that a record contains next to its artifact


class UnwritableValueError(TypeError):
    """A value that no artifact can hold."""


def write_value(value: object) -> Blob:
    """Write a value as an artifact.

    Raises:
        UnwritableValueError: if nodes cannot pass on the value.

    >>> write_value("tea"), write_value([1, 2]).data
    (Blob(data=b'tea', media_type='text/plain', metadata={}), b'[1,2]')
    """
    if isinstance(value, Blob):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return Blob(data, match_signature(data) or BYTES_MEDIA_TYPE)
    try:
        if isinstance(value, str):
            return Blob(value.encode(), "text/plain")
        if is_frame(value):
            return write_frame(value)
        return Blob(
            to_json(value, inf_nan_mode="null", fallback=_convert_number), "application/json"
        )
    except FrameError as error:
        raise UnwritableValueError(str(error)) from None
    except (PydanticSerializationError, RecursionError, UnicodeError, ValueError) as error:
        raise UnwritableValueError(f"a {type(value).__name__} ({_cut(error)})") from None


def read_value(data: bytes, media_type: str, metadata: Mapping[str, object]) -> object:
    """Read the value of an artifact: a text, a JSON value, a table, or otherwise its bytes.

    >>> read_value(b'{"n": 1}', "application/json", {})
    {'n': 1}
    """
    if media_type in FRAME_MEDIA_TYPES:
        return read_frame(data, media_type, metadata)
    if media_type == "application/json":
        return json.loads(data)
    if media_type.startswith("text/"):
        return data.decode("utf-8", "replace")
    return data


def describe_value(blob: Blob) -> dict[str, object]:
    """Describe a value for a record; short text or JSON is included in full.

    >>> describe_value(Blob(b'[1,2]', "application/json"))
    {'media_type': 'application/json', 'value': [1, 2]}
    """
    description: dict[str, object] = {"media_type": blob.media_type}
    if blob.media_type in FRAME_MEDIA_TYPES:
        description |= {
            name: blob.metadata[name] for name in ("rows", "columns") if name in blob.metadata
        }
    elif len(blob.data) > MAX_SHOWN_BYTES:
        return description
    elif blob.media_type == "application/json":
        description["value"] = json.loads(blob.data)
    elif blob.media_type.startswith("text/"):
        description["text"] = blob.data.decode("utf-8", "replace")
    return description


def _convert_number(value: Any) -> object:
    """Convert a number or an array of numpy to a JSON value."""
    convert = getattr(value, "tolist", None)
    if convert is None or not hasattr(value, "dtype"):
        raise TypeError(f"a {type(value).__name__} is not a JSON value")
    return convert()


def _cut(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
