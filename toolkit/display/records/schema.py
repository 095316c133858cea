"""JSON Schemas for people: a row for each field."""

from collections.abc import Iterator, Mapping
from typing import Any

FIELD_COLUMNS = ("field", "type", "required", "default", "description")
MAX_DEPTH = 3
_BOUND_TEXTS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "above {}",
    "exclusiveMaximum": "below {}",
    "minLength": "{} characters or more",
    "maxLength": "{} characters at most",
    "minItems": "{} items or more",
    "maxItems": "{} items at most",
}

Schema = Mapping[str, Any]


def is_schema(value: Mapping[str, object]) -> bool:
    """Check whether an object is a schema of objects.

    >>> is_schema({"type": "object", "properties": {"a": {}}}), is_schema({"type": "image"})
    (True, False)
    """
    return isinstance(value.get("properties"), Mapping) and value.get("type") == "object"


def list_fields(schema: Schema) -> list[dict[str, object]]:
    """List a row for each field of an object, followed by the fields of nested objects.

    >>> list_fields({"properties": {"n": {"type": "integer", "default": 1}}})[0]
    {'field': 'n', 'type': 'integer', 'required': False, 'default': '1', 'description': ''}
    """
    return list(_iter_fields(schema, schema.get("$defs", {}), "", 0))


def _iter_fields(
    schema: Schema, definitions: Mapping[str, Schema], path: str, depth: int
) -> Iterator[dict[str, object]]:
    # Not at the top: it loads pydantic, and a command that shows a record needs none.
    from toolkit.contract.capabilities import list_required_fields

    required = list_required_fields(schema)
    for name, field in schema.get("properties", {}).items():
        actual = _resolve_schema(field, definitions)
        bounds = [text.format(actual[key]) for key, text in _BOUND_TEXTS.items() if key in actual]
        parts = [str(field.get("description") or actual.get("description") or ""), *bounds]
        yield {
            "field": path + name,
            "type": _describe_type(field, definitions),
            "required": name in required,
            "default": _format_literal(field["default"])
            if field.get("default") is not None
            else "",
            "description": "; ".join(text for text in parts if text),
        }
        inside = _resolve_schema(actual.get("items", actual), definitions)
        if depth < MAX_DEPTH and "properties" in inside:
            below = f"{path}{name}{'[]' if 'items' in actual else ''}."
            yield from _iter_fields(inside, definitions, below, depth + 1)


def _resolve_schema(schema: object, definitions: Mapping[str, Schema]) -> Schema:
    """Replace a reference by its definition, and merge the only choice besides null."""
    if not isinstance(schema, Mapping):
        return {}
    if "$ref" in schema:
        return definitions.get(str(schema["$ref"]).rpartition("/")[2], {})
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    return {**_resolve_schema(choices[0], definitions), **schema} if len(choices) == 1 else schema


def _describe_type(schema: object, definitions: Mapping[str, Schema]) -> str:
    if not isinstance(schema, Mapping):
        return "anything"
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return " or ".join(dict.fromkeys(_describe_type(choice, definitions) for choice in choices))
    actual = _resolve_schema(schema, definitions)
    if "const" in actual:
        return _format_literal(actual["const"])
    if "enum" in actual:
        return " | ".join(_format_literal(choice) for choice in actual["enum"])
    kind = actual.get("type", "anything")
    if kind == "array":
        return f"list of {_describe_type(actual.get('items'), definitions)}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _format_literal(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_format_literal, value)) or "none"
    if isinstance(value, Mapping):
        return (
            ", ".join(f"{key}: {_format_literal(member)}" for key, member in value.items())
            or "none"
        )
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
