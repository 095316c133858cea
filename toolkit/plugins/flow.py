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
R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for `seconds`; the job shows `detail` as its `status_detail` meanwhile."""

    seconds: float
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """Work that the vendor took under this id: a restart re-attaches to it, a cancel ends it."""

    vendor_job_id: str
    cancel: httpx.Request | None = None


@dataclass(frozen=True, slots=True)
class RunInProcess:
    """Work for the CPU in a worker process, which is ended at the deadline.

    The process imports the function by module and name: lambdas, closures and functions of scripts
    or notebooks are refused. Arguments and results must be plain values: None, bool, int, float,
    str, bytes, and lists, tuples and dicts of them.

    Attributes:
        function: the function to call.
        args: the arguments of the call.
        here: True if the process must be on this machine, because it reads a file of this machine.
        timeout_s: the deadline in seconds from the call; `cpu_timeout_s` if it is None or longer.
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
        """Check that the process can find the function."""
        object.__setattr__(self, "name", get_function_name(self.function))

    def run(self) -> object:
        """Do the work in this process, as a test does.

        Raises:
            NotSerializableError: an argument or the result is not plain.
        """
        args = [copy_value(argument, "argument") for argument in self.args]
        return copy_value(self.function(*args), "result")


@dataclass(frozen=True, slots=True)
class RunInThread:
    """Quick, trusted work in a thread of this process, which nothing can interrupt."""

    function: Callable[..., object]
    args: tuple[object, ...] = ()

    def run(self) -> object:
        """Do the work in this thread."""
        return self.function(*self.args)


@dataclass(frozen=True, slots=True)
class RunFunction:
    """A call of the caller's own code in its own thread, without a time limit.

    Attributes:
        function: the call.
        cancel: callback for when no job waits for the call any more; the call may still continue.
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
    """Send one HTTP request and receive the whole response, read and within the size limit.

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
    """Wait before the next step."""
    yield Pause(seconds, detail)


def report_submission(vendor_job_id: str, cancel: httpx.Request | None = None) -> Flow[None]:
    """Store the vendor's id of asynchronous work, and the request that cancels it."""
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
    """Call the caller's own code, and receive its result (see `RunFunction`)."""
    return cast("T", (yield RunFunction(function, cancel)))


def request_operation(operation: Operation[R]) -> Flow[R]:
    """Have a routed vendor perform `operation` (only inside a capability's flow)."""
    return cast("R", (yield operation))
