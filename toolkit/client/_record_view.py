"""Record views: the displays of handles and collections, in async and sync clients alike."""

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, overload

from pydantic import BaseModel

from toolkit.contract.base import ErrorInfo
from toolkit.contract.billing import Billing, BillingLine
from toolkit.contract.choices import Decision
from toolkit.contract.connections import ConnectionTest
from toolkit.contract.jobs import Candidate
from toolkit.contract.money import format_usd
from toolkit.contract.runs import Route
from toolkit.contract.short_tracebacks import HasKnownNames
from toolkit.contract.tasks import Criteria, RecommendedAction, Review
from toolkit.contract.usage import UsageLine
from toolkit.display.records import html
from toolkit.display.records.data_frame import to_data_frame
from toolkit.display.text import format_count, summarize_record

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


T = TypeVar("T")
R = TypeVar("R", bound=BaseModel)
ROUTE_COLUMNS = (
    "provider", "model", "kept", "reason", "score", "estimated_cost_usd", "quality", "breaker",
    "latency_p50_ms", "latency_p95_ms",
)  # fmt: skip


class Member(property, Generic[T]):
    """A property that returns the member of the same name of `record`.

    `Member[T]` states the type of the member for type checkers.
    """

    def __init__(self, doc: str) -> None:
        super().__init__(self._read)
        self.__doc__ = doc  # before Python 3.12, a subclass of property shows its own instead

    def __set_name__(self, owner: type, name: str) -> None:
        """Store the name of the attribute."""
        self._name = name

    def _read(self, view: Any) -> Any:
        return getattr(view.record, self._name)

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type, /) -> Self: ...

        @overload
        def __get__(self, instance: Any, owner: type | None = None, /) -> T: ...

        def __get__(self, instance: Any, owner: type | None = None, /) -> Self | T: ...


class TextMember(Member[str]):
    """A text of `record`; empty if the record has none."""

    def _read(self, view: Any) -> Any:
        return super()._read(view) or ""


class RecordView(HasKnownNames, Generic[R]):
    """A record of the service that a notebook displays.

    Attributes:
        record: the contract's model, as it was when last read.
    """

    noun = "resource"
    facts: tuple[str, ...] = ()  # the fields that its HTML shows; all of them, by default

    def __init__(self, record: R, noun: str | None = None) -> None:
        self.record = record
        self.noun = noun or self.noun

    @property
    def id(self) -> str:
        """The resource's id, or "" if it has none."""
        return str(getattr(self.record, "id", ""))

    def to_dict(self) -> dict[str, object]:
        """Return the record as JSON values."""
        return self.record.model_dump(mode="json", by_alias=True)

    def to_frame(self) -> "pd.DataFrame":
        """Return a table of one row, or of a row for each part, such as the nodes of a workflow."""
        return to_data_frame(self._list_rows())

    def _list_rows(self) -> Sequence[BaseModel]:
        return [self.record]

    def __repr__(self) -> str:
        return summarize_record(self.noun, self.record)

    def _render_html(self) -> str:
        data = self.to_dict()
        names = self.facts or [name for name in data if name != "id"]
        return html.render_facts(f"{self.noun} {self.id}", {name: data[name] for name in names})

    def _repr_mimebundle_(self, **_: object) -> Any:
        return {"text/plain": repr(self), "text/html": self._render_html()}


class ReviewView(RecordView[Review]):
    """A review: decision, score, the three criteria, issues and recommended actions."""

    noun = "Review"

    decision = Member[Decision]("`pass`, `retry` or `fail`.")
    score = Member[float | None]("The overall score from 0 to 1, or None without a score.")
    criteria = Member[Criteria | None]("The three criteria, from 0 to 1, if given.")
    issues = Member[list[str]]("The issues that the reviewer found.")
    recommended_action = Member[RecommendedAction | None]("The first action of a retry.")
    recommended_actions = Member[list[RecommendedAction]]("All that a retry runs again.")
    reviewer = Member[str]("The reviewer: `checks`, `judge` or `person`.")
    attempt = Member[int | None]("The attempt of the task that it judges, counted from 1.")
    saw_pictures = Member[bool]("Whether the reviewer was shown the pictures that it judges.")

    def __repr__(self) -> str:
        score = "" if self.score is None else f" {self.score:.2f}"
        return f"<Review {self.decision}{score}, {format_count(len(self.issues), 'issue')}>"

    def _render_html(self) -> str:
        scores = {"score": self.score, **(self.criteria.model_dump() if self.criteria else {})}
        rows = {name: f"{value:.2f}" for name, value in scores.items() if value is not None}
        actions = [
            f"{action.action} {action.node_id}" for action in self.record.recommended_actions
        ]
        facts = {"reviewer": self.record.reviewer, "issues": self.issues, "recommended": actions}
        return html.render_facts("Review", {"decision": self.decision, **rows, **facts})


class RouteView(RecordView[Route]):
    """The choice that a run would get, and why each vendor and model was kept or dropped."""

    noun = "Route"

    provider = Member[str | None]("The provider to be called first, if any.")
    model = Member[str | None]("The model it would be asked for.")
    capability = Member[str]("The capability, as `name@version`.")
    policy = Member[str]("What the candidates were ranked by.")
    connection_id = Member[str | None]("The connection that would be called first.")
    estimated_cost_usd = Member[float | None]("The expected US dollars, if known.")
    reservation_usd = Member[float | None]("The maximum US dollars of the call, if known.")
    candidates = Member[tuple[Candidate, ...]]("Every vendor and model, the best first.")

    def plot(self) -> "Figure":
        """Draw cost and latency of the candidates as bars, the choice marked; by matplotlib."""
        from toolkit.display.plots import draw_candidates

        return draw_candidates(self.record)

    def _list_rows(self) -> Sequence[BaseModel]:
        return self.candidates

    def __repr__(self) -> str:
        count = sum(not c.excluded for c in self.candidates)
        choice = f"{self.provider} ({self.model})" if self.provider else "nobody"
        return (
            f"<Route {self.record.capability} to {choice}, {count} of {len(self.candidates)} fit>"
        )

    def _render_html(self) -> str:
        rows = [
            {**c.model_dump(mode="json"), "score": f"{c.score or 0:.3f}", "kept": not c.excluded}
            for c in self.candidates
        ]
        filled = [name for name in ROUTE_COLUMNS if any(row[name] is not None for row in rows)]
        return html.fit_cell(html.render_table(rows, filled, caption=repr(self)[1:-1]))


class BillingView(RecordView[Billing]):
    """The bills of a month, a line for each vendor."""

    noun = "Billing"

    total_usd = Member[float]("The total, in US dollars.")
    month = Member[str]("The month, as `2026-11`.")
    currency = Member[Literal["USD"]]("The currency of all amounts.")
    lines = Member[list[BillingLine]]("A line for each bill.")
    simulated = Member[bool]("True if the sandbox made the calls, so that nobody bills anything.")

    def _list_rows(self) -> Sequence[BaseModel]:
        return self.record.lines

    def __repr__(self) -> str:
        simulated = " simulated" if self.record.simulated else ""
        return f"<Billing {self.record.month}: {format_usd(self.total_usd)}{simulated}>"

    def _render_html(self) -> str:
        rows = [line.model_dump(mode="json") for line in self.record.lines]
        return html.render_table(rows, list(BillingLine.model_fields), caption=repr(self)[1:-1])


class UsageView(RecordView[UsageLine]):
    """The usage of one group, such as a day, a capability or a provider."""

    noun = "Usage"

    cost_usd = Member[float]("The cost, in US dollars.")
    capability = Member[str | None]("The capability, if lines are grouped by it.")
    provider = Member[str | None]("The provider, if lines are grouped by it.")
    connection_id = Member[str | None]("The connection, if lines are grouped by it.")
    agent_id = Member[str | None]("The agent, if lines are grouped by it.")
    key_id = Member[str | None]("The key, if lines are grouped by it.")
    account_id = Member[str | None]("The account, if lines are grouped by it.")
    day = Member[date | None]("The day, if lines are grouped by it.")
    jobs = Member[int]("The jobs that ended.")
    failed = Member[int]("The jobs that failed or were cancelled.")
    cached = Member[int]("The jobs whose result was used again.")
    calls = Member[int]("The calls of vendors, those that failed among them.")
    unpriced_calls = Member[int]("The calls whose price is unknown: `cost_usd` is without them.")
    latency_ms = Member[int]("The milliseconds of all jobs together.")

    def __repr__(self) -> str:
        line = self.record
        groups = "day", "capability", "provider"
        ids = "connection_id", "agent_id", "key_id", "account_id"
        values = (getattr(line, name) for name in (*groups, *ids))
        group = " ".join(str(name) for name in values if name is not None) or "in all"
        return f"<Usage {group}: {line.jobs} jobs, {line.calls} calls, {format_usd(line.cost_usd)}>"


class ConnectionTestView(RecordView[ConnectionTest]):
    """The result of a connection test."""

    noun = "Connection test"

    connection_id = Member[str]("The connection.")
    provider = Member[str]("The provider that it leads to.")
    resolved = Member[bool]("True if the pointer leads to a secret.")
    accepted = Member[bool | None]("True if the vendor accepts the key, or None if unknown.")
    took_ms = Member[int | None]("The milliseconds that the vendor took to answer.")
    error = Member[ErrorInfo | None]("The error with the next step, if any.")
    models = Member[list[str]]("The models that the vendor lists; at most 200.")
    next_step = Member[str]("How to use one of them, if the default is not listed.")

    @property
    def ok(self) -> bool:
        """True if the secret was found and the vendor accepts the key."""
        return self.record.resolved and self.record.accepted is True

    def __repr__(self) -> str:
        test = self.record
        verdict = "works" if self.ok else test.error.message if test.error else "not known"
        took = f" in {test.took_ms} ms" if test.took_ms is not None else ""
        models = ", ".join(test.models[:3]) + (", …" if len(test.models) > 3 else "")
        lists = f"; lists {len(test.models)} models ({models})" if test.models else ""
        next_step = f". {test.next_step}" if test.next_step else ""
        return f"<Connection test {test.provider}: {verdict}{took}{lists}{next_step}>"
