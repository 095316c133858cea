"""Functions in the workflow editor: the choices, their forms, and the sources of parameters."""

import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from toolkit.contract.base import JsonObject
from toolkit.contract.errors import Detail
from toolkit.contract.workflows import FUNCTION_CAPABILITY
from toolkit.functions import RegisteredFunction

_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}
_OPEN = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


class OfferedFunctions:
    """The functions that nodes of an editor may call.

    Args:
        functions: functions of the client and of the initial workflow; the last of a name wins.
    """

    def __init__(self, functions: Iterable[RegisteredFunction]) -> None:
        self._by_name = {function.name: function for function in functions}

    def list_choices(self) -> list[tuple[str, str]]:
        """List the label and the value of each function, for a dropdown."""
        return [(f"{name} (function)", f"{name}()") for name in sorted(self._by_name)]

    def make_input(self, choice: str) -> JsonObject | None:
        """Make the input of a node from a choice; return None if the choice is no function."""
        function = self._by_name.get(choice.removesuffix("()")) if choice.endswith("()") else None
        return None if function is None else {"function": function.name, "digest": function.digest}

    def find(self, node: Mapping[str, Any]) -> RegisteredFunction | None:
        """Find the function that a node calls; return None if it calls no known function."""
        if node["capability"] != FUNCTION_CAPABILITY:
            return None
        return self._by_name.get(str(node["input"].get("function")))

    def list_called(self, nodes: Sequence[Mapping[str, Any]]) -> dict[str, RegisteredFunction]:
        """List the functions that nodes call, by the nodes' ids."""
        functions = {node["id"]: self.find(node) for node in nodes}
        return {
            node_id: function for node_id, function in functions.items() if function is not None
        }

    def connect(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return a node with its parameters filled by the nodes that it depends on.

        A node fills the parameter of its own name. The other nodes fill, in order, the remaining
        parameters that have neither a value nor a default.
        """
        function = self.find(node)
        if function is None:
            return node
        fields = {name: value for name, value in node["input"].items() if name != "nodes"}
        nodes = _fill_parameters(function, node["depends_on"], fields.get("arguments", {}))
        return {**node, "input": {**fields, **({"nodes": nodes} if nodes else {})}}

    def fill(self, node: dict[str, Any], values: Mapping[str, object]) -> dict[str, Any]:
        """Return a node with the values of its form; text that is valid JSON is parsed."""
        arguments = {name: _read_value(value) for name, value in values.items()}
        fields = {name: value for name, value in node["input"].items() if name != "arguments"}
        fields |= {"arguments": arguments} if arguments else {}
        return self.connect({**node, "input": fields})

    def find_faults(self, nodes: Sequence[Mapping[str, Any]]) -> list[Detail]:
        """Find the parameters that have neither a value nor a node."""
        faults = []
        for i, node in enumerate(nodes):
            function = self.find(node)
            fields = node["input"]
            filled = {**fields.get("arguments", {}), **fields.get("nodes", {})}
            faults += [
                Detail(f"nodes.{i}.input.{name}", "has no value, and no node provides it")
                for name in (_list_required(function) if function else [])
                if name not in filled
            ]
        return faults


def build_form_schema(function: RegisteredFunction) -> JsonObject:
    """Build the schema of a form: a field for each parameter; a node can fill an empty field.

    >>> def scale(table, factor: float = 2.0): ...
    >>> build_form_schema(RegisteredFunction("scale", "", scale))["properties"]["factor"]
    {'type': 'number', 'default': 2.0}
    """
    properties: JsonObject = {}
    for name, parameter in _list_parameters(function).items():
        annotation = parameter.annotation
        kind = _TYPES.get(getattr(annotation, "__name__", str(annotation)))
        field: JsonObject = {} if kind is None else {"type": kind}
        if parameter.default is not parameter.empty:
            with suppress(TypeError, ValueError):
                json.dumps(parameter.default)
                field["default"] = parameter.default
        properties[name] = field or {
            "description": "text or JSON; leave it empty to take the value from a node"
        }
    return {"type": "object", "properties": properties}


def read_arguments(node: Mapping[str, Any]) -> dict[str, object]:
    """Return the values of a function's parameters, as its form shows them."""
    return dict(node["input"].get("arguments", {}))


def _list_parameters(function: RegisteredFunction) -> dict[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(function.function).parameters
    except (TypeError, ValueError):  # such as functions written in C
        return {}
    return {
        name: parameter for name, parameter in parameters.items() if parameter.kind not in _OPEN
    }


def _list_required(function: RegisteredFunction) -> list[str]:
    return [
        name
        for name, parameter in _list_parameters(function).items()
        if parameter.default is parameter.empty
    ]


def _fill_parameters(
    function: RegisteredFunction, depends_on: Sequence[str], arguments: Mapping[str, object]
) -> dict[str, str]:
    parameters = _list_parameters(function)
    nodes = {}
    upstreams = []
    for up in depends_on:
        name = re.sub(r"\W", "_", up)
        if name in parameters and name not in arguments:
            nodes[name] = up
        else:
            upstreams.append(up)
    free = [
        name for name in _list_required(function) if name not in arguments and name not in nodes
    ]
    return nodes | dict(zip(free, upstreams, strict=False))


def _read_value(value: object) -> object:
    if isinstance(value, str):
        with suppress(ValueError):
            json_value: object = json.loads(value)
            return json_value
    return value
