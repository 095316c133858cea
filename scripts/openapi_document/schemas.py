"""The schemas of the contract's models, as the OpenAPI document has them."""

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
    """pydantic's schemas without defaults of null: a field that may be left out need not say so."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        """Make the schema of a field with a default."""
        made = super().default_schema(schema)
        if "default" in made and made["default"] is None:
            del made["default"]
        return made

    def encode_default(self, dft: Any) -> Any:
        """Write a default as JSON, which is another model's where it is an object."""
        made = super().encode_default(dft)
        return _drop_nulls(made) if isinstance(made, dict) else made


def build_schemas() -> dict[str, Any]:
    """Build the schemas of all bodies and answers, by their names."""
    wanted: dict[tuple[type[BaseModel], JsonSchemaMode], None] = {
        (ErrorEnvelope, "serialization"): None
    }
    for operation in OPERATIONS:
        if operation.body is not None:
            wanted[operation.body, "validation"] = None
        if operation.form != "bytes":
            wanted[get_envelope(operation), "serialization"] = None
    _, schemas = models_json_schema(
        list(wanted),
        ref_template="#/components/schemas/{model}",
        schema_generator=_SchemaGenerator,
    )
    return dict(schemas["$defs"])


def get_envelope(operation: ApiOperation[Any, Any]) -> type[BaseModel]:
    """Return the model of an operation's answer, with what is around the record or the page."""
    answer: Any = operation.answer  # made at run time, as pydantic allows and mypy does not
    return Envelope[answer] if operation.form == "record" else PageEnvelope[answer]


def make_schema_ref(model: type[BaseModel]) -> dict[str, str]:
    """Refer to the schema of a model, by the name that pydantic gives it."""
    name = "".join(c if c.isalnum() else "_" for c in model.__name__)
    return {"$ref": f"#/components/schemas/{name}"}
