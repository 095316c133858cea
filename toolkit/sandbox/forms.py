"""Multipart forms, as the wires that take recordings read them."""

import io
from dataclasses import dataclass, field

from multipart import MultipartError, MultipartParser, parse_options_header
from starlette.requests import Request


class NotFormError(ValueError):
    """The body is no multipart form, though its type says so."""


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


async def read_form(request: Request) -> MultipartForm:
    """Read the body as a form; a body of another type is an empty form.

    Raises:
        NotFormError: the body is no form, though its type says so.
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
    except MultipartError as error:
        raise NotFormError(str(error)) from error
    return form
