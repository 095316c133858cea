"""The way to an engine in the same process, as the client sees it."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from toolkit.contract.events import Event, TextDelta
    from toolkit.contract.operations.messages import OperationAnswer, OperationRequest


class AsyncOperationChannel(Protocol):
    """A way to the operations of an engine in this process, without HTTP."""

    async def call(self, request: "OperationRequest") -> "OperationAnswer":
        """Have an operation carried out.

        Raises:
            ToolkitError: as over HTTP.
        """
        ...

    def stream(
        self, request: "OperationRequest", deadline: float | None
    ) -> "AsyncIterator[Event | TextDelta]":
        """Yield the events and texts of a resource as they come, until a deadline.

        Raises:
            ToolkitError: as over HTTP.
        """
        ...
