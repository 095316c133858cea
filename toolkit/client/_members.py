"""Members of a record as attributes of its view."""

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class Member(property, Generic[T]):
    """A property that returns the member of the same name of `record`.

    `Member[T]` states the type of the member for type checkers.

    Args:
        doc: description of the member.
    """

    def __init__(self, doc: str) -> None:
        super().__init__(self._read)
        self.__doc__ = doc  # before Python 3.12, a subclass of property shows its own instead

    def __set_name__(self, owner: type, name: str) -> None:
        """Store the name of the attribute."""
        self._name = name

    def _read(self, view: Any) -> Any:
        return getattr(view.record, self._name)

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type, /) -> Self: ...

        @overload
        def __get__(self, instance: Any, owner: type | None = None, /) -> T: ...

        def __get__(self, instance: Any, owner: type | None = None, /) -> Self | T: ...


class TextMember(Member[str]):
    """A text of `record`; empty if the record has none."""

    def _read(self, view: Any) -> Any:
        return super()._read(view) or ""
