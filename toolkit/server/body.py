"""Bodies as they come in: bounded before they are read, strict before they are believed."""

import json
import re
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.settings import Settings

MAX_DEPTH = 64
MAX_INTEGER = 2**63 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")
# A string that does not end is one up to the end: sought anew from each of its quotes, a body of
# nothing else would take hours.
_STRING = re.compile(r'"(?:[^"\\]++|\\.|\\\Z)*+(?:"|\Z)', re.S)
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the parts of a body may be.

    Attributes:
        text: characters of a text.
        items: items of a list.
        members: members of an object.
    """

    text: int
    items: int
    members: int

    @classmethod
    def of(cls, settings: Settings) -> "Sizes":
        """What the operator allows."""
        return cls(settings.max_text, settings.max_items, settings.max_members)


async def read_bytes(request: Request, limit: int) -> bytes:
    """The body, refused before it is read whole when it is larger than `limit` bytes.

    Raises:
        RequestError: `PAYLOAD_TOO_LARGE`.
    """
    declared = request.headers.get("content-length", "")
    # Its digits are not read where there are too many: they say enough by that.
    if re.fullmatch(r"\d+", declared, re.A) and (len(declared) > 18 or int(declared) > limit):
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
    settings: Settings = request.app.state.engine.settings
    raw = await read_bytes(request, settings.body_limit_bytes)
    return parse(raw, model, Sizes.of(settings))


def parse(raw: bytes, model: type[M], sizes: Sizes) -> M:
    """Strict JSON as a model.

    Raises:
        RequestError: `INVALID_REQUEST`.
    """
    check_json(raw, sizes)
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


def check_json(raw: bytes, sizes: Sizes) -> dict[str, object]:
    """The object that a text is, but for what JSON parsers let through and others choke on.

    Raises:
        RequestError: `INVALID_REQUEST` for invalid UTF-8, deep nesting, duplicate members, numbers
            that are none or too large, NUL characters, lone surrogates, parts that are larger than
            they may be, or no object at all.
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
    _check(value, sizes)
    return value


def _depth(text: str) -> int:
    """How deep brackets nest, strings aside, without recursion."""
    depth = deepest = 0
    for bracket in re.findall(r"[\[\]{}]", _STRING.sub("", text)):
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


def _check(value: object, sizes: Sizes) -> None:
    match value:
        case str():
            if len(value) > sizes.text:
                _refuse(f"a text is longer than {sizes.text} characters")
            if "\0" in value or _SURROGATE.search(value):
                _refuse("a text holds a NUL character or half of a character")
        case dict():
            if len(value) > sizes.members:
                _refuse(f"an object has more than {sizes.members} members")
            for name, member in value.items():
                _check(name, sizes)
                _check(member, sizes)
        case list():
            if len(value) > sizes.items:
                _refuse(f"a list has more than {sizes.items} items")
            for item in value:
                _check(item, sizes)


def _refuse(why: str) -> NoReturn:
    raise RequestError(
        ErrorCode.INVALID_REQUEST, "The body cannot be read.", details=[Detail("", why)]
    )
