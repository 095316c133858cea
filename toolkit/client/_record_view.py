"""Record views: how handles and collections show themselves, in async and sync clients alike."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from toolkit.contract.base import Record
from toolkit.contract.billing import Billing, BillingLine
from toolkit.contract.connections import ConnectionTest
from toolkit.contract.jobs import Candidate
from toolkit.contract.runs import Route
from toolkit.contract.short_tracebacks import UnknownAttributeError
from toolkit.contract.tasks import Criteria, Review
from toolkit.contract.usage import UsageLine
from toolkit.display.records import html
from toolkit.display.records.data_frame import to_data_frame
from toolkit.display.text import format_count, format_money, summarize_record

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

R = TypeVar("R", bound=BaseModel)
ROUTE_COLUMNS = (
    "provider", "model", "kept", "reason", "score", "estimated_cost_usd", "quality", "breaker",
    "latency_p50_ms", "latency_p95_ms",
)  # fmt: skip


class RecordView(Generic[R]):
    """A record that shows itself.

    Attributes:
        record: the contract's model, as it was when last read.
    """

    kind = "resource"
    facts: tuple[str, ...] = ()  # the fields that its HTML shows; all of them, by default

    def __init__(self, record: R, kind: str | None = None) -> None:
        self.record = record
        self.kind = kind or self.kind

    if not TYPE_CHECKING:  # a name that there is not is found by mypy, too

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            raise UnknownAttributeError(self, name)

    @property
    def id(self) -> str:
        """The resource's id; empty for what has none."""
        return str(getattr(self.record, "id", ""))

    def to_dict(self) -> dict[str, object]:
        """Return the record as JSON values."""
        return self.record.model_dump(mode="json", by_alias=True)

    def to_frame(self) -> "pd.DataFrame":
        """Return the record as a table."""
        return to_data_frame(self._list_rows())

    def _list_rows(self) -> Sequence[BaseModel]:
        return [self.record]

    def __repr__(self) -> str:
        return summarize_record(self.kind, self.record)

    def _render_html(self) -> str:
        data = self.to_dict()
        names = self.facts or [name for name in data if name != "id"]
        return html.render_facts(f"{self.kind} {self.id}", {name: data[name] for name in names})

    def _repr_mimebundle_(self, **_: object) -> Any:
        return {"text/plain": repr(self), "text/html": self._render_html()}


class ReviewView(RecordView[Review]):
    """A review: decision, score, the three criteria, issues and what is recommended."""

    kind = "Review"

    @property
    def decision(self) -> str:
        """`pass`, `retry` or `fail`."""
        return self.record.decision

    @property
    def score(self) -> float | None:
        """The overall score, 0 to 1; none where a person gave none."""
        return self.record.score

    @property
    def criteria(self) -> Criteria | None:
        """The three criteria, each 0 to 1; none where a person gave none."""
        return self.record.criteria

    @property
    def issues(self) -> list[str]:
        """The issues that the reviewer found."""
        return self.record.issues

    def __repr__(self) -> str:
        score = "" if self.score is None else f" {self.score:.2f}"
        return f"<Review {self.decision}{score}, {format_count(len(self.issues), 'issue')}>"

    def _render_html(self) -> str:
        scores = {"score": self.score, **(self.criteria.model_dump() if self.criteria else {})}
        rows = {name: f"{value:.2f}" for name, value in scores.items() if value is not None}
        again = [f"{one.action} {one.node_id}" for one in self.record.recommended_actions]
        more = {"reviewer": self.record.reviewer, "issues": self.issues, "recommended": again}
        return html.render_facts("Review", {"decision": self.decision, **rows, **more})


class RouteView(RecordView[Route]):
    """The choice that a run would get, and why each vendor and model was kept or dropped."""

    kind = "Route"

    @property
    def provider(self) -> str | None:
        """The provider that would be called first; none where none may be called now."""
        return self.record.provider

    @property
    def model(self) -> str | None:
        """The model it would be asked for."""
        return self.record.model

    @property
    def candidates(self) -> list[Candidate]:
        """Every vendor and model that was looked at, the best first."""
        return list(self.record.candidates)

    def plot(self) -> "Figure":
        """Draw cost against latency of the candidates, the choice marked; by matplotlib."""
        from toolkit.display.plots.bars import draw_candidates

        return draw_candidates(self.record)

    def _list_rows(self) -> Sequence[BaseModel]:
        return self.candidates

    def __repr__(self) -> str:
        kept = sum(not c.excluded for c in self.candidates)
        choice = f"{self.provider} ({self.model})" if self.provider else "nobody"
        return f"<Route {self.record.capability} to {choice}, {kept} of {len(self.candidates)} fit>"

    def _render_html(self) -> str:
        rows = [
            {**c.model_dump(mode="json"), "score": f"{c.score or 0:.3f}", "kept": not c.excluded}
            for c in self.candidates
        ]
        filled = [name for name in ROUTE_COLUMNS if any(row[name] is not None for row in rows)]
        return html.fit_cell(html.render_table(rows, filled, caption=repr(self)[1:-1]))


class BillingView(RecordView[Billing]):
    """A month's bills, by who sends them."""

    kind = "Billing"

    @property
    def total_usd(self) -> float:
        """The total, in US dollars."""
        return self.record.total_usd

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw a bar for each biller, by matplotlib."""
        from toolkit.display.plots.bars import draw_billing

        return draw_billing(self.record, ax)

    def _list_rows(self) -> Sequence[BaseModel]:
        return self.record.lines

    def __repr__(self) -> str:
        simulated = " simulated" if self.record.simulated else ""
        return f"<Billing {self.record.month}: {format_money(self.total_usd)}{simulated}>"

    def _render_html(self) -> str:
        rows = [line.model_dump(mode="json") for line in self.record.lines]
        return html.render_table(rows, list(BillingLine.model_fields), caption=repr(self)[1:-1])


class UsageView(RecordView[UsageLine]):
    """The usage of a day, a capability or a provider: whatever it is grouped by."""

    kind = "Usage"

    @property
    def cost_usd(self) -> float:
        """The cost, in US dollars."""
        return self.record.cost_usd

    def __repr__(self) -> str:
        line = self.record
        named = (
            line.day,
            line.capability,
            line.provider,
            line.connection_id,
            line.agent_id,
            line.key_id,
        )
        of = " ".join(str(name) for name in named if name is not None) or "in all"
        return f"<Usage {of}: {line.jobs} jobs, {line.calls} calls, {format_money(line.cost_usd)}>"


class ConnectionTestView(RecordView[ConnectionTest]):
    """The result of a connection test."""

    kind = "Connection test"

    @property
    def ok(self) -> bool:
        """True if the pointer resolves and the vendor takes the key."""
        return self.record.resolved and self.record.accepted is True

    def __repr__(self) -> str:
        test = self.record
        verdict = "works" if self.ok else test.error.message if test.error else "not known"
        took = f" in {test.took_ms} ms" if test.took_ms is not None else ""
        some = ", ".join(test.models[:3]) + (", …" if len(test.models) > 3 else "")
        lists = f"; lists {len(test.models)} models ({some})" if test.models else ""
        next_step = f". {test.next_step}" if test.next_step else ""
        return f"<Connection test {test.provider}: {verdict}{took}{lists}{next_step}>"


class DiscoveredVariable(Record):
    """A vendor's conventional variable, as this process sees it.

    Attributes:
        set: whether the variable is set here; its value is not looked at.
    """

    provider: str
    title: str
    variable: str
    set: bool
    connected: bool
