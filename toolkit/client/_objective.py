"""The part that plans and tasks share: an objective, and what is missing for it."""

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
    def question(self) -> str | None:
        """What a person has to answer before it goes on; none where nothing is asked."""
        return self.record.question

    @property
    def missing(self) -> list[Missing]:
        """The missing capabilities, for a blocked task now, with the providers that would do."""
        return self.record.missing

    @property
    def missing_capabilities(self) -> list[str]:
        """The capabilities that are missing."""
        return self.record.missing_capabilities

    @property
    def missing_connections(self) -> list[str]:
        """The providers, any of which it needs a connection to."""
        return self.record.missing_connections

    @property
    def created_at(self) -> datetime:
        """The time at which it was asked for."""
        return self.record.created_at
