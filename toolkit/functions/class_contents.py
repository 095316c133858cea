"""The members of the caller's own classes that count for their digests."""

import abc
import dataclasses
import enum
from collections.abc import Iterator
from typing import Any

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
