"""Bodies of requests: JSON from any caller is checked strictly before it is used."""

import json
import re
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from toolkit.contract.collector_pause import pause_collector
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.model_faults import name_node
from toolkit.engine.concurrency.pacing import Pacer
from toolkit.engine.engine import Engine
from toolkit.engine.execution.workflow_graph import check_node_count
from toolkit.server.faults import find_faults, list_faults
from toolkit.settings import Settings

MAX_DEPTH = 64
MAX_INTEGER = 2**63 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")
# A string without an end is matched up to the end of the text: searched again from each of its
# quotes, a body of quotes would take hours.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.|\\\Z)*+(?:"|\Z)|[][{},]', re.S)
LARGE_BODY_BYTES = 32 * 1024
MAX_DETAILS = 1_000
CHECK_BATCH = 1_000
M = TypeVar("M", bound=BaseModel)


async def parse_body(
    raw: bytes, model: type[M], engine: Engine, account_id: str | None = None
) -> M:
    """Parse strict JSON as a model, in slices if it is large.

    Args:
        raw: text of the body.
        model: model that it must fit.
        engine: the engine, whose settings limit the parts of a body.
        account_id: account that sent it, if known.

    Raises:
        RequestError: `INVALID_REQUEST` with the path of every fault, without an echo of the data;
            `INVALID_WORKFLOW` for more nodes than are allowed.
    """
    async with Pacer(account_id) as pacer:
        document = await check_json(raw, engine.settings, pacer)
        if len(raw) > LARGE_BODY_BYTES:
            await pacer.end_slice()
        nodes = document.get("nodes")
        if "nodes" in model.model_fields and isinstance(nodes, list):
            # Listing the faults of many thousands of nodes would block the loop for too long.
            check_node_count(len(nodes), engine.settings.max_nodes)
        try:
            with _pause_collector(raw):
                return model.model_validate_json(raw, strict=True)
        except ValidationError as error:
            refused = error
    # Spelled out, tens of thousands of faults would hold the loop for longer than all before.
    if refused.error_count() > MAX_DETAILS:
        names = (model.__module__, model.__qualname__)
        faults = await engine.run_in_worker(account_id or "", find_faults, *names, raw, MAX_DETAILS)
    else:
        faults = list_faults(model, refused, MAX_DETAILS)
    raise RequestError(
        ErrorCode.INVALID_REQUEST,
        "The body does not match its schema.",
        details=[Detail(path, name_node(path, document) + message) for path, message in faults],
    )


def _pause_collector(raw: bytes) -> AbstractContextManager[None]:
    """Pause the garbage collector while a large text is parsed."""
    return pause_collector() if len(raw) > LARGE_BODY_BYTES else nullcontext()


async def check_json(raw: bytes, settings: Settings, pacer: Pacer) -> dict[str, object]:
    """Parse an object, and reject JSON that parsers accept and other programs cannot handle.

    Raises:
        RequestError: `INVALID_REQUEST` for invalid UTF-8, deep nesting, duplicate members, numbers
            that are invalid or too large, NUL characters, lone surrogates, parts that are too
            large or too many, or no object at all.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        _refuse("it is not UTF-8")
    if _may_exceed_structure(text, settings):
        await _check_structure(text, settings.max_values, pacer)
    try:
        with _pause_collector(raw):
            value = _DECODER.decode(text)
    except ValueError:
        _refuse("it is not JSON")
    if not isinstance(value, dict):
        _refuse("it is not an object")
    await pacer.pause()
    if _may_hold_unfit_values(text, settings):
        await _check_values(value, settings, pacer)
    return value


def _may_exceed_structure(text: str, settings: Settings) -> bool:
    """Check whether a text is so long, or has so many brackets, that it needs a closer look."""
    return len(text) > settings.max_values or text.count("[") + text.count("{") > MAX_DEPTH


def _may_hold_unfit_values(text: str, settings: Settings) -> bool:
    """Check whether the values of a JSON text need a closer look.

    No value is longer than the text. Each member has a colon, each item but the first a comma.
    NUL and lone surrogates can only appear escaped.
    """
    return (
        len(text) > settings.max_text
        or text.count(":") > settings.max_members
        or text.count(",") >= settings.max_items
        or "\\u" in text
    )


async def _check_structure(text: str, max_values: int, pacer: Pacer) -> None:
    """Reject a text that nests too deep or holds too many values, before it is parsed."""
    depth = values = 0
    for n, token in enumerate(_TOKEN.finditer(text)):
        match text[token.start()]:
            case "[" | "{":
                depth += 1
                values += 1
                if depth > MAX_DEPTH:
                    _refuse(f"it is nested more than {MAX_DEPTH} levels deep")
            case "]" | "}":
                depth -= 1
            case ",":
                values += 1
        if values > max_values:
            _refuse(f"it has more than {max_values} values")
        if not n % CHECK_BATCH:
            await pacer.pause()
    await pacer.pause()


def _parse_float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        _refuse("a number is out of range")
    return value


def _parse_integer(digits: str) -> int:
    if len(digits) > 20 or abs(value := int(digits)) > MAX_INTEGER:
        _refuse("a number is out of range")
    return value


def _build_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        _refuse("a member is named twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    _refuse(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant,
    parse_float=_parse_float,
    parse_int=_parse_integer,
    object_pairs_hook=_build_members,
)


async def _check_values(value: object, settings: Settings, pacer: Pacer) -> None:
    """Reject parts that are too large, and strings that are no valid text."""
    stack, checked = [value], 0
    while stack:
        match stack.pop():
            case str() as text:
                if len(text) > settings.max_text:
                    _refuse(f"a text is longer than {settings.max_text} characters")
                if "\0" in text or _SURROGATE.search(text):
                    _refuse("a text holds a NUL character or half of a character")
            case dict() as members:
                if len(members) > settings.max_members:
                    _refuse(f"an object has more than {settings.max_members} members")
                stack += [*members.keys(), *members.values()]
            case list() as items:
                if len(items) > settings.max_items:
                    _refuse(f"a list has more than {settings.max_items} items")
                stack += items
        if not checked % CHECK_BATCH:
            await pacer.pause()
        checked += 1


def _refuse(why: str) -> NoReturn:
    raise RequestError(
        ErrorCode.INVALID_REQUEST, "The body cannot be read.", details=[Detail("", why)]
    )
