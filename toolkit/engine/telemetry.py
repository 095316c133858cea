"""What the engine tells whoever watches it: one seam for logs, metrics and traces.

An observer is entered where something begins and left where it ends; between the two, what it was
given changes, so that on the way out the record says what came of it.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from toolkit.contract.jobs import Attempt, BreakerState
from toolkit.contract.workflows import Workflow
from toolkit.plugins import Vendor

if TYPE_CHECKING:
    from toolkit.engine.work import Work

Span = AbstractContextManager[object]

NOTHING: Span = nullcontext()


@dataclass(slots=True)
class Watched:
    """A workflow under way; its record is the one it ended with once it has ended."""

    account_id: str
    workflow: Workflow


@dataclass(frozen=True, slots=True)
class LaneState:
    """A connection as this process sees it.

    Attributes:
        breaker: the state of its circuit breaker.
        waiting: how many calls wait for a place.
    """

    provider: str
    breaker: BreakerState
    waiting: int


class Observer(Protocol):
    """Watches an engine; whatever it does must neither wait nor raise."""

    def workflow(self, watched: Watched) -> Span:
        """Around all that this process does for a workflow."""
        ...

    def job(self, work: "Work") -> Span:
        """Around a job, from before it waits for its turn to its end."""
        ...

    def call(self, work: "Work", attempt: Attempt, vendor: Vendor) -> Span:
        """Around one call to a vendor, from its intent written down to its bill."""
        ...

    def committed(self, seconds: float) -> None:
        """A transaction became durable; told on whichever thread committed it."""
        ...


class Unobserved:
    """Watches nothing, and is what observers start from that watch only some of it."""

    def workflow(self, watched: Watched) -> Span:  # noqa: ARG002
        """Nothing."""
        return NOTHING

    def job(self, work: "Work") -> Span:  # noqa: ARG002
        """Nothing."""
        return NOTHING

    def call(self, work: "Work", attempt: Attempt, vendor: Vendor) -> Span:  # noqa: ARG002
        """Nothing."""
        return NOTHING

    def committed(self, seconds: float) -> None:
        """Nothing."""


class Observers:
    """Several observers as one, entered in order and left in reverse."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = tuple(observers)

    def workflow(self, watched: Watched) -> Span:
        """Around all that this process does for a workflow."""
        return together(each.workflow(watched) for each in self._observers)

    def job(self, work: "Work") -> Span:
        """Around a job, from before it waits for its turn to its end."""
        return together(each.job(work) for each in self._observers)

    def call(self, work: "Work", attempt: Attempt, vendor: Vendor) -> Span:
        """Around one call to a vendor."""
        return together(each.call(work, attempt, vendor) for each in self._observers)

    def committed(self, seconds: float) -> None:
        """A transaction became durable."""
        for each in self._observers:
            each.committed(seconds)


@contextmanager
def together(spans: Iterable[Span]) -> Iterator[None]:
    """Several spans as one."""
    with ExitStack() as stack:
        for span in spans:
            stack.enter_context(span)
        yield
