"""The JSON schemas that callers may hold an answer to: bounded before anything is checked by them.

Reading one is linear in its length and imports nothing, as it happens wherever an input is looked
at. What is accepted is a closed part of JSON Schema 2020-12 whose check is bounded by the size of
schema and answer: `_schema_check` does that.
"""

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeGuard

JsonObject = dict[str, object]

MAX_CHARACTERS = 20_000
MAX_PARTS = 1_000  # schemas within the schema, once every reference is written out
MAX_RULES = 10_000  # the parts, and every value and name that they list
MAX_PARTS_AT_ONE_PLACE = 100  # that are all held against one value, as by `allOf`
MAX_DEPTH = 32
CACHE_SIZE = 32  # schemas; a workflow's nodes often share one

# Keywords by what they hold: one schema, a list of them, or schemas by name.
_SINGLE_KEYWORDS = (
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
)
_LIST_KEYWORDS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED_KEYWORDS = ("dependentSchemas", "properties")
# Those whose schemas are checked against the same value as the schema that contains them.
_SAME_VALUE_KEYWORDS = frozenset(
    {"allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"}
)
_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
# A pattern can be made to run for ever, and the others make one schema mean another elsewhere.
_REFUSED_KEYWORDS = (
    "$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveRef", "dependencies", "pattern",
    "patternProperties", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip


class BoundedSchema(NamedTuple):
    """A schema that may be checked by.

    Attributes:
        plain: it, with every reference written out and without what asserts nothing. Shared by
            all who ask for the same: not to be changed.
        rules: its parts, and every value and name that they list. A check of an answer takes at
            most this many steps for each value in it.
    """

    plain: JsonObject
    rules: int


def simplify_schema(schema: JsonObject) -> JsonObject:
    """Write out a schema's references and leave only what an answer is checked against.

    >>> members = {"a": {"type": "string"}}
    >>> simplify_schema({"type": "object", "title": "Card", "properties": members})
    {'type': 'object', 'properties': {'a': {'type': 'string'}}}

    Raises:
        ValueError: see `read_bounded_schema`.
    """
    return read_bounded_schema(schema).plain


def read_bounded_schema(schema: JsonObject) -> BoundedSchema:
    """Read a schema, and see that a check by it is bounded. Takes milliseconds, whatever it holds.

    Raises:
        ValueError: it cannot be checked in bounded time (too large or deep, recursive, with
            patterns or references out of the document), or it is no JSON schema.
    """
    try:
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (RecursionError, TypeError, ValueError):
        raise ValueError("is nested too deeply, or is no JSON") from None
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"is longer than {MAX_CHARACTERS} characters")
    return _read_schema(text)


@lru_cache(CACHE_SIZE)
def _read_schema(text: str) -> BoundedSchema:
    try:
        root: JsonObject = json.loads(text)
        reader = _ReferenceExpander(root)
        plain = reader.expand(root, (), ())
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(plain, dict):
        raise ValueError("is not an object")
    _count_parts_at_one_place(plain)
    return BoundedSchema(plain, reader.rules)


class _ReferenceExpander:
    """Expands the references of one schema, and counts the parts and rules of the result."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._parts = 0
        self.rules = 0

    def expand(
        self, schema: object, trail: tuple[str, ...], path: tuple[str, ...], depth: int = 0
    ) -> object:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise ValueError(f"has more than {MAX_PARTS} parts")
        if depth > MAX_DEPTH:
            raise ValueError(f"is nested more than {MAX_DEPTH} deep")
        self._count_rules(1)
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise _build_schema_error(path)
        for keyword in _REFUSED_KEYWORDS:
            if keyword in schema:
                raise ValueError(f"uses `{keyword}`, which is not supported here")
        plain: JsonObject = {}
        for name, value in schema.items():
            if name in _ASSERTIONS:
                if not _ASSERTIONS[name](value):
                    raise _build_schema_error((*path, name))
                self._count_rules(1 + _count_values(value))
                plain[name] = value
        for name, value in self._expand_inner(schema, trail, path, depth + 1):
            plain[name] = value
        if "$ref" in schema:
            target = self._resolve_reference(schema["$ref"], trail)
            here = (*trail, str(schema["$ref"]))
            reached = self.expand(target, here, (*path, "$ref"), depth + 1)
            both = plain.get("allOf", [])
            plain["allOf"] = [*both, reached] if isinstance(both, list) else [reached]
        return plain

    def _count_rules(self, rules: int) -> None:
        self.rules += rules
        if self.rules > MAX_RULES:
            raise ValueError(f"lists more than {MAX_RULES} rules, values and names")

    def _expand_inner(
        self, schema: JsonObject, trail: tuple[str, ...], path: tuple[str, ...], depth: int
    ) -> Iterator[tuple[str, object]]:
        for name, value in schema.items():
            below = (*path, name)
            if name in _SINGLE_KEYWORDS:
                yield name, self.expand(value, trail, below, depth)
            elif name in _LIST_KEYWORDS:
                if not isinstance(value, list):
                    raise ValueError(f"has a `{name}` of the wrong type")
                if not value:
                    raise _build_schema_error(below)
                yield (
                    name,
                    [
                        self.expand(part, trail, (*below, str(place)), depth)
                        for place, part in enumerate(value)
                    ],
                )
            elif name in _NAMED_KEYWORDS:
                if not isinstance(value, dict):
                    raise ValueError(f"has a `{name}` of the wrong type")
                yield (
                    name,
                    {
                        key: self.expand(part, trail, (*below, key), depth)
                        for key, part in value.items()
                    },
                )

    def _resolve_reference(self, reference: object, trail: tuple[str, ...]) -> object:
        parts = str(reference).split("/")
        home = self._root.get(parts[1]) if len(parts) == 3 else None
        if parts[0] != "#" or parts[1:2] not in (["$defs"], ["definitions"]):
            raise ValueError("may only refer to its own `$defs`")
        if not isinstance(home, dict) or parts[2] not in home:
            raise ValueError(f"refers to `{reference}`, which it does not have")
        if reference in trail:
            raise ValueError(f"refers to itself at `{reference}`")
        found: object = home[parts[2]]
        return found


def _count_parts_at_one_place(schema: object) -> int:
    """Count the schemas that are held against the same value as this one, itself included.

    Raises:
        ValueError: they are too many, here or further in.
    """
    if not isinstance(schema, dict):
        return 1
    count = 1
    for name, value in schema.items():
        inner = [value] if name in _SINGLE_KEYWORDS else value if name in _LIST_KEYWORDS else []
        inner = value.values() if name in _NAMED_KEYWORDS else inner
        counts = [_count_parts_at_one_place(part) for part in inner]
        count += sum(counts) if name in _SAME_VALUE_KEYWORDS else 0
    if count > MAX_PARTS_AT_ONE_PLACE:
        raise ValueError(f"holds more than {MAX_PARTS_AT_ONE_PLACE} parts against one value")
    return count


def _build_schema_error(path: tuple[str, ...]) -> ValueError:
    return ValueError(f"is no JSON schema at `{'.'.join(path) or '.'}`")


def _count_values(value: object) -> int:
    """Count the values and names in a value."""
    if isinstance(value, list):
        return len(value) + sum(map(_count_values, value))
    if isinstance(value, dict):
        return len(value) + sum(map(_count_values, value.values()))
    return 0


def _is_type(value: object) -> bool:
    names = [value] if isinstance(value, str) else value
    return _are_names(names) and names != [] and _TYPES.issuperset(names)


def _are_names(value: object) -> TypeGuard[list[str]]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return False
    return len(set(value)) == len(value)


def _are_lists_of_names(value: object) -> bool:
    return isinstance(value, dict) and all(map(_are_names, value.values()))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_positive(value: object) -> bool:
    return _is_number(value) and value > 0


def _is_count(value: object) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_anything(_value: object) -> bool:
    return True


# The check of each assertion keyword's own value.
_ASSERTIONS: dict[str, Callable[[object], bool]] = {
    "const": _is_anything,
    "dependentRequired": _are_lists_of_names,
    "enum": _is_list,
    "exclusiveMaximum": _is_number,
    "exclusiveMinimum": _is_number,
    "maxContains": _is_count,
    "maxItems": _is_count,
    "maxLength": _is_count,
    "maxProperties": _is_count,
    "maximum": _is_number,
    "minContains": _is_count,
    "minItems": _is_count,
    "minLength": _is_count,
    "minProperties": _is_count,
    "minimum": _is_number,
    "multipleOf": _is_positive,
    "required": _are_names,
    "type": _is_type,
    "uniqueItems": _is_boolean,
}
