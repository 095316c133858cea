# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""One capability being executed: what runs and jobs have in common."""

from typing import Any, TypeVar

from toolkit.client._sync.handle import Waitable
from toolkit.contract.base import ErrorInfo
from toolkit.contract.jobs import Attempt, Job, Routing

J = TypeVar("J", bound=Job)


class Execution(Waitable[J]):
    """One capability being executed."""

    facts = (
        "capability", "status", "status_detail", "provider", "model", "output", "artifact_id",
        "error", "cost_usd", "latency_ms", "retry_count", "cached_from", "workflow_id", "node_id",
    )  # fmt: skip

    @property
    def output(self) -> Any:
        """What the capability answered; none until it is completed."""
        return self.record.output

    @property
    def artifact_id(self) -> str:
        """The artifact it yielded; empty until it is completed."""
        return self.record.artifact_id or ""

    @property
    def provider(self) -> str | None:
        """Who served it, or was asked last."""
        return self.record.provider

    @property
    def model_name(self) -> str | None:
        """The model that answered, as the provider names it."""
        return self.record.model

    @property
    def cost_usd(self) -> float | None:
        """What the call that worked was billed, in US dollars; none where the price is unknown."""
        return self.record.cost_usd

    @property
    def attempts(self) -> list[Attempt]:
        """Each try at a provider, in order."""
        return self.record.attempts

    @property
    def error(self) -> ErrorInfo | None:
        """What went wrong, if anything did."""
        return self.record.error

    @property
    def routing(self) -> Routing | None:
        """The router's decision, with every candidate and why it was kept or dropped."""
        return self.record.routing
