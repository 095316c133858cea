"""Output models: pydantic models that an answer must match."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from toolkit.contract.errors import ErrorCode, RequestError, WorkError

if TYPE_CHECKING:
    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")
MAX_SHOWN_FAULTS = 5
# Keywords that assert nothing, and which no vendor's strict mode takes.
_UNSENT_KEYWORDS = frozenset({"$defs", "default", "discriminator", "examples", "title"})
# Members whose keys are the caller's own names, and not keywords.
_NAMED_KEYWORDS = frozenset({"dependentSchemas", "properties"})
# Members whose values are data, and not schemas.
_DATA_KEYWORDS = frozenset({"const", "enum", "required", "type"})


def make_output_schema(model: "type[BaseModel]") -> dict[str, object]:
    """Make the JSON schema of an output model, in the form that strict modes accept.

    References are inlined, objects are closed, and all fields are required.

    Raises:
        RequestError: `INVALID_REQUEST` for a recursive model, which has no schema.
        TypeError: the argument is no pydantic model.

    >>> from pydantic import BaseModel
    >>> class Label(BaseModel):
    ...     label: str
    >>> make_output_schema(Label)["required"]
    ['label']
    """
    from pydantic import BaseModel

    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise TypeError(f"output_model is a pydantic model, a class, not {model!r}")
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})

    def expand(part: Any, trail: tuple[str, ...]) -> Any:
        if isinstance(part, list):
            return [expand(child, trail) for child in part]
        if not isinstance(part, dict):
            return part
        reference = part.get("$ref")
        if reference is not None:
            if reference in trail:
                raise _make_recursion_error(model)
            siblings = {name: value for name, value in part.items() if name != "$ref"}
            target = definitions[reference.rpartition("/")[2]]
            return expand({**target, **siblings}, (*trail, reference))
        plain: dict[str, Any] = {}
        for name, value in part.items():
            if name in _NAMED_KEYWORDS:
                plain[name] = {key: expand(child, trail) for key, child in value.items()}
            elif name in _DATA_KEYWORDS:
                plain[name] = value
            elif name == "oneOf":  # of a discriminated union, which strict modes know as a choice
                plain["anyOf"] = expand(value, trail)
            elif name not in _UNSENT_KEYWORDS:
                plain[name] = expand(value, trail)
        if "pattern" in part:  # in words, too, because some vendors drop the keyword
            words = f"It matches the regular expression {part['pattern']}"
            plain["description"] = " ".join([*filter(None, [part.get("description")]), words])
        if plain.get("properties"):
            plain["required"] = list(plain["properties"])
            plain.setdefault("additionalProperties", False)
        return plain

    return cast("dict[str, object]", expand(schema, ()))


def add_output_schema(
    fields: Mapping[str, object], model: "type[BaseModel] | None"
) -> Mapping[str, object]:
    """Add the schema of a model to an input, if there is a model.

    Raises:
        RequestError: `INVALID_REQUEST` for an input that has a schema of its own.
    """
    if model is None:
        return fields
    if fields.get("output_schema") is not None:
        message = "Give output_model or output_schema, not both: a model has its own schema."
        raise RequestError(ErrorCode.INVALID_REQUEST, message)
    return {**fields, "output_schema": make_output_schema(model)}


def parse_output(model: type[M], output: object, subject: str) -> M:
    """Make an instance of a model from the output of a capability.

    Args:
        output: the output; its `json`, if there is any, is the answer.
        subject: id of the work, for the error.

    Raises:
        WorkError: `INVALID_OUTPUT` for an answer that does not fit the model.

    >>> from pydantic import BaseModel
    >>> class Label(BaseModel):
    ...     label: str
    >>> parse_output(Label, {"text": "{}", "json": {"label": "tea"}}, "run_1")
    Label(label='tea')
    """
    from pydantic import ValidationError

    answer = output
    if isinstance(output, Mapping) and "json" in output:
        answer = output["json"]
    try:
        return model.model_validate_json(json.dumps(answer))
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, detail['loc'])) or 'the answer'}: {detail['msg']}"
            for detail in error.errors(include_url=False, include_context=False)
        ]
    excess = len(faults) - MAX_SHOWN_FAULTS
    lines = [*faults[:MAX_SHOWN_FAULTS], *([f"and {excess} more"] if excess > 0 else [])]
    raise WorkError(
        ErrorCode.INVALID_OUTPUT,
        f"The answer of {subject} does not fit {model.__name__}: {'; '.join(lines)}.",
    )


def _make_recursion_error(model: "type[BaseModel]") -> RequestError:
    return RequestError(
        ErrorCode.INVALID_REQUEST,
        f"{model.__name__} refers to itself, but the schema of an answer cannot be"
        " recursive: define a separate model for each level.",
    )
