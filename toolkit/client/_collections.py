"""Collections: pages of handles, shown in one line and as a table."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from pydantic import BaseModel

from toolkit.client._record_view import RecordView, UsageView
from toolkit.contract.money import sum_usd
from toolkit.display.records import html
from toolkit.display.records.data_frame import to_data_frame
from toolkit.display.records.inputs import describe_input
from toolkit.display.records.tables import export_arrow, to_arrow, to_polars
from toolkit.display.text import format_money, format_total

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

H = TypeVar("H", bound=RecordView[Any])
COLUMNS = (
    "id", "name", "capability", "input", "version", "title", "fields", "objective", "status",
    "provider", "connection_type", "secret_ref", "media_type", "size_bytes", "cost_usd",
    "latency_ms", "tags", "note", "created_at", "variable", "set", "connected", "pool", "memory_gb",
    "size_gb", "data_center", "quality", "day", "connection_id", "agent_id", "key_id", "jobs",
    "failed", "cached", "calls",
)  # fmt: skip
LEFT_OUT_OF_RUNS = ("connection_id", "cached", "agent_id", "key_id")
MAX_ROWS = 25  # of a table that shows itself; `to_frame` has them all


class Collection(Generic[H]):
    """A page of handles: indexed by position and by id.

    Args:
        items: the handles.
        kind: the word for many of them.
        next_cursor: what leads to the next page, if there is one.
        model: what their records are, so that a table of none has columns, too.
    """

    def __init__(
        self,
        items: Sequence[H],
        kind: str,
        next_cursor: str | None = None,
        model: type[BaseModel] | None = None,
    ) -> None:
        self._items = list(items)
        self._kind = kind
        self._model = model
        self.next_cursor = next_cursor

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[H]:
        return iter(self._items)

    @overload
    def __getitem__(self, key: int | str) -> H: ...

    @overload
    def __getitem__(self, key: slice) -> list[H]: ...

    def __getitem__(self, key: int | str | slice) -> H | list[H]:
        if isinstance(key, str):
            found = next((item for item in self._items if item.id == key), None)
            if found is None:
                raise KeyError(key)
            return found
        return self._items[key]

    def _ipython_key_completions_(self) -> list[str]:
        return [item.id for item in self._items if item.id]

    @property
    def cost_usd(self) -> float | None:
        """The cost of all of them, in US dollars, as far as it is known; none where nothing is."""
        costs = [getattr(item.record, "cost_usd", None) for item in self._items]
        known = [cost for cost in costs if cost is not None]
        return sum_usd(known) if known else None

    @property
    def _records(self) -> list[BaseModel]:
        return [item.record for item in self._items]

    def to_frame(self) -> "pd.DataFrame":
        """Return all of them as a table, one row each."""
        return to_data_frame(self._records, self._model)

    def to_polars(self) -> "pl.DataFrame":
        """Return all of them as a polars table; what is nested is JSON."""
        return to_polars(self._records, self._model)

    def to_arrow(self) -> "pa.Table":
        """Return all of them as an Arrow table; what is nested is JSON."""
        return to_arrow(self._records, self._model)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return an Arrow stream (the PyCapsule interface), by pyarrow or polars."""
        return export_arrow(self._records, requested_schema, self._model)

    def to_dict(self) -> list[dict[str, object]]:
        """Return all of them as JSON values."""
        return [item.to_dict() for item in self._items]

    def __repr__(self) -> str:
        parts = [format_total(len(self), self._kind)]
        states = Counter(getattr(item.record, "status", None) for item in self._items)
        if len(states) > 1:
            parts[0] += ": " + ", ".join(f"{states[s]} {s}" for s in sorted(states, key=str))
        if self.cost_usd is not None:
            parts.append(format_money(self.cost_usd))
        if self.next_cursor:
            parts.append("and more")
        return f"<{', '.join(parts)}>"

    def _repr_html_(self) -> str:
        if not self._items:
            return f"<p>{escape(repr(self)[1:-1])}</p>"
        rows = [{**one, **describe_input(one)} for one in (i.to_dict() for i in self._items)]
        columns = [c for c in COLUMNS if any(row.get(c) not in (None, []) for row in rows)]
        if all(row.get("name") == row.get("id") for row in rows):
            columns = [c for c in columns if c != "name"]
        if "input" in columns:  # the page of a run has the rest
            columns = [c for c in columns if c not in LEFT_OUT_OF_RUNS]
        table = html.render_table(rows, columns, caption=repr(self)[1:-1], most=MAX_ROWS)
        return html.fit_cell(table)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


class UsageLines(Collection[UsageView]):
    """The lines of a usage summary."""

    def __init__(self, items: Sequence[UsageView]) -> None:
        super().__init__(items, "usage lines")

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw the cost of each day as a bar stacked by provider; by matplotlib."""
        from toolkit.display.plots.bars import draw_usage

        return draw_usage([item.record for item in self], ax)
