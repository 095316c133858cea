"""The `/v1` contract over an engine: HTTP in, HTTP out, no decisions."""

from toolkit.server.app import create_app

__all__ = ["create_app"]
