"""Faults of bodies and inputs in words: pydantic's errors, and the names most likely meant."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

from toolkit.contract.suggestions import explain_unknown, find_close_name, truncate_text

MAX_SUGGESTIONS = 4  # of one answer: a body may have any number of faults


def explain_fault(model: type[BaseModel], fault: Mapping[str, Any]) -> str:
    """Explain the fault at one place of the data for a model.

    The caller's data is not echoed, except for the name of an unknown field.

    Args:
        model: model that the data was for.
        fault: one of pydantic's errors.

    >>> from toolkit.contract.runs import RunCreate
    >>> explain_fault(RunCreate, {"type": "extra_forbidden", "loc": ("options", "providr")})[:64]
    'there is no field `providr`; did you mean `provider`? There are '
    """
    if fault["type"] == "extra_forbidden" and fault["loc"]:
        *above, name = fault["loc"]
        return explain_unknown("field", name, _list_fields(model, above))
    message = str(fault["msg"])
    if fault["type"] == "literal_error":
        close = find_close_name(fault.get("input"), _list_expected(fault))
        return message if close is None else f"{message}; did you mean `{close}`?"
    return message


def name_node(path: str, body: Mapping[str, object]) -> str:
    """Write the beginning of a message about a place in a node; "" for a place in no node.

    >>> name_node("nodes.0.input", {"nodes": [{"id": "facts"}]})
    'node `facts`: '
    """
    first, _, subpath = path.partition(".")
    number = subpath.partition(".")[0]
    nodes = body.get("nodes")
    if first != "nodes" or not number.isdigit() or not isinstance(nodes, list):
        return ""
    node = nodes[int(number)] if int(number) < len(nodes) else None
    node_id = node.get("id") if isinstance(node, Mapping) else None
    return f"node `{truncate_text(node_id, 100)}`: " if isinstance(node_id, str) and node_id else ""


def _list_expected(fault: Mapping[str, Any]) -> list[str]:
    """List the allowed words, which pydantic states as `'a', 'b' or 'c'`."""
    choices = str((fault.get("ctx") or {}).get("expected", ""))
    return [word for word in choices.split("'")[1::2] if word]


def _list_fields(model: type[BaseModel], path: list[object]) -> list[str]:
    """List the fields of the model at a path; empty if no model is there."""
    current: type[BaseModel] | None = model
    for part in path:
        if current is None:
            return []
        if isinstance(part, int):
            continue
        field = current.model_fields.get(str(part))
        current = None if field is None else next(_iter_models(field.annotation), None)
    return (
        []
        if current is None
        else [field.alias or name for name, field in current.model_fields.items()]
    )


def _iter_models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation names, however deep."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _iter_models(inner)
