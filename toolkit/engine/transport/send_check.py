"""The check of a request right before its first byte is sent; the request carries it."""

from collections.abc import Awaitable, Callable

SEND_CHECK = "toolkit.check"
"""The extension of a request that holds its check."""

SendCheck = Callable[[], Awaitable[None]]
"""Raises where the request must not be sent any more."""
