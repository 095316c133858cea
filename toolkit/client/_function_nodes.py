"""Functions of this process: as nodes of workflows, and as `client.functions`."""

import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from toolkit.contract.base import JsonObject
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.suggestions import suggest_name
from toolkit.functions import FunctionTable, RegisteredFunction

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A reference to a node of a workflow, for `depends_on` or as an argument of a function."""

    id: str


@dataclass(frozen=True, slots=True)
class FunctionNode:
    """A node that calls a function.

    Attributes:
        input: the node's input, in the form of the contract.
        depends_on: the nodes before it, including nodes that arguments name.
    """

    registered: RegisteredFunction
    input: JsonObject
    depends_on: list[str]


def make_function_node(
    id: str,
    function: Callable[..., object],
    depends_on: Sequence[str],
    bindings: Mapping[str, object],
) -> FunctionNode:
    """Make a node of a function: each parameter gets a plain value, or the results of nodes.

    A parameter without an argument takes the node of its own name in `depends_on`. Characters that
    a name cannot have (`facts-1`) become underscores (`facts_1`). A parameter for any names
    (`**results`) takes all other nodes.

    Raises:
        RequestError: `INVALID_WORKFLOW` for a parameter that does not exist, that has no value, or
            whose value is not JSON.
    """
    if not callable(function):
        kind = type(function).__name__
        raise _make_error(
            id,
            f"a node takes a capability or a function, not a {kind}: name a"
            " capability, or pass a function without calling it",
        )
    registered = RegisteredFunction.of(function)
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise _make_error(
            id, f"the parameters of `{registered.name}` are not known: wrap it in a def"
        ) from None
    names = [
        parameter.name
        for parameter in parameters.values()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    arguments: JsonObject = {}
    nodes: dict[str, str | list[str]] = {}
    for name, value in bindings.items():
        if name not in names and not takes_any:
            hint = suggest_name(name, names)
            fault = f"`{registered.name}` has no parameter `{name}`"
            raise _make_error(id, f"{fault}: {hint}" if hint else fault)
        source = _find_source(value)
        if source is None:
            arguments[name] = _check_json(id, name, value)
        else:
            nodes[name] = source
    upstream = {
        up for source in nodes.values() for up in ([source] if isinstance(source, str) else source)
    }
    for up in depends_on:
        parameter = re.sub(r"\W", "_", up)
        if up in upstream or parameter in bindings or parameter in nodes:
            continue
        if parameter in names or (takes_any and parameter.isidentifier()):
            nodes[parameter] = up
    missing = [
        parameter.name
        for parameter in parameters.values()
        if parameter.name in names
        and parameter.default is parameter.empty
        and parameter.name not in arguments
        and parameter.name not in nodes
    ]
    if missing:
        raise _make_error(id, _explain_missing(registered.name, missing[0], depends_on))
    called: JsonObject = {"function": registered.name, "digest": registered.digest}
    called |= {"arguments": arguments} if arguments else {}
    called |= {"nodes": nodes} if nodes else {}
    return FunctionNode(registered, called, list(dict.fromkeys([*depends_on, *sorted(upstream)])))


def warn_of_unseen(registered: RegisteredFunction) -> None:
    """Warn if a function reads values that cannot be hashed, so that its result is not cached."""
    from toolkit.functions.fingerprints import fingerprint_function

    unseen = fingerprint_function(registered.function).unseen
    if unseen:
        warnings.warn(
            f"The cache of `{registered.name}` cannot see into {', '.join(unseen)}: the function"
            " counts as new each time, and its result is not cached. Give the values that it needs"
            " as arguments.",
            stacklevel=3,
        )


def _find_source(value: object) -> str | list[str] | None:
    """Return the node, or the nodes, that an argument refers to. Returns None for a plain value."""
    if isinstance(value, NodeRef):
        return value.id
    if isinstance(value, (list, tuple)) and value:
        ids = [node.id for node in value if isinstance(node, NodeRef)]
        return ids if len(ids) == len(value) else None
    return None


def _check_json(id: str, name: str, value: object) -> object:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise _make_error(
            id,
            f"`{name}` is a {type(value).__name__}, which is not JSON: return it"
            " from a node, or use it as a closure of the function",
        ) from None
    return value


def _explain_missing(function: str, parameter: str, depends_on: Sequence[str]) -> str:
    fault = f"`{function}` has no value for `{parameter}`"
    if depends_on:
        return f"{fault}: pass a node, as in {parameter}=wf_node, or give a node this name"
    return f"{fault}: pass {parameter}=…, a value or a node that was added before"


def _make_error(id: str, message: str) -> RequestError:
    text = f"Node `{id}`: {message}."
    return RequestError(ErrorCode.INVALID_WORKFLOW, text, details=[Detail("nodes", message)])


class Functions:
    """`client.functions`: the functions that were submitted as nodes, or registered by name.

    Args:
        table: functions of a client's own engine. None for a client of a server.
    """

    def __init__(self, table: FunctionTable | None, address: str) -> None:
        self._table = table
        self._address = address

    def register(self, function: F, *, name: str | None = None) -> F:
        """Register a function under its name from now on; also usable as a decorator.

        A workflow that waits for this function, because its process ended before, goes on within a
        second. Retried work calls this function in place of the earlier function of the name.

        Args:
            function: the function.
            name: name under which it was submitted. Default: its own name.

        Returns:
            the function itself.

        Raises:
            RequestError: `FUNCTION_UNAVAILABLE` for a client of a server.
        """
        self._require_table().register(RegisteredFunction.of(function, name))
        return function

    def _add_submitted(self, submitted: dict[str, RegisteredFunction]) -> None:
        """Add the functions of a workflow to the table, and replace each by its entry there.

        Raises:
            RequestError: `FUNCTION_UNAVAILABLE` for a client of a server.
        """
        table = self._require_table()
        for node_id, function in submitted.items():
            submitted[node_id] = table.add(function)

    def _require_table(self) -> FunctionTable:
        if self._table is None:
            raise RequestError(
                ErrorCode.FUNCTION_UNAVAILABLE,
                "Functions run only in their own process, but this client uses"
                f" {self._address}: submit the workflow to Client.local(), or make"
                " the function a capability (docs/plugins.md).",
            )
        return self._table

    def __contains__(self, name: object) -> bool:
        return name in self._list_names()

    def __len__(self) -> int:
        return len(self._list_names())

    def __iter__(self) -> Iterator[RegisteredFunction]:
        """Yield every registered function, with its name."""
        return iter(self._table or ())

    def _list_names(self) -> list[str]:
        return list(dict.fromkeys(function.name for function in self))

    def __repr__(self) -> str:
        names = ", ".join(self._list_names())
        return f"<Functions of this process: {names or 'none yet'}>"
