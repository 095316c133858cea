"""Hooks of schemathesis, for facts about the API that no OpenAPI document can state."""

from typing import Any

import schemathesis
from hypothesis import strategies

from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.operations.queries import MAX_POLL_S, make_cursor
from toolkit.contract.operations.table import OPERATIONS

LARGEST = 2**63 - 1
# A cursor is opaque: only a list gives cursors, and each cursor is of one list.
ANY_CURSOR = make_cursor(new_id(Prefix.RUN))
ID_PREFIXES = {operation.path: operation.resource.prefix for operation in OPERATIONS}
schemathesis.openapi.format("cursor", strategies.just(ANY_CURSOR))


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Hold no answer, and give each list cursors with its own prefix."""
    query = case.query or {}
    if str(query.get("wait", "")).isdigit() and int(query["wait"]) <= MAX_POLL_S:
        query["wait"] = 0
    if query.get("cursor") == ANY_CURSOR:
        query["cursor"] = make_cursor(new_id(ID_PREFIXES[case.operation.path]))


@schemathesis.hook
def filter_body(context: Any, body: Any) -> bool:
    """Leave out numbers that are integers in JSON Schema, but not in strict JSON."""
    return not _has_odd_number(body)


def _has_odd_number(value: Any) -> bool:
    match value:
        case float():
            return value.is_integer()
        case int():
            return abs(value) > LARGEST
        case dict():
            return any(_has_odd_number(member) for member in value.values())
        case list():
            return any(_has_odd_number(item) for item in value)
    return False
