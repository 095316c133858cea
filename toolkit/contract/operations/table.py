"""The table of operations: method, path, scope, body, answer, status and errors, each stated once.

The server routes by it and binds one handler to each operation (`toolkit/server/handlers.py`); the
OpenAPI document, the reference and the tests that go through all operations are made from it.
"""

from typing import Any

from toolkit.contract.operations import account, infrastructure, providers, work
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.contract.operations.entry import matches_path

# In the order in which documents have them.
OPERATIONS: tuple[ApiOperation[Any, Any], ...] = tuple(
    sorted(
        (
            value
            for module in (account, infrastructure, providers, work)
            for value in vars(module).values()
            if isinstance(value, ApiOperation)
        ),
        key=lambda operation: operation.resource.tag,
    )
)


def find_operation(method: str, path: str) -> ApiOperation[Any, Any] | None:
    """Find the operation that a request asks for; none for a path or method that is not there."""
    return next(
        (one for one in OPERATIONS if one.method == method and matches_path(one.path, path)), None
    )
