"""Old names of the client's arguments, which are taken for one version more."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def rename_arguments(**renamed: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Have a function take arguments by their old names, too, and warn of each.

    Args:
        **renamed: the present names, by the old ones; where both are given, the present one counts.

    >>> @rename_arguments(timeout_s="timeout")
    ... def wait(timeout: float) -> float: return timeout
    >>> with warnings.catch_warnings(action="ignore"):
    ...     wait(timeout_s=5)
    5
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            for old, new in renamed.items():
                if old in kwargs:
                    warnings.warn(
                        f"The argument `{old}` is now called `{new}`; the next version does not"
                        " take its old name.",
                        DeprecationWarning,
                        stacklevel=2,
                    )
                    kwargs.setdefault(new, kwargs.pop(old))
            return function(*args, **kwargs)

        return call

    return decorate
