"""Capabilities as plain documents, from which a worker process rebuilds them for planning.

A capability has functions and models, which no message can hold. The document names its models by
their modules. A model that no other process can import, such as a notebook's, is rebuilt from its
JSON schema. It has the same fields, and the engine validates every input again.
"""

import sys
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, create_model

from toolkit.plugins import Call, Capability, Flow, InputBinding, Operation, Result
from toolkit.workers.serialization import find_function

_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
}
_LIMITS: Mapping[str, str] = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "pattern": "pattern",
}
# Attributes that a document copies unchanged from the capability.
_COPIED = (
    "id", "version", "title", "description", "operation_required", "default_provider", "produces",
    "alias_of", "status",
)  # fmt: skip


class _SchemaModel(BaseModel):
    """A model that is built from a JSON schema, which it returns unchanged."""

    document: ClassVar[dict[str, Any]] = {}

    @classmethod
    def model_json_schema(cls, *_args: Any, **_options: Any) -> dict[str, Any]:
        """Return the JSON schema that the model was built from, whatever the arguments."""
        return cls.document


def describe_capabilities(capabilities: Iterable[Capability]) -> list[dict[str, Any]]:
    """Describe capabilities as JSON values, for another process."""
    return [_describe_capability(capability) for capability in capabilities]


def rebuild_capabilities(documents: Iterable[Mapping[str, Any]]) -> list[Capability]:
    """Rebuild capabilities, without the functions that execute them."""
    return [_rebuild_capability(document) for document in documents]


def _describe_capability(capability: Capability) -> dict[str, Any]:
    return {
        **{name: getattr(capability, name) for name in _COPIED},
        "input": _describe_model(capability.input_model),
        "output": _describe_model(capability.output_model),
        "has_operation": capability.operation is not None,
        "accepts": {
            name: [list(binding.media), binding.mode]
            for name, binding in capability.accepts.items()
        },
        "keywords": list(capability.keywords),
    }


def _rebuild_capability(document: Mapping[str, Any]) -> Capability:
    return Capability(
        **{name: document[name] for name in _COPIED},
        input_model=_find_model(document["input"]),
        output_model=_find_model(document["output"]),
        flow=_refuse_call,
        operation=Operation if document["has_operation"] else None,
        accepts={
            name: InputBinding(tuple(media), mode)
            for name, (media, mode) in document["accepts"].items()
        },
        keywords=tuple(document["keywords"]),
    )


def _refuse_call(_call: Call[Any]) -> Flow[Result]:
    raise NotImplementedError("a rebuilt capability is only for planning and cannot run")
    yield


@cache
def _describe_model(model: type[BaseModel]) -> dict[str, Any]:
    """Describe a model by its module and name, or by its schema if it cannot be imported."""
    module, name = model.__module__, model.__qualname__
    spec = getattr(sys.modules.get(module), "__spec__", None)
    if module != "__main__" and spec is not None and spec.origin is not None:
        try:
            target: object = find_function(module, name)
        except (ImportError, AttributeError):  # such as a class that a function has made
            target = None
        if target is model:
            return {"module": module, "name": name}
    return {"schema": model.model_json_schema()}


def _find_model(document: Mapping[str, Any]) -> type[BaseModel]:
    if "schema" in document:
        return build_model(document["schema"])
    imported: Any = find_function(document["module"], document["name"])
    model: type[BaseModel] = imported
    return model


def build_model(schema: Mapping[str, Any]) -> type[BaseModel]:
    """Build a model with the fields of a JSON schema; nested objects are not validated.

    >>> model = build_model({"properties": {"size": {"type": "integer", "minimum": 1}}})
    >>> model.model_validate({"size": 2}).model_dump()
    {'size': 2}
    """
    required = set(schema.get("required", ()))
    fields: dict[str, Any] = {}
    for name, described in schema.get("properties", {}).items():
        kind, limits = _read_type(described)
        field = Field(
            ... if name in required else described.get("default"),
            description=described.get("description"),
            json_schema_extra={
                key: value for key, value in described.items() if key.startswith("x-")
            },
            **limits,
        )
        fields[name] = (kind, field)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a field may have the name of a method
        model = create_model(schema.get("title", "Input"), __base__=_SchemaModel, **fields)
    model.document = dict(schema)
    return model


def _read_type(described: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the Python type and the limits of a field in a JSON schema; `Any` if unclear."""
    if "enum" in described:
        return Literal[tuple(described["enum"])], {}
    ways = [way for way in described.get("anyOf", ()) if way.get("type") != "null"]
    if ways:
        kind, limits = _read_type(ways[0]) if len(ways) == 1 else (Any, {})
        return (kind | None if kind is not Any and "enum" not in ways[0] else Any), limits
    kind = _TYPES.get(str(described.get("type")), Any)
    if kind is Any:
        return Any, {}
    return kind, {_LIMITS[key]: value for key, value in described.items() if key in _LIMITS}
