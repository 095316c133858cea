"""`client.functions`: the functions of this process that its workflows may call."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.functions import FunctionTable, RegisteredFunction

F = TypeVar("F", bound=Callable[..., object])


class Functions:
    """`client.functions`: the functions that were submitted as nodes, or registered by name.

    Args:
        table: functions of a client's own engine. None for a client of a server.
        address: address of the client's service.
    """

    def __init__(self, table: FunctionTable | None, address: str) -> None:
        self._table = table
        self._address = address

    def register(self, function: F, *, name: str | None = None) -> F:
        """Register a function under its name from now on; also usable as a decorator.

        A workflow that waits for this function, because its process ended before, goes on within a
        second. Retried work calls this function in place of the earlier function of the name.

        Args:
            function: the function.
            name: name under which it was submitted. Default: its own name.

        Returns:
            the function itself.

        Raises:
            RequestError: `FUNCTION_UNAVAILABLE` for a client of a server.
        """
        self._require_table().register(RegisteredFunction.of(function, name))
        return function

    def _add_submitted(self, submitted: dict[str, RegisteredFunction]) -> None:
        """Add the functions that a workflow is about to be submitted with, by node.

        Raises:
            RequestError: `FUNCTION_UNAVAILABLE` for a client of a server.
        """
        table = self._require_table()
        for node_id, function in submitted.items():
            submitted[node_id] = table.add(function)

    def _require_table(self) -> FunctionTable:
        if self._table is None:
            raise RequestError(
                ErrorCode.FUNCTION_UNAVAILABLE,
                "Functions run only in their own process, but this client uses"
                f" {self._address}: submit the workflow to Client.local(), or make"
                " the function a capability (docs/plugins.md).",
            )
        return self._table

    def __contains__(self, name: object) -> bool:
        return name in self._list_names()

    def __len__(self) -> int:
        return len(self._list_names())

    def __iter__(self) -> Iterator[RegisteredFunction]:
        """Yield every registered function, with its name."""
        return iter(self._table or ())

    def _list_names(self) -> list[str]:
        return list(dict.fromkeys(function.name for function in self))

    def __repr__(self) -> str:
        names = ", ".join(self._list_names())
        return f"<Functions of this process: {names or 'none yet'}>"
