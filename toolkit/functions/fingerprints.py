"""Fingerprints of functions: their code, and the values that it reads.

Code is told by what it was compiled to, so that comments and blank lines make no difference, and
two lambdas of one line do. What cannot be told by its value counts as itself alone, in this
process: a fingerprint errs by being new, never by being an old one.
"""

import dataclasses
import datetime
import dis
import enum
import functools
import hashlib
import os
import re
import sys
import types
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path, PurePath

from pydantic import BaseModel

from toolkit.functions.own_code import is_own_module

# What counts as itself is the same in this process alone, and in none that is forked from it.
PROCESS_TOKEN = uuid.uuid4().hex
_GLOBAL_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
# Values of these are equal where their `repr` is.
_TOLD_BY_REPR = (
    type(None), bool, int, float, complex, str, bytes, range, slice, Decimal, PurePath, re.Pattern,
    datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, uuid.UUID, type(...),
    types.GenericAlias, types.UnionType,
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a function is told from others by.

    Attributes:
        unseen: what could not be told by its value, such as `model (Classifier)`.
    """

    digest: str
    unseen: tuple[str, ...] = ()


def identify_function(function: Callable[..., object]) -> Fingerprint:
    """Tell a function by its code, its defaults and what it closes over.

    >>> make = lambda n: lambda x: x + n
    >>> identify_function(make(1)) == identify_function(make(1))
    True
    >>> identify_function(make(1)) == identify_function(make(2))
    False
    """
    return _read(function, reads_globals=False)


def fingerprint_function(function: Callable[..., object]) -> Fingerprint:
    """Tell a function by all that `identify_function` does, and by the globals that it reads.

    A function or class of the caller's own that is read is told by its code in turn; a module of
    the caller's own by its file, and an installed one by its version.
    """
    return _read(function, reads_globals=True)


def _read(function: Callable[..., object], *, reads_globals: bool) -> Fingerprint:
    reader = _Reader(reads_globals=reads_globals)
    reader.add_value("", function)
    return Fingerprint(reader.hash.hexdigest(), tuple(dict.fromkeys(reader.unseen)))


class _Reader:
    """Reads values into one hash."""

    def __init__(self, *, reads_globals: bool) -> None:
        self.hash = hashlib.sha256()
        self.unseen: list[str] = []
        self._reads_globals = reads_globals
        # By id: in which order they were met. What refers to itself is not read twice.
        self._met: dict[int, int] = {}
        self._held: list[object] = []  # else another could get the id of one that is gone

    def _add(self, *parts: object) -> None:
        for part in parts:
            data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
            self.hash.update(b"%d:" % len(data))
            self.hash.update(data)

    def add_value(self, name: str, value: object) -> None:
        """Add a value; `name` is what a person would call it."""
        if type(value) in (str, bytes):
            self._add(type(value).__name__, value)
            return
        if isinstance(value, _TOLD_BY_REPR) and not isinstance(value, enum.Enum):
            self._add(_name_class(type(value)), repr(value))
            return
        if isinstance(value, tuple):  # equal ones may or may not be one object
            self._add(_name_class(type(value)), len(value))
            self._add_all(name, value)
            return
        if isinstance(value, types.CodeType):
            self._add_code(value)
            return
        if id(value) in self._met:
            self._add("again", self._met[id(value)])
            return
        self._met[id(value)] = len(self._met)
        self._held.append(value)
        match value:
            case types.FunctionType():
                self._add_function(value)
            case types.MethodType():
                self._add("method")
                self.add_value(name, value.__func__)
                self.add_value(name, value.__self__)
            case functools.partial():
                self._add("partial")
                self._add_all(name, (value.func, value.args, value.keywords))
            case types.ModuleType():
                self._add_module(value)
            case type():
                self._add_class(value)
            case enum.Enum():
                self._add(_name_class(type(value)), value.name)
            case dict() | types.MappingProxyType():
                self._add("dict", len(value))
                for key, held in value.items():
                    self.add_value(name, key)
                    self.add_value(f"{name}[{key!r}]", held)
            case list():
                self._add(_name_class(type(value)), len(value))
                self._add_all(name, value)
            case set() | frozenset():
                self._add_set(name, value)
            case BaseModel():
                self._add_object(name, value, dict(value))
            case _ if dataclasses.is_dataclass(value):
                told = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
                self._add_object(name, value, told)
            case _:
                self._add_other(name, value)

    def _add_all(self, name: str, values: Iterable[object]) -> None:
        for value in values:
            self.add_value(name, value)

    def _add_object(self, name: str, value: object, told: Mapping[str, object]) -> None:
        self.add_value(name, type(value))
        for field, held in told.items():
            self._add(field)
            self.add_value(f"{name}.{field}", held)

    def _add_set(self, name: str, values: Iterable[object]) -> None:
        """Add a set's elements in an order that does not depend on the process."""
        digests = []
        for value in values:
            reader = _Reader(reads_globals=self._reads_globals)
            reader.add_value(name, value)
            digests.append(reader.hash.hexdigest())
            self.unseen += reader.unseen
        self._add("set", *sorted(digests))

    def _add_function(self, function: types.FunctionType) -> None:
        is_own = is_own_module(function.__module__)
        if not is_own:  # what it calls is as its version says; what it closes over is the caller's
            self._add_installed(function.__module__, function.__qualname__)
        self._add("function", function.__module__)  # whose globals it reads
        self.add_value("", function.__code__)
        self._add_all("a default", function.__defaults__ or ())
        self.add_value("a default", dict(function.__kwdefaults__ or {}))
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            self._add(name)
            try:
                held = cell.cell_contents
            except ValueError:  # not set yet
                continue
            self.add_value(name, held)
        if self._reads_globals and is_own:
            for name in sorted(set(_list_global_names(function.__code__))):
                if name in function.__globals__:
                    self._add(name)
                    self.add_value(name, function.__globals__[name])

    def _add_code(self, code: types.CodeType) -> None:
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        self._add("code", *counts, code.co_code, code.co_exceptiontable)
        for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
            self._add(*names)
        self._add_all("a constant", code.co_consts)

    def _add_class(self, kind: type) -> None:
        if not is_own_module(kind.__module__):
            self._add_installed(kind.__module__, kind.__qualname__)
            return
        self._add("class", kind.__qualname__)
        self._add_all(kind.__name__, kind.__bases__)
        for name, member in sorted(vars(kind).items()):
            if isinstance(member, (staticmethod, classmethod)):
                member = member.__func__
            if isinstance(member, property):
                self._add(name)
                self._add_all(name, (member.fget, member.fset))
            elif isinstance(member, (types.FunctionType, *_TOLD_BY_REPR)) and not _is_dated(name):
                self._add(name)
                self.add_value(f"{kind.__name__}.{name}", member)

    def _add_module(self, module: types.ModuleType) -> None:
        file = getattr(module, "__file__", None)
        if file is None or not is_own_module(module.__name__):
            self._add_installed(module.__name__, "")
            return
        self._add("module", module.__name__)
        with suppress(OSError):
            self._add(Path(file).read_bytes())

    def _add_installed(self, module: str | None, name: str) -> None:
        """Add what is installed by its name, and the version of what it is a part of."""
        top = sys.modules.get((module or "").partition(".")[0])
        self._add("installed", module, name, getattr(top, "__version__", ""), sys.version)

    def _add_other(self, name: str, value: object) -> None:
        """Add a table or an array by its values, and what is known of no other as itself."""
        kind = type(value)
        self._add(_name_class(kind))
        wrapped = getattr(value, "__wrapped__", None)
        if callable(value) and isinstance(wrapped, types.FunctionType):
            self.add_value(name, wrapped)
        elif isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType)):
            self._add(getattr(value, "__module__", ""), value.__qualname__)
        elif not any(told(self, value) for told in (_add_frame, _add_array)):
            self._add(PROCESS_TOKEN, os.getpid(), id(value))
            self.unseen.append(f"`{name}` ({kind.__name__})" if name else f"a {kind.__name__}")

    def add_bytes(self, *parts: object) -> None:
        """Add plain parts."""
        self._add(*parts)


def _add_frame(reader: _Reader, value: object) -> bool:
    """Add a table, a column or an index of pandas; false for all else."""
    pd = sys.modules.get("pandas")
    if pd is None or not isinstance(value, (pd.DataFrame, pd.Series, pd.Index)):
        return False
    try:
        rows = pd.util.hash_pandas_object(value).to_numpy().tobytes()
    except TypeError:  # a cell with a list or a dict
        return False
    described = getattr(value, "dtypes", None)
    reader.add_bytes(value.shape, str(described), repr(getattr(value, "columns", "")), rows)
    return True


def _add_array(reader: _Reader, value: object) -> bool:
    """Add an array of numpy, or one of its numbers; false for all else."""
    np = sys.modules.get("numpy")
    if np is None or not isinstance(value, (np.ndarray, np.generic)) or value.dtype.hasobject:
        return False
    reader.add_bytes(value.shape, str(value.dtype), value.tobytes())
    return True


def _list_global_names(code: types.CodeType) -> Iterator[str]:
    """List the names that code reads and does not bind, with those of functions within it."""
    for step in dis.get_instructions(code):
        if step.opname in _GLOBAL_READS:
            yield str(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _list_global_names(inner)


def _is_dated(name: str) -> bool:
    """Tell whether a member of a class differs though the class does not."""
    return name in ("__module__", "__doc__", "__firstlineno__", "__static_attributes__")


def _name_class(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
