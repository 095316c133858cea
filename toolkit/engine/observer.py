"""The observer interface: the engine's interface for logs, metrics and traces.

A span is entered at the start of an operation and left at its end. In between, the span's object
changes, so that on exit its record holds the outcome.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from toolkit.contract.jobs import BreakerState
from toolkit.contract.workflows import WorkflowRecord
from toolkit.engine.job_record import AttemptRecord, JobRecord
from toolkit.plugins import Capability, Vendor
from toolkit.store import Lease

Span = AbstractContextManager[object]

NO_SPAN: Span = nullcontext()


class ObservedJob(Protocol):
    """A job in progress; once it has ended, its record is final."""

    job: JobRecord
    capability: Capability
    account_id: str
    lease: Lease


@dataclass(slots=True)
class WatchedWorkflow:
    """A workflow in progress; once it has ended, its record is final."""

    account_id: str
    workflow: WorkflowRecord


@dataclass(frozen=True, slots=True)
class GateState:
    """The state of a connection in this process.

    Attributes:
        breaker: state of its circuit breaker.
        waiting: number of calls that wait for a slot.
    """

    provider: str
    breaker: BreakerState
    waiting: int


class Observer:
    """The base class of observers, which ignores everything; its methods must not wait or raise."""

    def watch_workflow(self, watched: WatchedWorkflow) -> Span:  # noqa: ARG002
        """Return a span around all that this process does for a workflow."""
        return NO_SPAN

    def watch_job(self, observed: ObservedJob) -> Span:  # noqa: ARG002
        """Return a span around a job, from before it waits for its turn to its end."""
        return NO_SPAN

    def watch_call(self, observed: ObservedJob, attempt: AttemptRecord, vendor: Vendor) -> Span:  # noqa: ARG002
        """Return a span around one vendor call, from recording its intent to its cost."""
        return NO_SPAN

    def record_commit(self, seconds: float) -> None:
        """Note that a transaction became durable; called on the thread that committed it."""


class CompositeObserver(Observer):
    """Several observers as one, entered in order and left in reverse."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = tuple(observers)

    def watch_workflow(self, watched: WatchedWorkflow) -> Span:
        """Return a span around all that this process does for a workflow."""
        return combine_spans([observer.watch_workflow(watched) for observer in self._observers])

    def watch_job(self, observed: ObservedJob) -> Span:
        """Return a span around a job, from before it waits for its turn to its end."""
        return combine_spans([observer.watch_job(observed) for observer in self._observers])

    def watch_call(self, observed: ObservedJob, attempt: AttemptRecord, vendor: Vendor) -> Span:
        """Return a span around one call to a vendor."""
        return combine_spans(
            [observer.watch_call(observed, attempt, vendor) for observer in self._observers]
        )

    def record_commit(self, seconds: float) -> None:
        """Note that a transaction became durable."""
        for observer in self._observers:
            observer.record_commit(seconds)


def combine_spans(spans: Iterable[Span]) -> Span:
    """Combine several spans into one; free of cost unless several of them do something."""
    busy = [span for span in spans if span is not NO_SPAN]
    if len(busy) > 1:
        return _enter_spans(busy)
    return busy[0] if busy else NO_SPAN


@contextmanager
def _enter_spans(spans: Iterable[Span]) -> Iterator[None]:
    with ExitStack() as stack:
        for span in spans:
            stack.enter_context(span)
        yield
