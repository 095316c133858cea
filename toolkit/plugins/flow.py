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
# The extension by which a request says that it goes to a global address or nowhere.
PUBLIC_ONLY = "toolkit.public_only"
# The extension by which a recorded answer tells of which model it was asked, where the region in a
# secret decided that: a replay has no secrets.
RECORDED_MODEL = "toolkit.recorded_model"
R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait this long, then go on; `detail` is shown as the job's `status_detail` meanwhile."""

    seconds: float
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The vendor took the work under this id: a restart re-attaches to it, a cancel ends it."""

    vendor_job_id: str
    cancel: httpx.Request | None = None


@dataclass(frozen=True, slots=True)
class RunInProcess:
    """Work for this machine's CPU, done in a worker process: it is ended when its time is up.

    The process imports the function by its module and name, so it is no lambda, no closure and no
    function of a script or notebook; and its arguments and its result are plain values: None,
    bool, int, float, str, bytes, and lists, tuples and dicts of them.

    Attributes:
        function: what is called.
        args: its arguments.
        here: whether the process has to be on this machine, as it reads a file that is only here.
        timeout_s: the deadline in seconds from the call of the function; `cpu_timeout_s` if it is
            None or longer.
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
        """See that the function can be found."""
        object.__setattr__(self, "name", get_function_name(self.function))

    def run(self) -> object:
        """Do the work in this process, as a test does; values that are not plain are refused, too.

        Raises:
            NotSerializableError: an argument or the result is not plain.
        """
        args = [copy_value(argument, "argument") for argument in self.args]
        return copy_value(self.function(*args), "result")


@dataclass(frozen=True, slots=True)
class RunInThread:
    """Work that is done in a thread of this process, which nothing can end: quick, and trusted."""

    function: Callable[..., object]
    args: tuple[object, ...] = ()

    def run(self) -> object:
        """Do the work in this thread."""
        return self.function(*self.args)


@dataclass(frozen=True, slots=True)
class RunFunction:
    """A call of the caller's own code, in a thread of its own, for as long as it takes.

    Attributes:
        function: makes the call.
        cancel: is called where nobody waits for its end any more; the call may go on all the same.
    """

    function: Callable[[], object]
    cancel: Callable[[], None]


Step: TypeAlias = (
    httpx.Request | Pause | Submitted | RunInProcess | RunInThread | RunFunction | Operation[Any]
)
# The type of the value sent in depends on the step yielded; the helpers below have each one's.
Flow: TypeAlias = Generator[Step, Any, T]


# The request extensions that say how a request is billed (`send`).
FREE_EXTENSION, REPLACEMENT_EXTENSION = "toolkit.free", "toolkit.instead"


def send(
    request: httpx.Request,
    *,
    free: bool = False,
    instead: bool = False,
    stream: StreamReader | None = None,
) -> Flow[httpx.Response]:
    """Send one HTTP request and receive the whole response, read and within the size limit.

    A call's money covers one request that may be billed: a second one after another that was
    answered with anything but a 4xx has its own reservation. Nothing but a POST is billed.

    Args:
        free: whether it bills nothing, such as an upload or a listing.
        instead: whether it replaces an earlier one that was refused, with whatever status.
        stream: the reader of the answer, where the request asks for a streamed one; what is
            received is the whole answer, as the reader puts it together.

    >>> flow = send(httpx.Request("GET", "https://vendor.example/"))
    >>> next(flow).method
    'GET'
    """
    said = {FREE_EXTENSION: free, REPLACEMENT_EXTENSION: instead}
    request.extensions |= {name: True for name, value in said.items() if value}
    if stream is not None:
        request.extensions[STREAM_READER] = stream
    return cast("httpx.Response", (yield request))


def pause(seconds: float, detail: str | None = None) -> Flow[None]:
    """Wait before the next step."""
    yield Pause(seconds, detail)


def report_submission(vendor_job_id: str, cancel: httpx.Request | None = None) -> Flow[None]:
    """Have the vendor's id of asynchronous work stored, and how to cancel it there."""
    yield Submitted(vendor_job_id, cancel)


def run_in_process(
    function: Callable[[Unpack[Args]], T], *args: *Args, here: bool = False
) -> Flow[T]:
    """Call a function in a worker process, and receive what it returns (see `RunInProcess`).

    What it raises is raised here: a `ProviderError` as it is, another error as the nearest built-in
    class.

    >>> flow = run_in_process(sum, [1, 2])
    >>> next(flow).run()
    3
    """
    return cast("T", (yield RunInProcess(function, args, here)))


def run_in_thread(function: Callable[[Unpack[Args]], T], *args: *Args) -> Flow[T]:
    """Call a function in a thread, and receive what it returns (see `RunInThread`)."""
    return cast("T", (yield RunInThread(function, args)))


def run_function(function: Callable[[], T], cancel: Callable[[], None]) -> Flow[T]:
    """Call the caller's own code, and receive what it returns (see `RunFunction`)."""
    return cast("T", (yield RunFunction(function, cancel)))


def request_operation(operation: Operation[R]) -> Flow[R]:
    """Have a routed vendor perform `operation` (only inside a capability's flow)."""
    return cast("R", (yield operation))
