"""The capability of nodes that are functions: it calls only functions of this process."""

import asyncio
import inspect
import linecache
import re
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final

from pydantic import Field

from toolkit.contract.base import JsonObject, Record, Request
from toolkit.contract.errors import Detail, ErrorCode, RequestError, WorkError
from toolkit.contract.key_shapes import looks_like_key
from toolkit.contract.suggestions import truncate_text
from toolkit.contract.workflows import FUNCTION_CAPABILITY, Node, NodeCreate
from toolkit.functions.code_reads import is_own_file
from toolkit.functions.fingerprints import fingerprint_function, fingerprint_inputs
from toolkit.functions.table import MAX_NAME_CHARS, FunctionTable, RegisteredFunction
from toolkit.functions.values import (
    FrameError,
    UnwritableValueError,
    describe_value,
    read_value,
    write_value,
)
from toolkit.plugins import Blob, Call, Capability, Flow, Result
from toolkit.plugins.capability import ANY_MEDIA
from toolkit.plugins.flow import run_function

MAX_SHOWN_FRAMES = 3  # of the end of a traceback
MAX_ERROR_CHARS = 500
_MISSING: Final = object()  # the result of an optional node that failed
_WORD = re.compile(r"[A-Za-z0-9+_\-]{8,}")
_ID, _, _VERSION = FUNCTION_CAPABILITY.partition("@")


class FunctionCall:
    """One call of a function, which one thread makes and another thread may cancel.

    Args:
        sources: ids of the nodes whose results are arguments, by parameter; a list makes a list.
        results: artifact of each node that yielded an artifact, by node id.
    """

    def __init__(
        self,
        registered: RegisteredFunction,
        arguments: Mapping[str, object],
        sources: Mapping[str, str | list[str]],
        results: Mapping[str, Blob],
    ) -> None:
        self._registered = registered
        self._arguments = arguments
        self._sources = sources
        self._results = results
        self._is_cancelled = False
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Future[object]] | None = None

    def run(self) -> Blob:
        """Call the function in the present thread, and return its result as an artifact.

        Raises:
            WorkError: `CANCELLED`, `INVALID_OUTPUT`, or `FUNCTION_FAILED` with its traceback's end.
        """
        name = self._registered.name
        arguments = self._bind()
        try:
            value = self._registered.function(*arguments.args, **arguments.kwargs)
            if inspect.isawaitable(value):
                value = asyncio.run(self._await(value))
        except asyncio.CancelledError:
            raise WorkError(ErrorCode.CANCELLED) from None
        except BaseException as error:  # even a SystemExit ends only the call
            raise _explain_failure(name, error) from None
        try:
            return write_value(value)
        except UnwritableValueError as error:
            raise WorkError(
                ErrorCode.INVALID_OUTPUT,
                f"`{name}` returned {error}: return text, bytes, a table or a JSON value.",
            ) from None

    def cancel(self) -> None:
        """Cancel the call: an async function ends; another runs on, and its result is dropped."""
        self._is_cancelled = True
        if self._running is not None:
            loop, task = self._running
            try:
                loop.call_soon_threadsafe(task.cancel)
            except RuntimeError:  # the call is over
                return

    async def _await(self, value: Awaitable[object]) -> object:
        task = asyncio.ensure_future(value)
        self._running = asyncio.get_running_loop(), task
        if self._is_cancelled:
            task.cancel()
        return await task

    def _bind(self) -> inspect.BoundArguments:
        """Bind the arguments to the parameters of the function.

        Raises:
            WorkError: `FUNCTION_FAILED` if arguments are unreadable or do not fit any more.
        """
        name = self._registered.name
        values: dict[str, object] = dict(self._arguments)
        try:
            for parameter, source in self._sources.items():
                if isinstance(source, list):
                    values[parameter] = [
                        self._read(node_id) for node_id in source if node_id in self._results
                    ]
                elif source in self._results:
                    values[parameter] = self._read(source)
                else:  # an optional node that failed
                    values.setdefault(parameter, _MISSING)
        except (FrameError, ValueError) as error:
            raise WorkError(
                ErrorCode.FUNCTION_FAILED, f"An argument of `{name}` cannot be read: {error}."
            ) from None
        try:
            return _bind_by_name(self._registered.function, values)
        except TypeError as error:
            raise WorkError(
                ErrorCode.FUNCTION_FAILED, f"`{name}` does not accept its arguments: {error}."
            ) from None

    def _read(self, node_id: str) -> object:
        blob = self._results[node_id]
        return read_value(blob.data, blob.media_type, blob.metadata)


def _bind_by_name(
    function: Callable[..., object], values: Mapping[str, object]
) -> inspect.BoundArguments:
    """Bind values to parameters of any kind by name; missing values take their defaults.

    The value of an optional node that failed is the default too, or None without a default.
    """
    signature = inspect.signature(function)
    positional, keywords = [], {}
    remainder = dict(values)
    may_be_positional = True
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = remainder.pop(parameter.name, parameter.empty)
        if value is _MISSING:
            value = None if parameter.default is parameter.empty else parameter.empty
        if value is parameter.empty:
            may_be_positional = False
        elif parameter.kind is parameter.POSITIONAL_ONLY and may_be_positional:
            positional.append(value)
        else:
            keywords[parameter.name] = value
    extras = {name: None if v is _MISSING else v for name, v in remainder.items()}
    return signature.bind(*positional, **keywords, **extras)


def _explain_failure(name: str, error: BaseException) -> WorkError:
    """Make the error for a function that failed, with the last lines of its traceback.

    Words that look like keys are left out, because records show no keys.
    """
    frames = _list_frames(error.__traceback__)
    text = truncate_text(_hide_keys(str(error).strip()), MAX_ERROR_CHARS)
    message = f"`{name}` raised {type(error).__name__}{f': {text}' if text else ''}".rstrip(".")
    details = [Detail(place, _hide_keys(line)) for place, line in frames]
    return WorkError(ErrorCode.FUNCTION_FAILED, f"{message}.", details=details)


def _list_frames(trace: TracebackType | None) -> list[tuple[str, str]]:
    """List the last places of a traceback, and the line of code at each.

    The places are in the caller's own code, followed by the place that raised the error.
    """
    steps = list(traceback.walk_tb(trace))[1:]  # the first is the call itself
    own_steps = [step for step in steps[:-1] if is_own_file(step[0].f_code.co_filename)]
    places = []
    for frame, number in [*own_steps, *steps[-1:]][-MAX_SHOWN_FRAMES:]:
        file = frame.f_code.co_filename
        line = linecache.getline(file, number, frame.f_globals).strip()
        location = "" if "ipykernel" in file or file.startswith("<") else f" of {Path(file).name}"
        places.append((f"{frame.f_code.co_name}, line {number}{location}", line))
    return places


def _hide_keys(text: str) -> str:
    """Hide words that look like keys; the parts of a path are checked separately.

    >>> _hide_keys('open("/data/tea.csv", key="sk-0123456789abcdef")')
    'open("/data/tea.csv", key="[key]")'
    """
    return _WORD.sub(lambda word: "[key]" if looks_like_key(word[0]) else word[0], text)


class FunctionInput(Request):
    """The function that a node calls, and its arguments.

    Attributes:
        digest: digest that distinguishes the function from others of that name. It is no part of a
            cached result's key, because `state` has the function's code and values.
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
    """Find the functions of a workflow that this process has.

    The caller keeps the list as long as they may be called, because the table may drop them.
    """
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
