"""`client.functions`: the functions of this process that its workflows may call."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.functions import FunctionTable, RegisteredFunction

F = TypeVar("F", bound=Callable[..., object])


class Functions:
    """`client.functions`: what was submitted as a node, or registered by its name.

    Args:
        table: the functions of a client's own engine; none for a client of a server.
        address: what the client asks.
    """

    def __init__(self, table: FunctionTable | None, address: str) -> None:
        self._table = table
        self._address = address

    def register(self, function: F, *, name: str | None = None) -> F:
        """Have a function stand for its name from now on; also as a decorator.

        A workflow that waits for it, as its process ended before, goes on within a second; and
        what is retried takes it, in place of what its name stood for.

        Args:
            function: the function.
            name: the name that it was submitted under; its own by default.

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
        for node_id, one in submitted.items():
            submitted[node_id] = table.add(one)

    def _require_table(self) -> FunctionTable:
        if self._table is None:
            raise RequestError(
                ErrorCode.FUNCTION_UNAVAILABLE,
                f"Functions stay in the process that made them, and this client asks"
                f" {self._address}: submit the workflow to Client.local(), or make the function a"
                " capability (docs/plugins.md).",
            )
        return self._table

    def __contains__(self, name: object) -> bool:
        return name in self._list_names()

    def __len__(self) -> int:
        return len(self._list_names())

    def __iter__(self) -> Iterator[RegisteredFunction]:
        """Yield every function that is there, with its name."""
        return iter(self._table or ())

    def _list_names(self) -> list[str]:
        return list(dict.fromkeys(one.name for one in self))

    def __repr__(self) -> str:
        names = ", ".join(self._list_names())
        return f"<Functions of this process: {names or 'none yet'}>"
