"""Answers held to a caller's JSON schema: the schema bounded first, then the answer checked."""

import json
import math
from collections.abc import Iterator, Mapping

from toolkit.contract.base import JsonObject, canonical_json

LONGEST_SCHEMA = 20_000  # characters
MOST_PARTS = 1_000  # schemas within the schema, once every reference is written out
DEEPEST = 32

_ONE = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("dependentSchemas", "properties")
_ASSERTIONS = (
    "const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "maxContains",
    "maxItems", "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength",
    "minProperties", "minimum", "multipleOf", "required", "type", "uniqueItems",
)  # fmt: skip
# A pattern can be made to run for ever, and the others make one schema mean another elsewhere.
_REFUSED = (
    "$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveRef", "dependencies", "pattern",
    "patternProperties", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip


def plain_schema(schema: JsonObject) -> JsonObject:
    """The schema with every reference written out and only what an answer is checked against.

    >>> plain_schema({"type": "object", "title": "Card", "properties": {"a": {"type": "string"}}})
    {'type': 'object', 'properties': {'a': {'type': 'string'}}}

    Raises:
        ValueError: it cannot be checked in bounded time (too large or deep, recursive, with
            patterns or references out of the document), or it is no JSON schema.
    """
    # Deferred: 0.1 s that an answer without a schema need not pay.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        if len(canonical_json(schema)) > LONGEST_SCHEMA:
            raise ValueError(f"is longer than {LONGEST_SCHEMA} characters")
        plain = _Expansion(schema).expand(schema, ())
        if not isinstance(plain, dict):
            raise ValueError("is not an object")
        Draft202012Validator.check_schema(plain)
    except SchemaError as error:
        where = ".".join(map(str, error.absolute_path))
        raise ValueError(f"is no JSON schema at `{where or '.'}`") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    return plain


class _Expansion:
    """Writes out the references of one schema, counting what comes of it."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._parts = 0

    def expand(self, schema: object, trail: tuple[str, ...], depth: int = 0) -> object:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise ValueError(f"has more than {MOST_PARTS} parts")
        if depth > DEEPEST:
            raise ValueError(f"is nested more than {DEEPEST} deep")
        if not isinstance(schema, dict):
            return schema
        for keyword in _REFUSED:
            if keyword in schema:
                raise ValueError(f"uses `{keyword}`, which is not supported here")
        plain = {name: schema[name] for name in _ASSERTIONS if name in schema}
        for name, value in self._inner(schema, trail, depth + 1):
            plain[name] = value
        if "$ref" in schema:
            target = self._referred(schema["$ref"], trail)
            reached = self.expand(target, (*trail, str(schema["$ref"])), depth + 1)
            plain["allOf"] = [*plain.get("allOf", []), reached]
        return plain

    def _inner(
        self, schema: Mapping[str, object], trail: tuple[str, ...], depth: int
    ) -> Iterator[tuple[str, object]]:
        for name in (n for n in schema if n in (*_ONE, *_MANY, *_NAMED)):
            value = schema[name]
            if name in _ONE:
                yield name, self.expand(value, trail, depth)
            elif name in _MANY and isinstance(value, list):
                yield name, [self.expand(part, trail, depth) for part in value]
            elif name in _NAMED and isinstance(value, dict):
                yield name, {key: self.expand(part, trail, depth) for key, part in value.items()}
            else:
                raise ValueError(f"has a `{name}` of the wrong type")

    def _referred(self, reference: object, trail: tuple[str, ...]) -> object:
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


def read_json(text: str) -> object:
    """The JSON value in an answer, which may stand in a Markdown code block.

    Raises:
        ValueError: there is none, or it holds a number JSON cannot express.

    >>> read_json('```json\\n{"words": 3}\\n```')
    {'words': 3}
    """
    body = text.strip()
    if body.startswith("```"):
        body = body.partition("\n")[2].rpartition("```")[0]
    try:
        value: object = json.loads(body, parse_constant=_refused, parse_float=_finite)
        canonical_json(value).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _refused(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def fault(value: object, schema: JsonObject) -> str | None:
    """Where a value differs from a schema; none if it matches. Says nothing of the value itself.

    >>> fault({"words": "three"}, {"properties": {"words": {"type": "integer"}}})
    '`words` breaks the rule `type`'
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(plain_schema(schema)).iter_errors(value))
    if error is None:
        return None
    where = ".".join(map(str, error.absolute_path))
    return f"`{where or '.'}` breaks the rule `{error.validator}`"
