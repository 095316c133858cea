"""Serialization of plain values and named functions, between a process and its workers.

A message is a JSON document with the bytes behind it. It is no pickle: what a worker answers may
have been made by whoever sent it a hostile picture, so reading an answer must not run anything.
"""

import json
import struct
import sys
from collections.abc import Callable
from importlib import import_module
from io import BytesIO, RawIOBase
from types import BuiltinFunctionType, FunctionType
from typing import Any

_HEAD = struct.Struct(">Q")
MAX_READ = 1024 * 1024  # per call, as a read allocates as much as it asks for
PLAIN = "None, bool, int, float, str, bytes, and lists, tuples and dicts of them"


class NotPlainError(TypeError):
    """A value cannot travel to a worker process or back: one line that says what, and why."""


def name_of(function: object) -> tuple[str, str]:
    """Return the module and the qualified name by which a worker process finds a function.

    Raises:
        NotPlainError: it would not find it.

    >>> name_of(json.dumps)
    ('json', 'dumps')
    """
    if not isinstance(function, FunctionType | BuiltinFunctionType):
        raise NotPlainError(
            f"A {type(function).__name__} cannot run in a worker process: only a function of a"
            " module can, with what it needs as arguments."
        )
    module, name = str(function.__module__), function.__qualname__
    if "<" in name:
        raise NotPlainError(
            f"`{name}` cannot run in a worker process, as it has no name in `{module}`: make it a"
            " function of the module, or use run_in_thread."
        )
    if module == "__main__":
        raise NotPlainError(
            f"`{name}` is a function of a script or notebook, which no worker process imports:"
            " move it to a module, or use run_in_thread."
        )
    try:
        found = find_function(module, name)
    except (ImportError, AttributeError):
        found = None
    if found is not function:
        raise NotPlainError(
            f"`{module}.{name}` cannot run in a worker process: that name leads to something else."
        )
    return module, name


def find_function(module: str, name: str) -> Callable[..., object]:
    """Import a module and return its function of a (dotted) name.

    Raises:
        ImportError, AttributeError: there is none.
    """
    found: Any = sys.modules.get(module)
    if found is None:
        # The name is that of a function of the parent: `get_function_name` checks that.
        found = import_module(module)  # nosemgrep: rules.no-import-of-data
    for part in name.split("."):
        found = getattr(found, part)
    function: Callable[..., object] = found
    return function


def encode(value: object, subject: str = "argument") -> list[bytes]:
    """Serialize a plain value as the pieces of one message.

    Args:
        value: the value to send.
        subject: the name for it in errors.

    Raises:
        NotPlainError: it, or something in it, is not plain.
    """
    writer = _Writer(subject)
    try:
        tree = writer.write(value)
        document = {
            "value": tree,
            "bytes": writer.bytes_at,
            "tuples": writer.tuples_at,
            "sizes": [len(buffer) for buffer in writer.buffers],
        }
        text = json.dumps(document, separators=(",", ":")).encode()
    except RecursionError:
        raise NotPlainError(f"The {subject} of a worker process is nested too deeply.") from None
    except ValueError as error:  # an integer of more digits than Python writes
        raise NotPlainError(f"The {subject} of a worker process cannot travel: {error}.") from None
    return [_HEAD.pack(len(text)), text, *writer.buffers]


class _Writer:
    """An encoder of a value as JSON, with its bytes and tuples listed by place."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._place: list[str | int] = []
        self.bytes_at: list[list[str | int]] = []
        self.tuples_at: list[list[str | int]] = []
        self.buffers: list[bytes] = []

    def write(self, value: object) -> object:
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if isinstance(value, bytes) and kind is bytes:
            self.bytes_at.append([*self._place])
            self.buffers.append(value)
            return None
        if isinstance(value, list | tuple) and kind in (list, tuple):
            if kind is tuple:
                self.tuples_at.append([*self._place])
            return [self._within(index, item) for index, item in enumerate(value)]
        if isinstance(value, dict) and kind is dict:
            for name in value:
                if type(name) is not str:
                    raise self._fault(f"a key of type {type(name).__name__}")
            return {name: self._within(name, item) for name, item in value.items()}
        raise self._fault(f"a {kind.__name__}")

    def _within(self, step: str | int, value: object) -> object:
        self._place.append(step)
        written = self.write(value)
        self._place.pop()
        return written

    def _fault(self, what: str) -> NotPlainError:
        return NotPlainError(
            f"The {self._subject} of a worker process is not plain: it holds {what},"
            f" and only {PLAIN} can travel."
        )


def read(source: RawIOBase | BytesIO) -> object:
    """Read one message from an unbuffered file, and return the value in it.

    Raises:
        EOFError: the other side has closed its end, or died in the middle.
    """
    (length,) = _HEAD.unpack(_exactly(source, _HEAD.size))
    document = json.loads(_exactly(source, length))
    buffers = [_exactly(source, size) for size in document["sizes"]]
    box = [document["value"]]
    for place, buffer in zip(document["bytes"], buffers, strict=True):
        holder, last = _holder(box, place)
        holder[last] = buffer
    for place in reversed(document["tuples"]):  # the innermost first
        holder, last = _holder(box, place)
        holder[last] = tuple(holder[last])
    return box[0]


def _holder(box: list[Any], place: list[Any]) -> tuple[Any, Any]:
    """Find the container of a place, and the index or key in it."""
    holder, last = box, 0
    for step in place:
        holder, last = holder[last], step
    return holder, last


def copy_plain(value: object, subject: str) -> object:
    """Return a copy as it arrives on the other side.

    >>> copy_plain({"size": (3, 4)}, "argument")
    {'size': (3, 4)}

    Raises:
        NotPlainError: it cannot travel.
    """
    return read(BytesIO(b"".join(encode(value, subject))))


def write(sink: RawIOBase, pieces: list[bytes]) -> None:
    """Write a message to an unbuffered file, which may take less at once.

    A buffered one has a lock: a thread that holds it as the interpreter exits would abort it.
    """
    for piece in pieces:
        left = memoryview(piece)
        while left:
            left = left[sink.write(left) or 0 :]


def _exactly(source: RawIOBase | BytesIO, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = source.read(min(size, MAX_READ))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
