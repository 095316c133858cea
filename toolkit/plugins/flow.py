"""Sans-IO flows: generators that yield steps and receive their results."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, TypeVarTuple, Unpack, cast

import httpx

from toolkit.plugins.operations import Operation, Reply
from toolkit.plugins.streaming import STREAM_READER, StreamReader
from toolkit.workers.serialization import copy_value, get_function_name

T = TypeVar("T")
Args = TypeVarTuple("Args")
# Request extension: send the request only to a global address.
PUBLIC_ONLY = "toolkit.public_only"
# Response extension of a recorded answer: the model that was asked, if the region in a secret
# decided it. A replay has no secrets.
RECORDED_MODEL = "toolkit.recorded_model"
# Request extension: no cassette keeps the answer, because it is a secret.
UNRECORDED = "toolkit.unrecorded"
# Replaces secrets in a cassette. A replay uses it as every secret, so that a request with its key
# in the URL or the body still matches.
REPLAY_PLACEHOLDER = "replayed"
R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, slots=True)
class Pause:
    """A step that waits for `seconds`; the job shows `detail` as its `status_detail` meanwhile."""

    seconds: float
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """A step that stores the vendor's id of asynchronous work that was just submitted.

    After a restart the engine resumes the work by this id. `cancel`, if any, is the request that
    ends the work if the job is cancelled.
    """

    vendor_job_id: str
    cancel: httpx.Request | None = None


@dataclass(frozen=True, slots=True)
class RunInProcess:
    """A step that calls a function in a worker process, which is ended at the deadline.

    The process imports the function by module and name: lambdas, closures and functions of scripts
    or notebooks are refused. Arguments and results must be plain values: None, bool, int, float,
    str, bytes, and lists, tuples and dicts of them.

    Attributes:
        function: the function to call.
        args: the arguments of the call.
        here: True if the process must be on this machine, because it reads a file of this machine.
        timeout_s: the deadline in seconds from the call; the setting `cpu_timeout_s` if it is None
            or longer than the setting.
        name: the function's module and its name there.

    Raises:
        NotSerializableError: the process would not find the function.
    """

    function: Callable[..., object]
    args: tuple[object, ...] = ()
    here: bool = False
    timeout_s: float | None = None
    name: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Set `name`, or reject a function that another process could not import."""
        object.__setattr__(self, "name", get_function_name(self.function))

    def run(self) -> object:
        """Call the function in this process, for tests; arguments and result are copied.

        Raises:
            NotSerializableError: an argument or the result is not plain.
        """
        args = [copy_value(argument, "argument") for argument in self.args]
        return copy_value(self.function(*args), "result")


@dataclass(frozen=True, slots=True)
class RunInThread:
    """A step that calls a quick, trusted function in a thread, which nothing can interrupt."""

    function: Callable[..., object]
    args: tuple[object, ...] = ()

    def run(self) -> object:
        """Call the function in the current thread, and return its result."""
        return self.function(*self.args)


@dataclass(frozen=True, slots=True)
class RunFunction:
    """A step that calls code of the user in a separate thread, without a time limit.

    Attributes:
        function: the call.
        cancel: called if the job is cancelled before the function returns, which may go on.
    """

    function: Callable[[], object]
    cancel: Callable[[], None]


Step: TypeAlias = (
    httpx.Request | Pause | Submitted | RunInProcess | RunInThread | RunFunction | Operation[Any]
)
# The type of the value sent in depends on the step yielded; the helpers below type each step.
Flow: TypeAlias = Generator[Step, Any, T]


# Request extensions that control billing (`send`).
FREE_EXTENSION, REPLACEMENT_EXTENSION = "toolkit.free", "toolkit.instead"


def send(
    request: httpx.Request,
    *,
    free: bool = False,
    instead: bool = False,
    stream: StreamReader | None = None,
) -> Flow[httpx.Response]:
    """Have the engine send an HTTP request, and receive the response with its whole body.

    A call's reservation covers one billable request; only a POST is billable. A further request
    has its own reservation unless the earlier request was answered with a 4xx.

    Args:
        free: True if the request is not billed, such as an upload or a listing.
        instead: True if it replaces an earlier request that was refused with any status.
        stream: the reader of the answer, if the request asks for a stream. The flow receives the
            whole answer, which the reader assembles.

    >>> flow = send(httpx.Request("GET", "https://vendor.example/"))
    >>> next(flow).method
    'GET'
    """
    flags = {FREE_EXTENSION: free, REPLACEMENT_EXTENSION: instead}
    request.extensions |= {name: True for name, value in flags.items() if value}
    if stream is not None:
        request.extensions[STREAM_READER] = stream
    return cast("httpx.Response", (yield request))


def pause(seconds: float, detail: str | None = None) -> Flow[None]:
    """Wait for some seconds before the next step; the job shows `detail` meanwhile."""
    yield Pause(seconds, detail)


def report_submission(vendor_job_id: str, cancel: httpx.Request | None = None) -> Flow[None]:
    """Store the vendor's id of submitted work, to resume it, and the request that cancels it."""
    yield Submitted(vendor_job_id, cancel)


def run_in_process(
    function: Callable[[Unpack[Args]], T], *args: *Args, here: bool = False
) -> Flow[T]:
    """Call a function in a worker process, and receive its result (see `RunInProcess`).

    A `ProviderError` of the function is raised as it is, another error as the nearest built-in
    class.

    >>> flow = run_in_process(sum, [1, 2])
    >>> next(flow).run()
    3
    """
    return cast("T", (yield RunInProcess(function, args, here)))


def run_in_thread(function: Callable[[Unpack[Args]], T], *args: *Args) -> Flow[T]:
    """Call a function in a thread, and receive its result (see `RunInThread`)."""
    return cast("T", (yield RunInThread(function, args)))


def run_function(function: Callable[[], T], cancel: Callable[[], None]) -> Flow[T]:
    """Call code of the user in a thread, and receive its result (see `RunFunction`)."""
    return cast("T", (yield RunFunction(function, cancel)))


def request_operation(operation: Operation[R]) -> Flow[R]:
    """Have the engine choose a vendor for `operation`, and receive the vendor's reply.

    Only the flow of a capability may do so, not the flow of a vendor.
    """
    return cast("R", (yield operation))
