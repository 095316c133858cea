"""Lists what is wrong with a body; in a worker process where that is very much."""

from typing import cast

from pydantic import BaseModel, ValidationError

from toolkit.workers.serialization import find_function


def list_faults(error: ValidationError, limit: int) -> list[tuple[str, str]]:
    """List the faults of a body as paths and messages, the first `limit` of them.

    What was sent is not echoed.
    """
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    listed = [(".".join(map(str, fault["loc"])), fault["msg"]) for fault in faults[:limit]]
    if len(faults) > limit:
        listed.append(("", f"{len(faults) - limit} more faults are not listed"))
    return listed


def find_faults(module: str, model: str, raw: bytes, limit: int) -> list[tuple[str, str]]:
    """Read a body again, and list its faults.

    Args:
        module: where the model is.
        model: its name there.
        raw: the body, as it came in.
        limit: of how many faults.
    """
    found = cast("type[BaseModel]", find_function(module, model))
    try:
        found.model_validate_json(raw, strict=True)
    except ValidationError as error:
        return list_faults(error, limit)
    return []
