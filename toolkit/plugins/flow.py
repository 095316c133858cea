"""Sans-IO flows: generators that yield steps and receive what came of them."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast

import httpx

from toolkit.plugins.operations import Operation, Reply

T = TypeVar("T")
# The extension by which a request says that it goes to a global address or nowhere.
PUBLIC_ONLY = "toolkit.public_only"
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
class Compute:
    """Work for this machine's CPU, done in a thread so that no other job waits for it."""

    work: Callable[[], object]


Step: TypeAlias = httpx.Request | Pause | Submitted | Compute | Operation[Any]
# What is sent in depends on the step that was yielded; the helpers below give each its type.
Flow: TypeAlias = Generator[Step, Any, T]


# What a flow says of a request's bill, in the request's extensions (`send`).
FREE, INSTEAD = "toolkit.free", "toolkit.instead"


def send(
    request: httpx.Request, *, free: bool = False, instead: bool = False
) -> Flow[httpx.Response]:
    """Send one HTTP request and receive the whole response, read and within the size limit.

    A call's money covers one request that may be billed: a second one after another that was
    answered with anything but a 4xx has its own reservation. Nothing but a POST is billed.

    Args:
        request: what to send.
        free: whether it bills nothing, such as an upload or a listing.
        instead: whether it stands for an earlier one that was refused, however that was said.

    >>> flow = send(httpx.Request("GET", "https://vendor.example/"))
    >>> next(flow).method
    'GET'
    """
    said = {FREE: free, INSTEAD: instead}
    request.extensions |= {name: True for name, value in said.items() if value}
    return cast("httpx.Response", (yield request))


def pause(seconds: float, detail: str | None = None) -> Flow[None]:
    """Wait before the next step."""
    yield Pause(seconds, detail)


def submitted(vendor_job_id: str, cancel: httpx.Request | None = None) -> Flow[None]:
    """Have the vendor's id of asynchronous work stored, and how to cancel it there."""
    yield Submitted(vendor_job_id, cancel)


def compute(work: Callable[[], T]) -> Flow[T]:
    """Run `work` in a thread."""
    return cast("T", (yield Compute(work)))


def operate(operation: Operation[R]) -> Flow[R]:
    """Have a routed vendor carry out `operation` (only inside a capability's flow)."""
    return cast("R", (yield operation))
