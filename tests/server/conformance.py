"""What schemathesis is told of the wire that an OpenAPI document cannot say (loaded as its hooks)."""

import base64
from typing import Any

import schemathesis
from hypothesis import strategies

from toolkit.contract.ids import Prefix, new_id

LONGEST_WAIT_S = 1
LARGEST = 2**63 - 1


def _cursor(prefix: Prefix) -> str:
    return base64.urlsafe_b64encode(new_id(prefix).encode()).decode()


# A cursor is opaque: only one that a list gave is one.
schemathesis.openapi.format("cursor", strategies.just(_cursor(Prefix.RUN)))


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Hold no answer for long, and give each list cursors of its own kind."""
    query = case.query or {}
    if str(query.get("wait", "")).isdigit() and LONGEST_WAIT_S < int(query["wait"]) <= 30:
        query["wait"] = LONGEST_WAIT_S


@schemathesis.hook
def filter_body(context: Any, body: Any) -> bool:
    """Leave out numbers that JSON Schema calls integers and strict JSON does not."""
    return not _odd(body)


def _odd(value: Any) -> bool:
    match value:
        case float():
            return value.is_integer()
        case int():
            return abs(value) > LARGEST
        case dict():
            return any(_odd(member) for member in value.values())
        case list():
            return any(_odd(item) for item in value)
    return False
