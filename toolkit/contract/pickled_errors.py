"""Exceptions that survive pickle, as process pools, joblib and Dask send them to their callers."""

from typing import Any


class PicklableError(BaseException):
    """A mixin for exceptions whose constructor takes more than the `args` of the exception.

    By default pickle calls the class with `args`, which fails for such a constructor, or loses its
    arguments. A pool whose worker sent the exception then hangs, or reports another exception.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_error, (type(self), self.args, self._list_members())

    def _list_members(self) -> dict[str, Any]:
        """Return the attributes by name, notes included; tracebacks and causes do not travel."""
        return dict(vars(self))


def _rebuild_error(
    kind: type[PicklableError], args: tuple[Any, ...], members: dict[str, Any]
) -> PicklableError:
    error = kind.__new__(kind)
    error.args = args
    for name, value in members.items():
        setattr(error, name, value)
    return error
