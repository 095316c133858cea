"""The table of operations: method, path, scope, body, answer, status and errors, each stated once.

The server routes by it and binds one handler to each operation (`toolkit/server/handlers.py`); the
OpenAPI document, the reference and the tests that go through all operations are made from it.
"""

from typing import Any

from toolkit.contract.operations import account, infrastructure, providers, work
from toolkit.contract.operations.definitions import ApiOperation

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
