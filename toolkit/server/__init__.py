"""The `/v1` contract over an engine: HTTP in, HTTP out, no decisions."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.server.app import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> object:
    if name != "create_app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from toolkit.server.app import create_app  # which a client in the same process never needs

    return create_app
