"""Input parsing for shell and notebook: fields on a line, and JSON or YAML documents."""

import json
import sys
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from toolkit.contract.errors import Detail, ErrorCode, RequestError


def parse_fields(fields: Sequence[str], path: Path | None = None) -> dict[str, Any]:
    """Parse a capability's input from a file and, overriding it, the fields of a line.

    `name=value` is text, `name:=value` is JSON.

    >>> parse_fields(["topic=Tea", "width:=600"])
    {'topic': 'Tea', 'width': 600}

    Raises:
        RequestError: `INVALID_REQUEST` for a text that is no field, or a file that holds no object.
    """
    inputs = {} if path is None else load_document(path)
    for field in fields:
        name, equals, value = field.partition("=")
        if not equals:
            raise _make_input_error(f"`{field}` is not name=value.")
        if not name.endswith(":"):
            inputs[name] = value
            continue
        try:
            inputs[name[:-1]] = json.loads(value)
        except ValueError:
            raise _make_input_error(f"The value of `{name[:-1]}` is not JSON.") from None
    return inputs


def load_document(path: Path) -> dict[str, Any]:
    """Load the object in a JSON or YAML file; `-` is stdin.

    Raises:
        RequestError: `NOT_FOUND`; `INVALID_REQUEST` for a file that cannot be read or holds no
            object.
    """
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise make_file_error(str(path), error) from None
    return parse_document(text, str(path))


def make_file_error(name: str, error: Exception) -> RequestError:
    """Make the error for a file that a person named and that cannot be read.

    >>> make_file_error("The grid a.csv", FileNotFoundError()).message
    'The grid a.csv was not found.'
    """
    if isinstance(error, FileNotFoundError):
        return RequestError(ErrorCode.NOT_FOUND, f"{name} was not found.")
    reason = "it is not UTF-8" if isinstance(error, UnicodeError) else str(error)
    reason = getattr(error, "strerror", None) or reason
    return _make_input_error(f"{name} cannot be read: {reason}.")


def parse_document(text: str, source: str, first_line: int = 1) -> dict[str, Any]:
    """Parse the object in a JSON or YAML text.

    Args:
        text: JSON or YAML text.
        source: name of the text, for the message of an error.
        first_line: number of its first line, for that message.

    >>> parse_document("name: card\\nnodes: []", "the cell")
    {'name': 'card', 'nodes': []}

    Raises:
        RequestError: `INVALID_REQUEST` for a text without an object, or with a value that JSON
            lacks, such as a date; the message names `source`.
    """
    import yaml

    try:
        # YAML has nearly all of JSON, but reads an escaped surrogate pair as two characters.
        document = json.loads(text)
    except ValueError:
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise _make_syntax_error(error, source, first_line) from None
    if not isinstance(document, dict):
        raise _make_input_error(f"{source} does not contain an object.")
    try:
        _check_json(document, source, "", [])
    except RecursionError:
        raise _make_input_error(f"{source} is nested too deeply.") from None
    return document


def _make_syntax_error(error: Exception, source: str, first_line: int) -> RequestError:
    """Make the error for a text that YAML cannot read, with the line that it says."""
    problem = str(getattr(error, "problem", None) or error)
    # An unclosed part is only found at the end of the text: its beginning says more.
    opening_mark = getattr(error, "context_mark", None) if "stream end" in problem else None
    mark = opening_mark or getattr(error, "problem_mark", None)
    context = getattr(error, "context", None)
    message = " ".join(f"{context + ': ' if context else ''}{problem}".split())
    return RequestError(
        ErrorCode.INVALID_REQUEST,
        f"{source} is neither JSON nor YAML.",
        details=[Detail("" if mark is None else f"line {mark.line + first_line}", message)],
    )


def find_document_line(text: str, path: str) -> tuple[int | None, bool]:
    r"""Find the line of a place in a YAML or JSON document, counted from 1.

    Returns:
        the line of the place, or of its closest parent; and whether the place exists.

    >>> find_document_line("name: x\nnodes:\n  - id: a\n    input: {}", "nodes.0.input")
    (4, True)
    >>> find_document_line("name: x\nnodes:\n  - id: a", "nodes.0.capability")
    (3, False)
    """
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None, False
    line: int | None = None
    for part in path.split("."):
        if isinstance(node, yaml.MappingNode):
            pairs = {str(key.value): (key, value) for key, value in node.value}
            if part not in pairs:
                return line, False
            key, node = pairs[part]
            line = key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and part.isdigit():
            if int(part) >= len(node.value):
                return line, False
            node = node.value[int(part)]
            line = node.start_mark.line + 1
        else:
            return line, False
    return line, True


def check_workflow_ids(body: dict[str, Any], source: str) -> dict[str, Any]:
    """Check a workflow body that may come from YAML: its nodes' ids must be texts.

    Raises:
        RequestError: `INVALID_WORKFLOW` for an id that YAML reads as something else, such as `yes`.
    """
    nodes = body.get("nodes")
    for number, node in enumerate(nodes if isinstance(nodes, list) else ()):
        members = node if isinstance(node, dict) else {}
        upstream = members.get("depends_on")
        ids = [members["id"]] if "id" in members else []
        for node_id in ids + (upstream if isinstance(upstream, list) else []):
            if not isinstance(node_id, str):
                raise RequestError(
                    ErrorCode.INVALID_WORKFLOW,
                    f"{source} has an id that is read as {json.dumps(node_id)} and not as text, in"
                    f" node {number + 1}: put it in quotes.",
                )
    return body


def _check_json(value: object, source: str, path: str, above: list[int]) -> None:
    """Reject values that JSON lacks; `above` are the lists and objects around a value."""
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float) and isfinite(value):
        return
    if id(value) in above:
        raise _make_input_error(f"{source} contains itself at `{path}`: write the value out.", path)
    if isinstance(value, list):
        for number, item in enumerate(value):
            _check_json(item, source, f"{path}.{number}".strip("."), [*above, id(value)])
    elif isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str):
                raise _make_input_error(
                    f"{source} has the name {name} that is not read as text, at `{path}`: put it"
                    " in quotes.",
                    path,
                )
            _check_json(member, source, f"{path}.{name}".strip("."), [*above, id(value)])
    else:
        kind = type(value).__name__
        raise _make_input_error(
            f"{source} has a {kind} at `{path}`, which JSON lacks: put it in quotes.",
            path,
        )


def _make_input_error(message: str, path: str = "") -> RequestError:
    details = [Detail(path, message)] if path else []
    return RequestError(ErrorCode.INVALID_REQUEST, message, details=details)
