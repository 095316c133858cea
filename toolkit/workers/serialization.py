"""Serialization of plain values and named functions, between a process and its workers.

A message is a JSON document with the bytes behind it. It is not a pickle: the sender of a
hostile picture may have made a worker's answer, so reading an answer must not run anything.
"""

import json
import struct
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import BytesIO, RawIOBase
from types import BuiltinFunctionType, FunctionType
from typing import Any

from toolkit.contract.collector_pause import pause_collector

_LENGTH_PREFIX = struct.Struct(">Q")
MAX_READ_BYTES = 1024 * 1024  # per call, because a read allocates as much as it requests
SUPPORTED_TYPES = "None, bool, int, float, str, bytes, and lists, tuples and dicts of them"


class NotSerializableError(TypeError):
    """Raised for a value that cannot be sent to a worker process or back; the text says which."""


def get_function_name(function: object) -> tuple[str, str]:
    """Return the module and the qualified name by which a worker process finds a function.

    Raises:
        NotSerializableError: the worker would not find it.

    >>> get_function_name(json.dumps)
    ('json', 'dumps')
    """
    if not isinstance(function, FunctionType | BuiltinFunctionType):
        raise NotSerializableError(
            f"A {type(function).__name__} cannot run in a worker process: use a function of a"
            " module, and pass its data as arguments."
        )
    module, name = str(function.__module__), function.__qualname__
    if "<" in name:
        raise NotSerializableError(
            f"`{name}` cannot run in a worker process, as it has no name in `{module}`: make it a"
            " function of the module, or use run_in_thread."
        )
    if module == "__main__":
        raise NotSerializableError(
            f"`{name}` is a function of a script or notebook, which no worker process imports:"
            " move it to a module, or use run_in_thread."
        )
    try:
        target = find_function(module, name)
    except (ImportError, AttributeError):
        target = None
    if target is not function:
        raise NotSerializableError(
            f"`{module}.{name}` cannot run in a worker process: that name refers to another object."
        )
    return module, name


def find_function(module: str, name: str) -> Callable[..., object]:
    """Import a module and return its function of a (dotted) name.

    Raises:
        ImportError, AttributeError: there is no such module or function.
    """
    target: Any = sys.modules.get(module)
    if target is None:
        # The name is that of a function of the parent: `get_function_name` checks that.
        target = import_module(module)  # nosemgrep: rules.no-import-of-data
    for part in name.split("."):
        target = getattr(target, part)
    function: Callable[..., object] = target
    return function


def load_functions(names: Sequence[Sequence[str]]) -> None:
    """Import the modules of functions, so that the first call need not.

    A module may define `prepare_worker()`, which loads the requirements of its functions.
    """
    with pause_collector(objects_stay=True):
        for module, name in names:
            find_function(module, name)
        for module in dict.fromkeys(module for module, _ in names):
            prepare = getattr(sys.modules[module], "prepare_worker", None)
            if callable(prepare):
                prepare()


def encode_message(value: object, subject: str = "argument") -> list[bytes]:
    """Serialize a plain value as the pieces of one message.

    Raises:
        NotSerializableError: the value, or a value in it, is not plain.
    """
    writer = _ValueEncoder(subject)
    try:
        tree = writer.encode_value(value)
        document = {
            "value": tree,
            "bytes": writer.bytes_at,
            "tuples": writer.tuples_at,
            "sizes": [len(buffer) for buffer in writer.buffers],
        }
        text = json.dumps(document, separators=(",", ":")).encode()
    except RecursionError:
        raise NotSerializableError(
            f"The {subject} of a worker process is nested too deeply."
        ) from None
    except ValueError as error:  # an integer of more digits than Python writes
        raise NotSerializableError(
            f"The {subject} of a worker process cannot be sent: {error}."
        ) from None
    return [_LENGTH_PREFIX.pack(len(text)), text, *writer.buffers]


class _ValueEncoder:
    """Encodes a value as JSON, and lists the places of its bytes and tuples, which JSON lacks."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._place: list[str | int] = []
        self.bytes_at: list[list[str | int]] = []
        self.tuples_at: list[list[str | int]] = []
        self.buffers: list[bytes] = []

    def encode_value(self, value: object) -> object:
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
            return [self._encode_item(index, item) for index, item in enumerate(value)]
        if isinstance(value, dict) and kind is dict:
            for name in value:
                if type(name) is not str:
                    raise self._make_error(f"a key of type {type(name).__name__}")
            return {name: self._encode_item(name, item) for name, item in value.items()}
        raise self._make_error(f"a {kind.__name__}")

    def _encode_item(self, step: str | int, value: object) -> object:
        self._place.append(step)
        document = self.encode_value(value)
        self._place.pop()
        return document

    def _make_error(self, description: str) -> NotSerializableError:
        return NotSerializableError(
            f"The {self._subject} of a worker process contains {description}: only"
            f" {SUPPORTED_TYPES} can be sent."
        )


def read_message(source: RawIOBase | BytesIO) -> object:
    """Read one message from an unbuffered file, and return the value in it.

    Raises:
        EOFError: the other side has closed its end, or died in the middle.
    """
    (length,) = _LENGTH_PREFIX.unpack(_read_exactly(source, _LENGTH_PREFIX.size))
    document = json.loads(_read_exactly(source, length))
    buffers = [_read_exactly(source, size) for size in document["sizes"]]
    box = [document["value"]]
    for place, buffer in zip(document["bytes"], buffers, strict=True):
        holder, last = _find_holder(box, place)
        holder[last] = buffer
    for place in reversed(document["tuples"]):  # the innermost first
        holder, last = _find_holder(box, place)
        holder[last] = tuple(holder[last])
    return box[0]


def _find_holder(box: list[Any], place: list[Any]) -> tuple[Any, Any]:
    """Find the container of a place, and the index or key in it."""
    holder, last = box, 0
    for step in place:
        holder, last = holder[last], step
    return holder, last


def copy_value(value: object, subject: str) -> object:
    """Return a copy of a value as the other side receives it.

    >>> copy_value({"size": (3, 4)}, "argument")
    {'size': (3, 4)}

    Raises:
        NotSerializableError: it cannot travel.
    """
    return read_message(BytesIO(b"".join(encode_message(value, subject))))


def write_message(sink: RawIOBase, pieces: list[bytes]) -> None:
    """Write a message to an unbuffered file, which may take fewer bytes at once.

    A buffered file has a lock: a thread that holds it as the interpreter exits would abort it.
    """
    for piece in pieces:
        remainder = memoryview(piece)
        while remainder:
            remainder = remainder[sink.write(remainder) or 0 :]


def _read_exactly(source: RawIOBase | BytesIO, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = source.read(min(size, MAX_READ_BYTES))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
