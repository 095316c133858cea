"""The schemas of the contract's models in the OpenAPI document."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema
from pydantic_core import core_schema

from toolkit.contract.base import Envelope, ErrorEnvelope, PageEnvelope
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.contract.operations.table import OPERATIONS


def _drop_nulls(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


class _SchemaGenerator(GenerateJsonSchema):
    """Generates pydantic's schemas without defaults of null, which an optional field implies."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        """Make the schema of a field with a default."""
        json_schema = super().default_schema(schema)
        if "default" in json_schema and json_schema["default"] is None:
            del json_schema["default"]
        return json_schema

    def encode_default(self, dft: Any) -> Any:
        """Encode a default as JSON; a model as a default omits its null members."""
        default = super().encode_default(dft)
        return _drop_nulls(default) if isinstance(default, dict) else default


def build_schemas() -> dict[str, Any]:
    """Build the schemas of all bodies and responses, by name."""
    models: dict[tuple[type[BaseModel], JsonSchemaMode], None] = {
        (ErrorEnvelope, "serialization"): None
    }
    for operation in OPERATIONS:
        if operation.body is not None:
            models[operation.body, "validation"] = None
        if operation.form != "bytes":
            models[get_envelope(operation), "serialization"] = None
    _, schemas = models_json_schema(
        list(models),
        ref_template="#/components/schemas/{model}",
        schema_generator=_SchemaGenerator,
    )
    return dict(schemas["$defs"])


def get_envelope(operation: ApiOperation[Any, Any]) -> type[BaseModel]:
    """Return the model of an operation's response: the envelope around the record or the page."""
    answer: Any = operation.answer  # made at run time, as pydantic allows and mypy does not
    return Envelope[answer] if operation.form == "record" else PageEnvelope[answer]


def make_schema_ref(model: type[BaseModel]) -> dict[str, str]:
    """Refer to the schema of a model, by the name that pydantic gives it."""
    name = "".join(c if c.isalnum() else "_" for c in model.__name__)
    return {"$ref": f"#/components/schemas/{name}"}
