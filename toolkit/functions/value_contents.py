"""The contents of values whose types are known exactly, for their digests.

This is a whitelist. A type is known if its content function below returns every difference between
its values. A class written in Python is known as well, because its attributes are complete. The
content of every other type, and of every type with hidden state from a C extension, is unknown.
"""

import abc
import array
import collections
import dataclasses
import datetime
import enum
import functools
import gc
import logging
import operator
import re
import types
import typing
import uuid
import weakref
import zoneinfo
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from marshal import dumps  # nosemgrep: rules.no-unpickling - it writes values to be hashed
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any, Final

# Members that derive from others, cache computed values, or differ in each process.
_DERIVED = frozenset(
    {
        "__abc_impl__", "_abc_impl", "__annotations_cache__", "__dict__", "__firstlineno__",
        "__module__", "__pydantic_complete__", "__pydantic_core_schema__",
        "__pydantic_fields_complete__", "__pydantic_parent_namespace__", "__pydantic_serializer__",
        "__pydantic_setattr_handlers__", "__pydantic_validator__", "__signature__",
        "__static_attributes__", "__weakref__",
    }
)  # fmt: skip

# A flag caches each combination of its members here when the combination is first made.
_FLAG_CACHES = frozenset({"_value2member_map_"})
# A part of a value: the step to it, for messages, and the part itself.
Part = tuple[object, object]
Content = Callable[[Any], Iterable[Part]]
POINTER_BYTES: Final = object.__basicsize__ // 2  # an empty object is a count and a type
MIN_PACKED_ITEMS = 16
# Version 2 writes equal values as equal bytes; later versions also write which values are shared.
_MARSHAL_VERSION = 2
_PACKABLE = frozenset({type(None), bool, int, float, str})
_PATHS = (PurePosixPath, PureWindowsPath, PosixPath, WindowsPath)
_DESCRIPTORS = (
    types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType,
)  # fmt: skip
# Attributes that hold a lock, or only repeat the rest of the content.
HIDDEN_ATTRIBUTES: dict[type, frozenset[str] | None] = {
    functools.cached_property: frozenset({"lock"}),
    enum.Flag: frozenset({"_inverted_"}),  # cached when it is first computed
    logging.Logger: None,  # all of them
}


def list_members(kind: type) -> Iterator[tuple[str, object]]:
    """Yield the members that determine a class's behaviour, in their order."""
    members = dict(vars(kind))
    for name, member in members.items():
        if name == "__pydantic_decorators__":
            yield name, _list_decorators(member)
        elif name not in _DERIVED and not (name in _FLAG_CACHES and issubclass(kind, enum.Flag)):
            yield name, member
    if "_abc_impl" in members:
        yield "registered subclasses", _list_registered(kind)


def _list_decorators(groups: Any) -> list[object]:
    """List pydantic's validators and serializers, without the class's address."""
    return [
        [group.name, name, *_list_fields(decorator)]
        for group in dataclasses.fields(groups)
        for name, decorator in getattr(groups, group.name).items()
    ]


def _list_fields(decorator: Any) -> list[object]:
    fields = (field.name for field in dataclasses.fields(decorator))
    return [getattr(decorator, name) for name in fields if name != "cls_ref"]


def _list_registered(kind: type) -> set[object]:
    """List the classes that were registered as virtual subclasses of an abstract class."""
    get_dump: Any = abc._get_dump  # type: ignore[attr-defined]
    return {reference() for reference in get_dump(kind)[0]} - {None}


class UnknownContentError(Exception):
    """Raised for a value whose content cannot be read exactly, so that it has no digest."""


class Attribute(str):
    """The name of an attribute, as a step on the path to a value."""

    __slots__ = ()


class Key:
    """The key or index of an item, as a step on the path to a value."""

    __slots__ = ("key",)

    def __init__(self, key: object) -> None:
        self.key = key


def _write_float(value: float) -> bytes:
    return dumps(float(value), _MARSHAL_VERSION)


# Immutable values without parts. Equal values may or may not be one object.
ATOMS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"",
    type(...): lambda _: b"",
    type(NotImplemented): lambda _: b"",
    bool: lambda value: b"1" if value else b"0",
    int: lambda value: b"%x" % value,
    float: _write_float,
    complex: lambda value: _write_float(value.real) + _write_float(value.imag),
    str: lambda value: value.encode("utf-8", "surrogatepass"),
    bytes: bytes,
}


def pack_items(items: list[object]) -> bytes | None:
    """Return items as bytes if there are many and all are plain; None otherwise.

    >>> pack_items([1, 2.0]) is None, pack_items([1] * 20) == pack_items([True] * 20)
    (True, False)
    """
    if len(items) < MIN_PACKED_ITEMS or not _PACKABLE.issuperset(set(map(type, items))):
        return None
    return dumps(items, _MARSHAL_VERSION)


def list_parts(*values: object) -> list[Part]:
    """List values as the parts of another value, without the names that messages would show."""
    return [("", value) for value in values]


def _list_items(values: Iterable[object]) -> Iterator[Part]:
    items = list(values)
    packed = pack_items(items)
    if packed is not None:
        yield "", packed
        return
    yield "", len(items)
    for position, item in enumerate(items):
        yield Key(position), item


def _list_pairs(pairs: Iterable[tuple[object, object]]) -> Iterator[Part]:
    pairs = list(pairs)
    yield "", len(pairs)
    for key, value in pairs:
        yield "", key
        yield Key(key), value


def _read_reduced(value: Any) -> list[Part]:
    """Return all data with which a type of the standard library pickles a value."""
    return list_parts(*value.__reduce_ex__(4))


def _read_zone(value: zoneinfo.ZoneInfo) -> list[Part]:
    if value.key is None:  # the zone was read from a file
        raise UnknownContentError
    return list_parts(value.key)


def _read_builtin_method(value: Any) -> list[Part]:
    owner = value.__self__
    if isinstance(owner, types.ModuleType):
        owner = owner.__name__
    return list_parts(value.__name__, owner)


def _read_partial(value: Any) -> list[Part]:
    return [
        (Attribute("func"), value.func),
        (Attribute("args"), value.args),
        *((Key(name), (name, argument)) for name, argument in value.keywords.items()),
    ]


def _read_type_variable(value: Any) -> list[Part]:
    return list_parts(
        value.__name__,
        getattr(value, "__bound__", None),
        getattr(value, "__constraints__", ()),
        getattr(value, "__covariant__", False),
        getattr(value, "__contravariant__", False),
    )


# Values of these types have no significant identity: each use may make another equal object.
INLINE: dict[type, Content] = {
    tuple: _list_items,
    slice: lambda value: list_parts(value.start, value.stop, value.step),
    range: lambda value: list_parts(value.start, value.stop, value.step),
    Decimal: lambda value: list_parts(Decimal.__str__(value)),
    datetime.date: lambda value: list_parts(*datetime.date.__reduce__(value)[1]),
    datetime.time: lambda value: list_parts(*datetime.time.__reduce_ex__(value, 4)[1]),
    datetime.datetime: lambda value: list_parts(*datetime.datetime.__reduce_ex__(value, 4)[1]),
    datetime.timedelta: lambda value: list_parts(*datetime.timedelta.__reduce__(value)[1]),
    datetime.timezone: _read_reduced,
    zoneinfo.ZoneInfo: _read_zone,
    uuid.UUID: lambda value: list_parts(value.int, value.is_safe.name),
    **dict.fromkeys(_PATHS, lambda value: list_parts(str(value))),
    re.Pattern: lambda value: list_parts(value.pattern, value.flags),
    types.MethodType: lambda value: list_parts(value.__func__, value.__self__),
    types.BuiltinMethodType: _read_builtin_method,
    types.MethodWrapperType: _read_builtin_method,
    **dict.fromkeys(_DESCRIPTORS, lambda value: list_parts(value.__objclass__, value.__name__)),
    types.GenericAlias: lambda value: list_parts(
        value.__origin__, value.__args__, getattr(value, "__unpacked__", False)
    ),
    types.UnionType: lambda value: list_parts(value.__args__),
    types.MappingProxyType: lambda value: list_parts(*gc.get_referents(value)),
    weakref.ReferenceType: lambda value: list_parts(value(), value.__callback__),
    operator.itemgetter: _read_reduced,
    operator.attrgetter: _read_reduced,
    operator.methodcaller: _read_reduced,
    type(vars(collections.namedtuple("_", "a"))["a"]): _read_reduced,
}


def _read_nothing(_value: object) -> list[Part]:
    return []


def _read_property(value: Any) -> list[Part]:
    read: Any = property.__getattribute__
    return list_parts(*(read(value, name) for name in ("fget", "fset", "fdel", "__doc__")))


def _read_cell(value: types.CellType) -> list[Part]:
    try:
        return list_parts(value.cell_contents)
    except ValueError:  # not set yet
        return []


def _read_error(value: BaseException) -> list[Part]:
    if value.__traceback__ is not None:
        raise UnknownContentError
    return list_parts(value.args, value.__cause__, value.__context__, value.__suppress_context__)


# Identity distinguishes values of these types, because they may change. A class derived from such
# a type, or from an inline type, has that type's content, and its own attributes.
CONTENTS: dict[type, Content] = {
    object: _read_nothing,
    int: lambda value: list_parts(b"%x" % int.__index__(value)),
    float: lambda value: list_parts(_write_float(float.__add__(value, -0.0))),
    complex: lambda value: list_parts(complex.__repr__(value)),
    str: lambda value: list_parts(str.encode(value, "utf-8", "surrogatepass")),
    bytes: lambda value: list_parts(memoryview(value).tobytes()),
    bytearray: lambda value: list_parts(memoryview(value).tobytes()),
    list: lambda value: _list_items(list.__iter__(value)),
    dict: lambda value: _list_pairs(dict.items(value)),
    tuple: lambda value: _list_items(tuple.__iter__(value)),
    collections.OrderedDict: lambda value: _list_pairs(collections.OrderedDict.items(value)),
    collections.defaultdict: lambda value: [
        (Attribute("default_factory"), value.default_factory),
        *_list_pairs(dict.items(value)),
    ],
    collections.deque: lambda value: [
        ("", value.maxlen),
        *_list_items(collections.deque.__iter__(value)),
    ],
    array.array: lambda value: list_parts(value.typecode, memoryview(value).tobytes()),
    types.SimpleNamespace: _read_nothing,
    types.CellType: _read_cell,
    datetime.tzinfo: _read_nothing,
    property: _read_property,
    classmethod: lambda value: list_parts(value.__func__),
    staticmethod: lambda value: list_parts(value.__func__),
    functools.partial: _read_partial,
    type(functools.cache(len)): _read_nothing,  # its `__dict__` has the function and the size
    BaseException: _read_error,
    # A logger's settings change no result.
    logging.Logger: lambda value: list_parts(value.name, value.level, value.disabled),
}  # fmt: skip
if isinstance(typing.TypeVar, type) and not hasattr(typing.TypeVar("_"), "__dict__"):
    # Later versions of Python have type variables that are written in C.
    for _kind in (typing.TypeVar, typing.ParamSpec):
        CONTENTS[_kind] = _read_type_variable


@functools.lru_cache(maxsize=1_024)
def find_layout(kind: type) -> type | None:
    """Find the type in `CONTENTS` or `INLINE` that defines the layout of a class's instances.

    Returns:
        The type, or None if a class between the two adds hidden state.

    >>> class Rate(int): pass
    >>> find_layout(Rate), find_layout(type(open))
    (<class 'int'>, <class 'builtin_function_or_method'>)
    """
    level: type | None = kind
    while level is not None:
        if level in CONTENTS or level in INLINE or is_array_type(level):
            return level
        base = level.__base__
        if base is None or _hides_state(level, base):
            return None
        level = base
    return None


def is_array_type(kind: type) -> bool:
    """Check whether a type is NumPy's array type, without importing NumPy."""
    return kind.__module__ == "numpy" and kind.__name__ == "ndarray"


def _hides_state(kind: type, base: type) -> bool:
    """Check whether a class adds state that Python cannot read as attributes."""
    members = vars(kind)
    slots = sum(isinstance(member, types.MemberDescriptorType) for member in members.values())
    if slots and "__slots__" not in members:
        return True  # only classes written in C have members without slots
    pointers = slots + ("__dict__" in members) + ("__weakref__" in members)
    added = kind.__basicsize__ - base.__basicsize__
    return added > pointers * POINTER_BYTES or kind.__itemsize__ != base.__itemsize__


def list_attributes(value: object, layout: type) -> Iterator[tuple[str, object]]:
    """Yield an instance's attributes, except some caches; raise an error if the class hides any."""
    kind = type(value)
    hidden: frozenset[str] = frozenset()
    for level in kind.__mro__:
        names = HIDDEN_ATTRIBUTES.get(level, frozenset())
        if names is None:
            return
        hidden |= names
    for level in kind.__mro__:
        if level is layout:
            break
        for name, member in vars(level).items():
            if type(member) is types.MemberDescriptorType and name != "__dict__":
                try:
                    yield name, member.__get__(value)
                except AttributeError:  # not set
                    continue
    attributes = _find_dict(value)
    if attributes is None and kind.__dictoffset__ and kind is not layout:  # the class hides it
        raise UnknownContentError
    for name, attribute in () if attributes is None else list(dict.items(attributes)):
        if name not in hidden:
            yield name, attribute


def _find_dict(value: object) -> dict[str, object] | None:
    for level in type(value).__mro__:
        member: Any = vars(level).get("__dict__")
        if type(member) in (types.GetSetDescriptorType, types.MemberDescriptorType):
            attributes: dict[str, object] | None = member.__get__(value)
            return attributes
    return None
