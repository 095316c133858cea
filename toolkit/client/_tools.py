"""Python functions as tools of a model: their schemas, and their calls."""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, get_type_hints

from toolkit.contract.errors import ErrorCode, RequestError, WorkError

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
        fault: why the arguments do not fit the annotations of your own function, which then
            cannot be called; "" if they fit.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    function: ToolFunction | None
    record: Mapping[str, object]
    fault: str = ""

    def __call__(self) -> object:
        """Call your own function with the arguments, and return its result.

        Raises:
            RequestError: `INVALID_REQUEST` if the tool is no function of yours.
            WorkError: `INVALID_OUTPUT` if the arguments do not fit the function's annotations.
        """
        if self.function is None:
            message = f"`{self.name}` is no function of yours: give its answer with `answer`."
            raise RequestError(ErrorCode.INVALID_REQUEST, message)
        if self.fault:
            raise WorkError(ErrorCode.INVALID_OUTPUT, self.fault)
        return self.function(**self.arguments)

    def answer(self, result: object) -> dict[str, object]:
        """Make the message with which the model receives the result of the call.

        Args:
            result: a text, or a value that becomes JSON; a value without a JSON form, such as a
                data frame, becomes its `str`.

        Raises:
            RequestError: `INVALID_REQUEST` for a coroutine, which only an `AsyncClient` awaits.
        """
        if inspect.iscoroutine(result):
            result.close()
            message = f"`{self.name}` is an async function: use AsyncClient, or a plain function."
            raise RequestError(ErrorCode.INVALID_REQUEST, message)
        text = result if isinstance(result, str) else _spell_result(result)
        return {"role": "tool", "content": text, "tool_call_id": self.id}


def _spell_result(result: object) -> str:
    from pydantic_core import to_jsonable_python

    plain = to_jsonable_python(result, fallback=_simplify_value)
    return json.dumps(plain, ensure_ascii=False)


def _simplify_value(value: Any) -> object:
    """Return the numbers of an array, a column or a NumPy scalar, or the `str` of anything else."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def describe_tools(tools: Sequence[ToolArgument]) -> list[Mapping[str, object]]:
    """Describe tools for a model, functions by their name, docstring and annotations.

    A tool that is a mapping stays as it is, or is taken out of OpenAI's form around it.

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
    return [_describe_function(tool) if callable(tool) else _unwrap(tool) for tool in tools]


def _unwrap(tool: Mapping[str, object]) -> Mapping[str, object]:
    """Return the inner part of `{"type": "function", "function": …}`, or another form as it is."""
    inner = tool.get("function") if isinstance(tool, Mapping) else None
    return inner if isinstance(inner, Mapping) and tool.get("type") == "function" else tool


def map_functions(tools: Iterable[ToolArgument]) -> dict[str, ToolFunction]:
    """Return the functions among some tools, by their names; reject a lambda or a partial."""
    return {_name_function(tool): tool for tool in tools if callable(tool)}


def read_calls(
    calls: Iterable[Mapping[str, Any]], functions: Mapping[str, ToolFunction]
) -> list[RequestedCall]:
    """Convert the tool calls in a run's output to `RequestedCall` objects, with your functions."""
    read = []
    for call in calls:
        function, arguments, fault = functions.get(call["name"]), dict(call["arguments"]), ""
        if function is not None:
            arguments, fault = _parse_arguments(function, arguments)
        read.append(RequestedCall(call["id"], call["name"], arguments, function, call, fault))
    return read


def _parse_arguments(
    function: ToolFunction, arguments: dict[str, Any]
) -> tuple[dict[str, Any], str]:
    """Convert arguments to the types of a function's annotations.

    Returns the converted arguments and "", or the unchanged arguments and their fault.
    """
    from pydantic import ValidationError

    model = _make_model(function)
    try:
        parsed = model.model_validate(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
    else:
        # In the order of the function's parameters: `model_fields_set` has no order.
        given = parsed.model_fields_set
        return {name: getattr(parsed, name) for name in model.model_fields if name in given}, ""
    fault = f"The model called {_name_function(function)} wrongly: {where}: {first['msg']}."
    return arguments, fault


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
    """Make a pydantic model of a function's parameters, described by its docstring.

    Reject `*args` and `**kwargs`, because they have no schema.
    """
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
    """Return the descriptions of arguments, by name, in the `Args` section of a docstring."""
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
