"""The result type of calls whose code both clients share: the async client awaits it."""

from collections.abc import Coroutine
from typing import Annotated, Any, TypeAlias, TypeVar

T = TypeVar("T")
AsyncReply: TypeAlias = Coroutine[Any, Any, T]
Reply: TypeAlias = Annotated[T, "at once"]
