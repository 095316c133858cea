"""The capability of nodes that are functions: it calls only functions of this process."""

from collections.abc import Iterable

from pydantic import Field

from toolkit.contract.base import JsonObject, Record, Request
from toolkit.contract.errors import ErrorCode, RequestError, WorkError
from toolkit.contract.suggestions import truncate_text
from toolkit.contract.workflows import FUNCTION_CAPABILITY, Node, NodeCreate
from toolkit.functions.calls import FunctionCall
from toolkit.functions.fingerprints import fingerprint_function, fingerprint_inputs
from toolkit.functions.table import MAX_NAME_CHARS, FunctionTable, RegisteredFunction
from toolkit.functions.values import describe_value
from toolkit.plugins import Blob, Call, Capability, Flow, Result
from toolkit.plugins.capability import ANY_MEDIA
from toolkit.plugins.flow import run_function

_ID, _, _VERSION = FUNCTION_CAPABILITY.partition("@")


class FunctionInput(Request):
    """The function that a node calls, and its arguments.

    Attributes:
        function: name of the function.
        digest: digest that distinguishes the function from others of that name. It is no part of a
            cached result's key, because `state` has the function's code and values.
        arguments: plain arguments, by parameter.
        nodes: the nodes whose results are arguments, by parameter.
    """

    function: str = Field(min_length=1, max_length=MAX_NAME_CHARS)
    digest: str = Field(default="", max_length=64, exclude=True)
    arguments: JsonObject = Field(default_factory=dict)
    nodes: dict[str, str | list[str]] = Field(default_factory=dict)


class FunctionOutput(Record):
    """The result of a function: short text or JSON, and the artifact with the whole result."""

    artifact_id: str
    media_type: str
    text: str | None = None
    value: object = None
    rows: int | None = None
    columns: list[str] | None = None


def make_function_capability(table: FunctionTable | None) -> Capability:
    """Make the capability of nodes that are functions.

    Args:
        table: the functions of this process; None if the process calls no functions.
    """

    def call_function(call: Call[FunctionInput]) -> Flow[Result]:
        function_input = call.input
        registered = (
            None if table is None else table.find(function_input.function, function_input.digest)
        )
        if registered is None:
            raise WorkError(
                ErrorCode.FUNCTION_UNAVAILABLE, explain_missing([function_input.function], table)
            )
        results: dict[str, Blob] = {source.node_id: source.blob for source in call.upstream}
        calling = FunctionCall(registered, function_input.arguments, function_input.nodes, results)
        blob = yield from run_function(calling.run, calling.cancel)
        return Result(describe_value(blob), blob)

    def digest_function(function_input: FunctionInput) -> tuple[str, str] | None:
        registered = (
            None if table is None else table.find(function_input.function, function_input.digest)
        )
        if registered is None:
            return None
        fingerprint = fingerprint_function(registered.function)
        if fingerprint.unseen:
            return None
        return fingerprint.digest, fingerprint_inputs(registered.function).digest

    return Capability(
        id=_ID,
        version=_VERSION,
        title="Call a function",
        description="Calls a function of the process that submitted the workflow.",
        input_model=FunctionInput,
        output_model=FunctionOutput,
        flow=call_function,
        produces=ANY_MEDIA,
        reads_upstream=True,
        calls_back=True,
        state=digest_function,
    )


def refuse_missing_functions(nodes: Iterable[NodeCreate], table: FunctionTable | None) -> None:
    """Reject nodes whose functions this process does not have.

    Args:
        table: the functions of this process; None if the process calls no functions.

    Raises:
        RequestError: `FUNCTION_UNAVAILABLE`, with the first such node.
    """
    for node in nodes:
        missing = find_missing_function(node.input, table)
        if missing is not None:
            explanation = explain_missing([missing], table)
            raise RequestError(
                ErrorCode.FUNCTION_UNAVAILABLE,
                f"Node `{truncate_text(node.id, 100)}`: {explanation}",
            )


def find_functions(nodes: Iterable[Node], table: FunctionTable) -> list[RegisteredFunction]:
    """Find the functions of a workflow that this process has; hold the list to keep them."""
    inputs = (node.input for node in nodes if node.capability == FUNCTION_CAPABILITY)
    functions = (_find_function(node_input, table) for node_input in inputs)
    return [function for function in functions if function is not None]


def find_missing_function(node_input: JsonObject, table: FunctionTable | None) -> str | None:
    """Return the name of the function that an input needs if this process lacks it, else None."""
    function = None if table is None else _find_function(node_input, table)
    return str(node_input.get("function", "")) if function is None else None


def _find_function(node_input: JsonObject, table: FunctionTable) -> RegisteredFunction | None:
    return table.find(str(node_input.get("function", "")), str(node_input.get("digest", "")))


def explain_missing(names: Iterable[str], table: FunctionTable | None) -> str:
    """Explain how a person can provide missing functions."""
    if table is None:
        return (
            "this service cannot call functions of its clients, because it does not have their"
            " code: submit the workflow to Client.local(), or make the function a capability"
            " (docs/plugins.md)."
        )
    missing = [truncate_text(name, 100) for name in dict.fromkeys(names)]
    listing = ", ".join(f"`{name}`" for name in missing)
    return (
        f"this process does not have the function {listing}: run the cell that defines it, then"
        f" `client.functions.register({missing[0]})`."
    )
