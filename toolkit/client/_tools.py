"""Python functions as tools of a model: their schemas, and their calls."""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, get_type_hints

from toolkit.contract.errors import ErrorCode, RequestError

if TYPE_CHECKING:
    from pydantic import BaseModel

ToolFunction: TypeAlias = Callable[..., object]
ToolArgument: TypeAlias = ToolFunction | Mapping[str, object]
_ARGUMENT_LINE = re.compile(r"^\s*(\w+)(?:\s*\([^)]*\))?:\s+(.*)$")


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A model's request to call a tool.

    Attributes:
        id: the request, which an answer names.
        name: name of the tool.
        arguments: arguments by name; of your own function they have the types of its annotations.
        function: your own function, if the tool is one.
        record: the request as the run's output has it.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    function: ToolFunction | None
    record: Mapping[str, object]

    def __call__(self) -> object:
        """Call your own function with the arguments, and return its result.

        Raises:
            RequestError: `INVALID_REQUEST` if the tool is no function of yours.
        """
        if self.function is None:
            message = f"`{self.name}` is no function of yours: give its answer with `answer`."
            raise RequestError(ErrorCode.INVALID_REQUEST, message)
        return self.function(**self.arguments)

    def answer(self, result: object) -> dict[str, object]:
        """Make the message that answers the request, from a text or a value that becomes JSON."""
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        return {"role": "tool", "content": text, "tool_call_id": self.id}


def describe_tools(tools: Sequence[ToolArgument]) -> list[dict[str, object]]:
    """Describe tools for a request; descriptions as data stay as they are.

    >>> def add(a: int, b: int = 1) -> int:
    ...     '''Add two numbers.
    ...
    ...     Args:
    ...         a: the first number.
    ...     '''
    >>> described = describe_tools([add])[0]
    >>> described["name"], described["description"], described["parameters"]["required"]
    ('add', 'Add two numbers.', ['a'])
    """
    return [_describe_function(tool) if callable(tool) else dict(tool) for tool in tools]


def map_functions(tools: Iterable[ToolArgument]) -> dict[str, ToolFunction]:
    """Map the functions among some tools by their names."""
    return {_name_function(tool): tool for tool in tools if callable(tool)}


def read_calls(
    calls: Iterable[Mapping[str, Any]], functions: Mapping[str, ToolFunction]
) -> list[RequestedCall]:
    """Read the tools that a run asks for.

    Raises:
        WorkError: `INVALID_OUTPUT` if arguments do not fit the annotations of a function.
    """
    read = []
    for call in calls:
        function = functions.get(call["name"])
        arguments = dict(call["arguments"])
        if function is not None:
            arguments = _parse_arguments(function, arguments)
        read.append(RequestedCall(call["id"], call["name"], arguments, function, call))
    return read


def _parse_arguments(function: ToolFunction, arguments: dict[str, Any]) -> dict[str, Any]:
    from pydantic import ValidationError

    from toolkit.contract.errors import WorkError

    model = _make_model(function)
    try:
        parsed = model.model_validate(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
    else:
        # In the order of the function's parameters: `model_fields_set` has no order.
        given = parsed.model_fields_set
        return {name: getattr(parsed, name) for name in model.model_fields if name in given}
    message = f"The model called {_name_function(function)} wrongly: {where}: {first['msg']}."
    raise WorkError(ErrorCode.INVALID_OUTPUT, message)


def _name_function(function: ToolFunction) -> str:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        message = "A tool is a function with a name, not a lambda or a partial."
        raise RequestError(ErrorCode.INVALID_REQUEST, message)
    return str(name)


def _describe_function(function: ToolFunction) -> dict[str, object]:
    text = inspect.getdoc(function) or ""
    summary = text.partition("\n\n")[0].replace("\n", " ").strip()
    schema = _make_model(function).model_json_schema()
    for part in (schema, *schema.get("properties", {}).values()):
        part.pop("title", None)
    return {"name": _name_function(function), "description": summary, "parameters": schema}


def _make_model(function: ToolFunction) -> "type[BaseModel]":
    """Make the model of a function's arguments, with the descriptions of its docstring."""
    from pydantic import ConfigDict, Field, create_model

    described = _read_arguments(inspect.getdoc(function) or "")
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            message = f"{_name_function(function)} takes *args or **kwargs, which have no schema."
            raise RequestError(ErrorCode.INVALID_REQUEST, message)
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (hints.get(name, Any), Field(default, description=described.get(name)))
    return create_model(
        _name_function(function),
        __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False),
        **fields,
    )


def _read_arguments(docstring: str) -> dict[str, str]:
    """Read the descriptions of arguments from the `Args` section of a docstring."""
    _, _, section = docstring.partition("Args:\n")
    described: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if line and not line.startswith(" "):
            break
        match = _ARGUMENT_LINE.match(line)
        if match is not None:
            name = match[1]
            described[name] = match[2]
        elif name and line.strip():
            described[name] += f" {line.strip()}"
    return described
