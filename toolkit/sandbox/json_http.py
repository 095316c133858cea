"""Helpers with which all simulated wires read and answer JSON requests."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

JsonObject = dict[str, Any]


class NotJsonError(ValueError):
    """The body is not a JSON object."""


def get_json_type(value: object) -> str:
    """Return the JSON name of a value's type; a boolean is no integer."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def has_json_type(value: object, kinds: str) -> bool:
    """Tell whether a value has one of the JSON types `kinds`, written `string|null`."""
    kind = get_json_type(value)
    allowed = kinds.split("|")
    return kind in allowed or (kind == "integer" and "number" in allowed)


def _refuse_constant(name: str) -> object:
    raise NotJsonError(name)


async def read_json_object(request: Request) -> JsonObject:
    """Read the body as a JSON object.

    Raises:
        NotJsonError: the body is something else.
    """
    try:
        body = json.loads(await request.body(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        raise NotJsonError(str(exc)) from exc
    if not isinstance(body, dict):
        raise NotJsonError("the body is not an object")
    return body


def get_bearer_key(request: Request) -> str | None:
    """Return the key of `Authorization: Bearer …`, or None."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None


def make_response(
    body: object, status: int = 200, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Make a JSON response."""
    return JSONResponse(body, status_code=status, headers=headers)
