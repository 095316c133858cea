"""Areas of a client, each imported on first use, because most programs need few areas."""

from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


class Area(cached_property[T]):
    """An area, whose module in `resources` has the name of the attribute.

    Args:
        kind: name of its class.
        doc: description of the area.
    """

    def __init__(self, kind: str, doc: str) -> None:
        super().__init__(self._open)
        self._kind = kind
        self.__doc__ = doc

    def __set_name__(self, owner: type[Any], name: str) -> None:
        """Store the name of the attribute."""
        super().__set_name__(owner, name)
        self._module = f"{owner.__module__.rpartition('.')[0]}.resources.{name}"

    def _open(self, client: Any) -> T:
        module = import_module(self._module)  # nosemgrep: rules.no-import-of-data
        area: T = getattr(module, self._kind)(client._http)
        return area
