"""What plans and tasks have in common: an objective, and what it lacks."""

from datetime import datetime
from typing import Generic, TypeVar

from toolkit.contract.plans import Missing, Plan
from toolkit.contract.tasks import Task

P = TypeVar("P", Plan, Task)


class HasObjective(Generic[P]):
    """A handle of what follows an objective."""

    record: P

    @property
    def objective(self) -> str:
        """The objective, as it was given."""
        return self.record.objective

    @property
    def missing(self) -> list[Missing]:
        """What it lacks, a blocked task now: each capability, and the providers that would do."""
        return self.record.missing

    @property
    def missing_capabilities(self) -> list[str]:
        """The capabilities that it lacks."""
        return self.record.missing_capabilities

    @property
    def missing_connections(self) -> list[str]:
        """The providers, any of which it needs a connection to."""
        return self.record.missing_connections

    @property
    def created_at(self) -> datetime:
        """The time at which it was asked for."""
        return self.record.created_at
