"""Helpers with which all simulated wires read requests, forms too, and refuse them."""

import io
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, TypeAlias, TypeVar

from multipart import MultipartError, MultipartParser, parse_options_header
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

JsonObject = dict[str, Any]
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
# The parts of an error's location that name a type of a union instead of a member.
_TYPE_NAME = re.compile(r"str|int|float|[A-Z_]+|\w+\[.*\]", re.DOTALL)


class NotJsonError(ValueError):
    """The body is not a JSON object."""


class RefusalError(Exception):
    """A request that a vendor refuses.

    Args:
        body: the error, in the vendor's format: JSON, or plain text.
    """

    def __init__(
        self, body: JsonObject | str, status: int, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(body)
        self.body = body
        self.status = status
        self.headers = headers

    def build_response(self, _request: Request) -> Response:
        """Build the response to the refused request."""
        if isinstance(self.body, str):
            return PlainTextResponse(self.body, self.status, self.headers)
        return JSONResponse(self.body, self.status, self.headers)


class RequestBody(BaseModel):
    """A JSON object whose members have exact types; other members are refused."""

    model_config = ConfigDict(strict=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class BodyFault:
    """A fault in a body.

    Attributes:
        kind: `missing`, `extra_forbidden` or another error type of pydantic.
    """

    path: tuple[str | int, ...]
    kind: str
    message: str
    value: object

    @property
    def is_type(self) -> bool:
        """True if the value is of a wrong type."""
        return self.kind.endswith("_type")

    @property
    def name(self) -> str:
        """The path, joined with dots."""
        return ".".join(map(str, self.path))

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"


B = TypeVar("B", bound=RequestBody)
# Builds a vendor's refusal of a body with these faults; an empty list means no JSON object.
RefuseBody: TypeAlias = Callable[[list[BodyFault]], RefusalError]


async def read_body(request: Request, model: type[B], refuse: RefuseBody) -> B:
    """Read the body of a request as the model of its endpoint.

    Raises:
        RefusalError: the body does not match the model.
    """
    try:
        return parse_body(await read_json_object(request), model, refuse)
    except NotJsonError:
        raise refuse([]) from None


def parse_body(body: JsonObject, model: type[B], refuse: RefuseBody) -> B:
    """Parse a body as the model of its endpoint.

    Raises:
        RefusalError: the body does not match the model.
    """
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise refuse(list_faults(error)) from None


def list_faults(error: ValidationError) -> list[BodyFault]:
    """List the faults in the order in which vendors report them: unknown, missing, wrong type."""
    faults = []
    for row in error.errors(include_url=False):
        path = tuple(part for part in row["loc"] if not _TYPE_NAME.fullmatch(str(part)))
        is_null = row["input"] is None and row["type"].endswith("_type")
        kind, message = ("missing", "Field required") if is_null else (row["type"], row["msg"])
        faults.append(BodyFault(path, kind, message, row["input"]))
    ranks = {"extra_forbidden": 0, "missing": 1}
    return sorted(faults, key=lambda fault: ranks.get(fault.kind, 2 if fault.is_type else 3))


def refuse_first_fault(
    refuse: Callable[[str], RefusalError], not_json: str, lead: str = ""
) -> RefuseBody:
    """Make the builder of refusals that describe the first fault of a body.

    Args:
        not_json: message for a body that is no JSON object.
        lead: beginning of other messages.
    """
    return lambda faults: refuse(f"{lead}{faults[0]}" if faults else not_json)


async def read_json_object(request: Request) -> JsonObject:
    """Read the body as a JSON object.

    Raises:
        NotJsonError: the body is not a JSON object.
    """
    try:
        body = json.loads(await request.body(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        raise NotJsonError(str(exc)) from exc
    if not isinstance(body, dict):
        raise NotJsonError("the body is not an object")
    return body


def _refuse_constant(name: str) -> object:
    raise NotJsonError(name)


def get_bearer_key(request: Request) -> str | None:
    """Return the key of `Authorization: Bearer …`, or None."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None


def build_checked_routes(
    check: Callable[[Request], object], table: Iterable[tuple[str, str, Handler]]
) -> list[BaseRoute]:
    """Build routes whose requests are checked before they are handled.

    Args:
        check: function that raises a refusal, such as that of a wrong key; it may be asynchronous.
        table: methods, separated by spaces, path and handler of each route.
    """

    def add_check(handler: Handler) -> Handler:
        async def endpoint(request: Request) -> Response:
            outcome = check(request)
            if isawaitable(outcome):
                await outcome
            return await handler(request)

        return endpoint

    return [
        Route(path, add_check(handler), methods=methods.split()) for methods, path, handler in table
    ]


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file of a form."""

    filename: str
    data: bytes


@dataclass(frozen=True, slots=True)
class MultipartForm:
    """The fields and files of a form by name; a field that is sent twice counts once."""

    fields: dict[str, str] = field(default_factory=dict)
    files: dict[str, list[UploadedFile]] = field(default_factory=dict)


async def read_form(request: Request, refuse: Callable[[], RefusalError]) -> MultipartForm:
    """Read the body as a form; a body of another type is an empty form.

    Raises:
        RefusalError: made by `refuse` for a body that is no form, though its type says so.
    """
    form = MultipartForm()
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != "multipart/form-data":
        return form
    try:
        parts = MultipartParser(io.BytesIO(await request.body()), options.get("boundary", ""))
        for part in parts:
            if part.filename is None:
                form.fields.setdefault(part.name, part.value)
            else:
                files = form.files.setdefault(part.name, [])
                files.append(UploadedFile(part.filename, part.raw))
            part.close()
    except MultipartError:
        raise refuse() from None
    return form
