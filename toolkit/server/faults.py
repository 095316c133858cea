"""Lists the faults of a body; in a worker process if there are very many."""

from typing import cast

from pydantic import BaseModel, ValidationError

from toolkit.contract.model_faults import MAX_SUGGESTIONS, explain_fault
from toolkit.workers.serialization import find_function


def list_faults(
    model: type[BaseModel], error: ValidationError, limit: int
) -> list[tuple[str, str]]:
    """List the first `limit` faults of a body as paths and messages, and the number of all others.

    The data is not echoed, except for the names of unknown fields.
    """
    # The data is only included for few faults, because pydantic copies it for each fault.
    has_values = error.error_count() <= MAX_SUGGESTIONS
    faults = error.errors(include_input=has_values, include_url=False, include_context=has_values)
    messages = [
        (
            ".".join(map(str, fault["loc"])),
            explain_fault(model, fault) if n < MAX_SUGGESTIONS else fault["msg"],
        )
        for n, fault in enumerate(faults[:limit])
    ]
    if len(faults) > limit:
        messages.append(("", f"{len(faults) - limit} more faults are not listed"))
    return messages


def find_faults(module: str, model: str, raw: bytes, limit: int) -> list[tuple[str, str]]:
    """Read a body again, and list its faults.

    Args:
        module: module of the model.
        model: name of the model in it.
        raw: body, as received.
        limit: maximum number of listed faults.
    """
    model_class = cast("type[BaseModel]", find_function(module, model))
    try:
        model_class.model_validate_json(raw, strict=True)
    except ValidationError as error:
        return list_faults(model_class, error, limit)
    return []
