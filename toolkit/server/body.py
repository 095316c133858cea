"""Bodies as they come in: bounded before they are read, strict before they are believed."""

import json
import re
from typing import NoReturn, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from toolkit.contract.errors import Detail, ErrorCode, RequestError

MAX_DEPTH = 64
MAX_INTEGER = 2**63 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")
M = TypeVar("M", bound=BaseModel)


async def read_bytes(request: Request, limit: int) -> bytes:
    """The body, refused before it is read whole when it is larger than `limit` bytes.

    Raises:
        RequestError: `PAYLOAD_TOO_LARGE`.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
        chunks.append(chunk)
    return b"".join(chunks)


async def read_model(request: Request, model: type[M]) -> M:
    """The body as a model of the contract.

    Raises:
        RequestError: `UNSUPPORTED_MEDIA_TYPE`, `PAYLOAD_TOO_LARGE`, or `INVALID_REQUEST` with the
            path of every fault; what was sent is not echoed.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Send application/json.")
    raw = await read_bytes(request, request.app.state.engine.settings.body_limit_bytes)
    return parse(raw, model)


def parse(raw: bytes, model: type[M]) -> M:
    """Strict JSON as a model.

    Raises:
        RequestError: `INVALID_REQUEST`.
    """
    check_json(raw)
    try:
        return model.model_validate_json(raw, strict=True)
    except ValidationError as error:
        details = [
            Detail(".".join(map(str, fault["loc"])), fault["msg"])
            for fault in error.errors(include_input=False, include_url=False, include_context=False)
        ]
    raise RequestError(
        ErrorCode.INVALID_REQUEST, "The body does not have the form it must have.", details=details
    )


def check_json(raw: bytes) -> None:
    """Refuse what JSON parsers let through and stores or encoders then choke on.

    Raises:
        RequestError: `INVALID_REQUEST` for invalid UTF-8, deep nesting, duplicate members, numbers
            that are none or too large, NUL characters, lone surrogates, or no object at all.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        _refuse("it is not UTF-8")
    if _depth(text) > MAX_DEPTH:
        _refuse(f"it is nested more than {MAX_DEPTH} deep")
    try:
        value = json.loads(
            text,
            parse_constant=lambda name: _refuse(f"{name} is no JSON number"),
            parse_float=_float,
            parse_int=_integer,
            object_pairs_hook=_members,
        )
    except ValueError:
        _refuse("it is not JSON")
    if not isinstance(value, dict):
        _refuse("it is not an object")
    _check_text(value)


def _depth(text: str) -> int:
    """How deep brackets nest, strings aside, without recursion."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    depth = deepest = 0
    for bracket in re.findall(r"[\[\]{}]", bare):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        _refuse("a number is out of range")
    return value


def _integer(digits: str) -> int:
    if len(digits) > 20 or abs(value := int(digits)) > MAX_INTEGER:
        _refuse("a number is out of range")
    return value


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        _refuse("a member is named twice")
    return members


def _check_text(value: object) -> None:
    match value:
        case str():
            if "\0" in value or _SURROGATE.search(value):
                _refuse("a text holds a NUL character or half of a character")
        case dict():
            for name, member in value.items():
                _check_text(name)
                _check_text(member)
        case list():
            for item in value:
                _check_text(item)


def _refuse(why: str) -> NoReturn:
    raise RequestError(
        ErrorCode.INVALID_REQUEST, "The body cannot be read.", details=[Detail("", why)]
    )
