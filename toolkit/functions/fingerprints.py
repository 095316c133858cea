"""Fingerprints of functions: digests of their code, and of the values that they read.

The compiled code counts, so that comments and blank lines make no difference, and two lambdas on
one line differ. A value counts by its content if that is known exactly (`value_contents`,
`table_contents`). A function that reads any other value is new each time.
"""

import dataclasses
import enum
import functools
import hashlib
import importlib.machinery
import os
import sys
import types
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from pydantic import BaseModel

from toolkit.functions.code_reads import Chain, Import, is_own_file, is_own_module, list_reads
from toolkit.functions.table_contents import find_table_content, read_subclassed_array
from toolkit.functions.value_contents import (
    ATOMS,
    CONTENTS,
    INLINE,
    Attribute,
    Key,
    Part,
    UnknownContentError,
    find_layout,
    is_array_type,
    list_attributes,
    list_members,
)

MAX_UNSEEN: Final = 5  # values that a message names, after which reading stops
MAX_VALUES: Final = 10_000_000  # of one fingerprint; a larger value counts as new
MAX_KEY_CHARS: Final = 20
_SHORT_BYTES: Final = 1_024
_HEAP_TYPE_FLAG: Final = 1 << 9
# Attributes that `importlib` writes into a module, rather than the module's code.
_MODULE_MACHINERY = frozenset(
    {"__builtins__", "__cached__", "__file__", "__loader__", "__path__", "__spec__", "__doc__"}
)
_DISPATCHER_CODE = getattr(functools.singledispatch(len), "__code__", None)
_CONTAINERS = frozenset({list, dict})  # frequent, so they are written in a shorter way
_LRU_CACHE_TYPE = type(functools.cache(len))

# The place of a value, for messages: the place before it, and the step from there.
Place = tuple["Place | None", object]


@dataclasses.dataclass(frozen=True, slots=True)
class Fingerprint:
    """A hash of a function with everything that it reads, by which equal calls are found.

    Attributes:
        digest: hexadecimal SHA-256; different each time if `unseen` is not empty.
        unseen: values without exactly known content, such as `model (Classifier)`.
    """

    digest: str
    unseen: tuple[str, ...] = ()


def identify_function(function: Callable[..., object]) -> Fingerprint:
    """Return the identity of a function: its code, its defaults and its closed-over values.

    An object with unknown content counts by its identity.

    >>> make = lambda n: lambda x: x + n
    >>> identify_function(make(1)) == identify_function(make(1))
    True
    >>> identify_function(make(1)) == identify_function(make(2))
    False
    """
    return _Reader(reads_globals=False).read(function)


def fingerprint_function(function: Callable[..., object]) -> Fingerprint:
    """Return the digest of everything that `identify_function` reads, and of the globals read.

    The caller's own functions, classes and modules count with their loaded code, and with the
    values that this code reads in turn. An installed package counts with its version.
    """
    return _Reader(reads_globals=True).read(function)


def fingerprint_inputs(function: Callable[..., object]) -> Fingerprint:
    """Return a digest as `fingerprint_function` does, but without the values of cached properties.

    A call that fills a `functools.cached_property` changes no input of the function.
    """
    return _Reader(reads_globals=True, ignores_computed=True).read(function)


class _EnoughError(Exception):
    """Raised to stop reading values, because the rest cannot change the outcome."""


class _Reader:
    """Read a graph of values into one hash.

    An object with an identity gets a number when it is first met; its content is read later, in
    that order. Thus the hash distinguishes one object met twice from two equal objects, and deep
    values need no deep recursion.
    """

    def __init__(
        self,
        *,
        reads_globals: bool,
        ignores_computed: bool = False,
        within: frozenset[int] = frozenset(),
    ) -> None:
        self._ignores_computed = ignores_computed
        self._hash = hashlib.sha256()
        self._unseen: dict[str, None] = {}
        self._reads_globals = reads_globals
        self._within = within  # ids of values that an outer reader is reading
        self._numbers: dict[int, int] = {}
        self._installed: dict[int, tuple[str, str] | tuple[()]] = {}  # names, by the values' ids
        self._plain: dict[int, bytes] = {}  # digests of plain tuples, by their ids
        self._held: list[object] = []  # otherwise another object could get the id of a held object
        self._waiting: deque[tuple[Place, object]] = deque()

    def read(self, root: object) -> Fingerprint:
        """Read a value, and return its digest."""
        self._write("python", sys.version.encode())
        try:
            self._put((None, ""), root)
            while self._waiting:
                place, value = self._waiting.popleft()
                self._describe(place, value)
        except _EnoughError:
            pass
        if self._unseen and self._reads_globals:
            self._write("new", uuid.uuid4().bytes)
        return Fingerprint(self._hash.hexdigest(), tuple(self._unseen))

    def _write(self, tag: str, data: bytes) -> None:
        head = f"{tag}:{len(data)}:".encode()
        if len(data) < _SHORT_BYTES:
            self._hash.update(head + data)
        else:
            self._hash.update(head)
            self._hash.update(data)

    def _describe(self, place: Place, value: object) -> None:
        """Add the content of a value to the hash, as unknown content if that fails in any way."""
        try:
            self._describe_content(place, value)
        except _EnoughError:
            raise
        except Exception:  # code of the value's class may raise anything
            self._put_unseen(place, value)

    def _put_unseen(self, place: Place, value: object) -> None:
        kind, name = type(value).__name__, _name_place(place)
        self._unseen[f"`{name}` ({kind})" if name else f"a {kind}"] = None
        self._write("itself", get_token(value))
        if self._reads_globals and len(self._unseen) >= MAX_UNSEEN:
            raise _EnoughError

    def _put(self, place: Place, value: Any) -> None:
        """Add a value to the hash: an atom by its content, an object by a number for later."""
        kind: Any = type(value)
        write_atom = ATOMS.get(kind)
        if write_atom is not None:
            self._write(kind.__name__, write_atom(value))
            return
        if kind is tuple:
            digest = self._digest_plain_tuple(value)
            if digest is not None:
                self._write("tuple", digest)
                return
        elif kind is types.BuiltinFunctionType and self._put_installed(value):
            return
        elif kind in INLINE or kind in (frozenset, types.CodeType):
            self._describe(place, value)
            return
        elif kind not in _CONTAINERS and self._put_installed(value):
            return
        number = self._numbers.get(id(value))
        if number is not None:
            self._write("again", b"%d" % number)
            return
        table = find_table_content(kind)
        if table is not None and not table[1]:
            self._describe(place, value)
            return
        self._numbers[id(value)] = len(self._numbers)
        self._held.append(value)
        if len(self._held) > MAX_VALUES:
            self._put_unseen(place, value)
            raise _EnoughError
        self._write("object", b"")
        self._waiting.append((place, value))

    def _digest_plain_tuple(self, value: tuple[Any, ...]) -> bytes | None:
        """Return the digest of a tuple of atoms, or None if it holds anything else.

        Equal tuples may or may not be one object, because Python shares constants.
        """
        cached_digest = self._plain.get(id(value))
        if cached_digest is not None:
            return cached_digest
        parts = hashlib.sha256()
        for item in value:
            kind = type(item)
            if kind is tuple:
                data = self._digest_plain_tuple(item)
            elif kind in ATOMS:
                data = ATOMS[kind](item)
            else:
                return None
            if data is None:
                return None
            parts.update(b"%s:%d:" % (kind.__name__.encode(), len(data)))
            parts.update(data)
        digest = self._plain[id(value)] = parts.digest()
        self._held.append(value)
        return digest

    def _put_all(self, place: Place, parts: Iterable[Part]) -> None:
        for step, part in parts:
            self._put((place, step) if step != "" else place, part)
        self._write("end", b"")

    def _describe_content(self, place: Place, value: Any) -> None:
        """Add the content of an object to the hash, in the way for its type."""
        kind = type(value)
        if kind is types.FunctionType:
            self._describe_function(place, value)
        elif kind is types.CodeType:
            self._describe_code(place, value)
        elif isinstance(value, type):
            self._describe_class(place, value)
        elif isinstance(value, types.ModuleType):
            self._describe_module(place, value)
        elif (table := find_table_content(kind)) is not None:
            self._write("table", f"{kind.__module__}.{kind.__qualname__}".encode())
            self._put_all(place, table[0](value))
        else:
            self._describe_instance(place, value)

    def _describe_instance(self, place: Place, value: object) -> None:
        kind: Any = type(value)
        if issubclass(kind, (set, frozenset)):
            layout: type | None = frozenset if issubclass(kind, frozenset) else set
        else:
            layout = find_layout(kind)
        if layout is None or (not self._reads_globals and _is_unknown_identity(value, layout)):
            raise UnknownContentError
        if kind in _CONTAINERS:
            self._write("container", kind.__name__.encode())
            self._put_all(place, CONTENTS[kind](value))
            return
        self._write("instance", b"")
        self._put(place, kind)
        if layout in (set, frozenset):
            self._put_set(place, value)
        elif is_array_type(layout):
            self._put_all(place, read_subclassed_array(value))
        else:
            content = INLINE.get(layout) or CONTENTS[layout]
            self._put_all(place, content(value))
        if kind is _LRU_CACHE_TYPE:
            self._refuse_stale_cache(value)
        if kind in INLINE or kind in (set, frozenset):
            return
        for name, attribute in list_attributes(value, layout):
            if self._ignores_computed and _is_computed(kind, name):
                continue
            self._write("attribute", b"")
            self._put(place, name)
            self._put((place, Attribute(name)), attribute)
        self._write("end", b"")

    def _put_set(self, place: Place, values: Any) -> None:
        """Add a set's elements to the hash, in an order that is the same in any process."""
        if id(values) in self._within:  # the set contains itself through another object
            raise UnknownContentError
        digests: list[tuple[str, object]] = []
        for value in (set if isinstance(values, set) else frozenset).__iter__(values):
            reader = _Reader(
                reads_globals=self._reads_globals,
                ignores_computed=self._ignores_computed,
                within=self._within | {id(values)},
            )
            digests.append((reader.read(value).digest, value))
            if reader._unseen and self._reads_globals:
                raise UnknownContentError
        digests.sort(key=lambda pair: pair[0])
        self._put_all(place, [("", value) for _, value in digests])

    def _refuse_stale_cache(self, cached: Any) -> None:
        """Refuse a `functools.cache` that was filled by an earlier state of its function.

        Raises:
            UnknownContentError: if the cache may return results of the earlier state.
        """
        if not self._reads_globals or id(cached) in self._within:  # a function that calls itself
            return
        reader = _Reader(reads_globals=True, within=self._within | {id(cached)})
        content = reader.read(cached.__wrapped__).digest
        if cached.cache_info().currsize and _filled_as.get(cached, content) != content:
            raise UnknownContentError
        _filled_as[cached] = content

    def _put_installed(self, value: object) -> bool:
        """Add a value of an installed module to the hash by its name; return False for others."""
        if isinstance(value, types.ModuleType):
            if self._reads_globals and is_own_module(value.__name__):
                return False
            self._write_installed("module", value.__name__, "")
            return True
        reference = self._installed.get(id(value))
        if reference is None:
            reference = self._installed[id(value)] = _find_installed_name(value) or ()
            self._held.append(value)
        if not reference:
            return False
        self._write_installed("installed", *reference)
        return True

    def _write_installed(self, tag: str, module: str, name: str) -> None:
        self._write(tag, module.encode())
        self._write("name", name.encode())
        self._write("version", _find_version(module).encode())

    def _describe_function(self, place: Place, function: types.FunctionType) -> None:
        home = str(function.__globals__.get("__name__"))
        is_own = is_own_module(home)
        self._write("function", home.encode())
        if not is_own:  # its version covers its calls; its closed-over values are the caller's
            self._write_installed("installed", home, function.__qualname__)
        if self._numbers[id(function)]:  # the name of the first function does not count
            self._put(place, (function.__name__, function.__qualname__, function.__doc__))
        self._put(place, function.__code__)
        self._put((place, "a default"), function.__defaults__)
        self._put_all(
            place,
            ((name, (name, value)) for name, value in (function.__kwdefaults__ or {}).items()),
        )
        attributes = vars(function)
        if function.__code__ is _DISPATCHER_CODE:  # its other variables are a cache
            self._put_all(place, (("", pair) for pair in attributes["registry"].items()))
            return
        self._put_all(
            place, ((Attribute(name), (name, value)) for name, value in attributes.items())
        )
        reads = list_reads(function.__code__)
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            self._write("free", name.encode())
            try:
                content = cell.cell_contents
            except ValueError:  # not set yet
                continue
            self._put_name((place[0], name), content, reads.free.get(name, frozenset({()})))
        if not self._reads_globals:
            return
        self._put((place, "an annotation"), _list_annotations(function))
        if is_own:
            self._put_globals(place, function)

    def _put_globals(self, place: Place, function: types.FunctionType) -> None:
        reads, names = list_reads(function.__code__), function.__globals__
        builtins = names.get("__builtins__", {})
        builtins = vars(builtins) if isinstance(builtins, types.ModuleType) else builtins
        for name, chains in reads.globals.items():
            self._write("global", name.encode())
            if name in names:
                self._put_name((place[0], name), names[name], chains)
            elif name in builtins:
                self._put((place[0], name), builtins[name])
            else:
                self._write("missing", b"")
        for statement in reads.imports:
            self._put_import(place, statement, names.get("__package__"))

    def _put_name(self, place: Place, value: object, chains: Iterable[Chain]) -> None:
        """Add the value of a name to the hash; of a module, only the attributes that are read."""
        if not isinstance(value, types.ModuleType) or not self._reads_globals:
            self._put(place, value)
            return
        for chain in sorted(chains):
            self._put_member(place, value, chain)

    def _put_member(self, place: Place, module: types.ModuleType, chain: Chain) -> None:
        is_own = is_own_module(module.__name__)
        if not chain:
            self._put(place, module)
            return
        name, *tail = chain
        self._write("member", f"{module.__name__}.{name}".encode())
        if not is_own:
            self._write_installed("module", module.__name__, "")
        if name not in vars(module):
            self._write("missing", b"")
            return
        value = vars(module)[name]
        if isinstance(value, types.ModuleType):
            self._put_member((place, Attribute(name)), value, tuple(tail))
        elif is_own or _is_patch(value):
            self._put((place, Attribute(name)), value)

    def _put_import(self, place: Place, statement: Import, package: str | None) -> None:
        """Add the module or names that an import statement within a function reads to the hash."""
        name = statement.resolve(package)
        self._write("import", name.encode())
        module = sys.modules.get(name)
        if module is None:
            self._put_unloaded((place[0], name), name)
            return
        for member in statement.members:
            if member == "*":
                self._put((place[0], name), module)
            elif member in vars(module):
                self._put_member((place[0], name), module, (member,))
            else:
                self._put_unloaded((place[0], name), f"{name}.{member}")
        if not statement.members:
            self._put((place[0], name), module)

    def _put_unloaded(self, place: Place, name: str) -> None:
        """Add a module that a function has yet to import: an installed module by its version.

        The content of a module of the caller counts as unknown.
        """
        top = name.partition(".")[0]
        loaded = sys.modules.get(top)
        spec = None if loaded else importlib.machinery.PathFinder.find_spec(top)
        origin = getattr(loaded, "__file__", None) or getattr(spec, "origin", None)
        if origin is None and (loaded or spec or top not in sys.stdlib_module_names):
            is_own = (spec is not None or loaded is not None) and is_own_module(top)
        else:
            is_own = origin is not None and is_own_file(origin)
        if is_own:
            self._put_unseen(place, types.ModuleType(name))
        else:
            self._write_installed("module", name, "")

    def _describe_code(self, place: Place, code: types.CodeType) -> None:
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        self._write("code", code.co_code)
        self._write("handlers", code.co_exceptiontable)
        self._put(place, counts)
        for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
            self._put(place, names)
        self._put_all(place, (("", constant) for constant in code.co_consts))

    def _describe_class(self, place: Place, kind: type) -> None:
        self._write("class", f"{kind.__module__}.{kind.__qualname__}".encode())
        self._put(place, type(kind))
        self._put_all(place, (("", base) for base in kind.__bases__))
        for name, member in list_members(kind):
            self._write("member", name.encode())
            self._put((place, Attribute(name)), member)
        self._write("end", b"")

    def _describe_module(self, place: Place, module: types.ModuleType) -> None:
        """Add the present content of one of the caller's own modules to the hash."""
        self._write("module", module.__name__.encode())
        for name, value in list(vars(module).items()):
            if name not in _MODULE_MACHINERY:
                self._write("member", name.encode())
                self._put((place, Attribute(name)), value)
        self._write("end", b"")


def _find_installed_name(value: object) -> tuple[str, str] | None:
    """Find the module and name of a value from an installed package; return None without a name."""
    kind: Any = type(value)
    if isinstance(value, (type, types.FunctionType)):
        target: Any = value
        module = value.__module__
        if isinstance(value, types.FunctionType):
            module = str(value.__globals__.get("__name__"))
            if vars(value).get("__wrapped__") is not None and is_own_module(value.__module__):
                return None
    elif kind is types.BuiltinFunctionType:
        target, module = value, getattr(value, "__module__", None) or "builtins"
    elif kind.__flags__ & _HEAP_TYPE_FLAG and is_own_module(kind.__module__):
        return None
    elif find_layout(kind) is None and find_table_content(kind) is None:
        return _find_constant_name(value)
    else:
        return None
    if not isinstance(module, str) or is_own_module(module):
        return None
    if isinstance(value, type) and not value.__flags__ & _HEAP_TYPE_FLAG:
        return module, value.__qualname__  # it cannot change, and has no other name
    name = str(target.__qualname__)
    return (module, name) if _look_up(module, name) is value else None


def _find_constant_name(value: object) -> tuple[str, str] | None:
    """Find the module and name of an installed package's constant or C callable, or return None."""
    kind: Any = type(value)
    module = getattr(value, "__module__", None) or kind.__module__
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(name, str):
        with suppress(Exception):  # most cannot be pickled; a constant is pickled as its name
            name = kind.__reduce__(value)
    if not isinstance(module, str) or not isinstance(name, str) or is_own_module(module):
        return None
    for home in (module, module.partition(".")[0]):
        if _look_up(home, name) is value:
            return home, name
    return None


def _look_up(module: str, name: str) -> object:
    target: Any = sys.modules.get(module)
    for part in name.split("."):
        target = getattr(target, part, None)
    return target


def _find_version(module: str) -> str:
    """Return the version of the package that contains a module; empty for the standard library."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return ""  # every fingerprint contains Python's version
    package_version = getattr(sys.modules.get(top), "__version__", None)
    return package_version if isinstance(package_version, str) else _read_version(top)


@functools.cache
def _read_version(package: str) -> str:
    try:
        return version(package)
    except (PackageNotFoundError, ValueError):
        return ""


def _is_patch(value: object) -> bool:
    """Check whether the caller's own code put this value into an installed module."""
    if isinstance(value, types.FunctionType):
        return is_own_module(str(value.__globals__.get("__name__")))
    return is_own_module((value if isinstance(value, type) else type(value)).__module__)


def _is_unknown_identity(value: object, layout: type) -> bool:
    """Check whether an instance counts for a function's identity as an object, not by content.

    A client or a model that a function closes over changes while the function stays the same.
    """
    if layout is not object or isinstance(value, (enum.Enum, BaseModel)):
        return False
    return not dataclasses.is_dataclass(value)


def _is_computed(kind: type, name: str) -> bool:
    """Check whether a class computes an attribute by a `cached_property`, so that it is no data."""
    members = (vars(level)[name] for level in kind.__mro__ if name in vars(level))
    return isinstance(next(members, None), functools.cached_property)


def _list_annotations(function: types.FunctionType) -> object:
    try:
        return dict(function.__annotations__)
    except NameError:  # later versions of Python evaluate them now
        return getattr(function, "__annotate__", None)


# By function with a `functools.cache`: the function's digest when the cache was first seen.
_filled_as: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()
_tokens: dict[int, tuple["weakref.ref[object]", bytes]] = {}


def get_token(value: object) -> bytes:
    """Return bytes that no other object gets, even an object at the same address later."""
    entry = _tokens.get(id(value))
    if entry is not None and entry[0]() is value:
        return entry[1]
    token = os.urandom(16)
    with suppress(TypeError):  # without weak references, the object gets another token each time
        _tokens[id(value)] = weakref.ref(value, functools.partial(_forget, id(value))), token
    return token


def _forget(key: int, reference: "weakref.ref[object]") -> None:
    entry = _tokens.get(key)
    if entry is not None and entry[0] is reference:
        del _tokens[key]


def _name_place(place: Place) -> str:
    """Format a place as code: `MODEL.layers[0]`."""
    steps: list[object] = []
    current: Place | None = place
    while current is not None:
        current, step = current
        steps.append(step)
    parts = []
    for step in reversed(steps):
        if isinstance(step, Key):
            parts.append(f"[{_shorten(step.key)}]")
        elif isinstance(step, Attribute):
            parts.append(f".{step}" if any(parts) else str(step))
        else:
            parts.append(str(step))
    return "".join(parts)


def _shorten(key: object) -> str:
    text = repr(key) if type(key) in ATOMS else "…"
    return text if len(text) <= MAX_KEY_CHARS else f"{text[:MAX_KEY_CHARS]}…"
