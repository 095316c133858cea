"""What a person gives to work on, in a shell or a notebook: fields on a line, and documents."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolkit.contract.errors import ErrorCode, RequestError


def parsed(fields: Sequence[str], path: Path | None = None) -> dict[str, Any]:
    """A capability's input: what stands in a file, and over it the fields of the line.

    `name=value` is text, `name:=value` is JSON.

    >>> parsed(["topic=Tea", "width:=600"])
    {'topic': 'Tea', 'width': 600}

    Raises:
        RequestError: `INVALID_REQUEST` for what is no field or no object.
    """
    given = {} if path is None else document(path)
    for field in fields:
        name, equals, value = field.partition("=")
        if not equals:
            raise _refused(f"`{field}` is not name=value.")
        if not name.endswith(":"):
            given[name] = value
            continue
        try:
            given[name[:-1]] = json.loads(value)
        except ValueError:
            raise _refused(f"The value of `{name[:-1]}` is not JSON.") from None
    return given


def document(path: Path) -> dict[str, Any]:
    """The object in a JSON or YAML file; `-` is stdin.

    Raises:
        RequestError: `INVALID_REQUEST` for a file that cannot be read or holds no object.
    """
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(f"{path} cannot be read: {error}.") from None
    return document_of(text, str(path))


def document_of(text: str, where: str) -> dict[str, Any]:
    """The object that a text in JSON or YAML holds.

    >>> document_of("name: card\\nnodes: []", "the cell")
    {'name': 'card', 'nodes': []}

    Raises:
        RequestError: `INVALID_REQUEST` for a text that holds none; `where` is named in it.
    """
    import yaml

    try:
        # YAML has nearly all of JSON, but reads an escaped character of two halves as the halves.
        found = json.loads(text)
    except ValueError:
        try:
            found = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise _refused(
                f"{where} is neither JSON nor YAML: {' '.join(str(error).split())}."
            ) from None
    if not isinstance(found, dict):
        raise _refused(f"{where} holds no object.")
    return found


def _refused(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, message)
